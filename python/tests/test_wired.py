"""capo.graph and capo.plan: arrays of tasks, edges and buffers."""

import itertools

import capo
import numpy as np
import pytest


def finishes(graph):
    """Kahn's method over the vertices."""
    waits = np.bincount(graph.after, minlength=graph.vertices)
    following = [[] for _ in range(graph.vertices)]
    for before, after in zip(graph.before, graph.after):
        following[before].append(after)
    ready = [vertex for vertex in range(graph.vertices) if waits[vertex] == 0]
    for vertex in ready:  # grows on the way
        for after in following[vertex]:
            waits[after] -= 1
            if waits[after] == 0:
                ready.append(after)
    return len(ready) == graph.vertices


def test_a_pipeline_has_its_transfers_and_finishes():
    graph = capo.generate("1f1b", ranks=4, microbatches=8).graph()
    kinds = [capo.KINDS[kind] for kind in graph.kind]
    assert kinds.count("F") == kinds.count("B") == 32
    assert kinds.count("send-F") == kinds.count("recv-F") == 24
    assert set(graph.rank) == {0, 1, 2, 3} and set(graph.stage) == {0, 1, 2, 3}
    assert {capo.EDGE_KINDS[kind] for kind in graph.edge_kind} >= {"stream", "data", "message"}
    assert graph.streams > 4 and finishes(graph)
    assert graph.to_dot().startswith("digraph")
    two = np.asarray(graph.end) - np.asarray(graph.start)
    assert all((two == 1) == [kind.startswith(("send", "recv")) for kind in kinds])


def test_a_deadlock_is_a_cycle():
    rows = ("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0WAIT_SEND_F0,0RECV_B1,0B1,0WAIT_SEND_F1\n"
            "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1\n")
    assert capo.check(rows, comm="per-rank").diagnostics[0].rule == "T09"
    assert not finishes(capo.graph(rows, comm="per-rank"))
    assert finishes(capo.graph(rows, comm="per-edge"))


def test_an_order_with_errors_of_its_own_has_no_graph():
    with pytest.raises(capo.OrderError, match=r"error\[S15\](.|\n)*there is no graph"):
        capo.graph([1, 2, -1, -1])
    with pytest.raises(capo.OrderError, match="there is no plan"):
        capo.plan([1, 2, -1, -1], modules="linear")


def shares(plan, one, other):
    same = plan.rank[one] == plan.rank[other] and plan.region[one] == plan.region[other]
    apart = plan.offset[one] + plan.bytes[one] <= plan.offset[other]
    return same and not apart and plan.offset[other] + plan.bytes[other] > plan.offset[one]


def overlaps(plan):
    """Pairs of buffers that share memory while both are in use."""
    return [
        (one, other)
        for one, other in itertools.combinations(range(len(plan)), 2)
        if shares(plan, one, other) and plan.birth[one] <= plan.death[other] and plan.birth[other] <= plan.death[one]
    ]


LATE = [1, -1, 1, -1.5, -1, -1.5]


def test_a_safe_plan_shares_nothing_that_is_in_use():
    plan = capo.plan(LATE, modules="linear")
    assert plan.name == "safe" and not plan.sized and len(plan) > 4
    assert not overlaps(plan)
    ends = np.asarray(plan.offset) + np.asarray(plan.bytes)
    assert plan.peaks == [ends.max()]
    assert plan.lower_bounds[0] <= plan.peaks[0]


def test_the_hazard_of_a_te_plan_is_seen_in_its_buffers():
    plan = capo.plan(LATE, modules="linear", plan="te")
    pairs = [{capo.BUFFER_KINDS[plan.kind[one]] for one in pair} for pair in overlaps(plan)]
    assert {"static input"} in pairs
    places = {capo.REGIONS[region] for region in plan.region}
    assert places == {"static inputs", "grad outputs", "pool"}


def test_receives_lie_in_slots_of_their_own():
    schedule = capo.generate("1f1b", ranks=4, microbatches=8)
    plan = capo.plan(schedule, modules="linear")
    received = [b for b in range(len(plan)) if capo.BUFFER_KINDS[plan.kind[b]].startswith("received")]
    assert {capo.REGIONS[plan.region[b]] for b in received} == {"receives"}
    assert len(received) == 2 * 3 * 8  # an activation and a gradient of each microbatch between two ranks
    slots = capo.check(schedule, modules="linear", plan="safe").transfer_buffers["ranks"]
    for rank, of in enumerate(slots):
        assert len({plan.offset[b] for b in received if plan.rank[b] == rank}) == of["receives"]


def test_sizes_are_those_of_the_model():
    sized = {"kind": "layernorm-mlp", "dtype": "bf16", "shape": {"tokens": 4, "hidden": 8, "ffn": 16}}
    modules = {"modules": {"mlp": sized}, "layers": "mlp"}
    report = capo.check([1, -1], modules=modules, plan="safe")
    plan = capo.plan([1, -1], modules=modules)
    assert plan.sized and plan.peaks == [rank["peak"] for rank in report.bytes["ranks"]]


def test_columns_are_views():
    graph = capo.graph([1, -1])
    rank = np.asarray(graph.rank)
    assert not rank.flags.owndata and not rank.flags.writeable
    assert len(graph) == 2
