"""capo.record, around stand-ins for PyTorch's graphs: hooks as 2.14 has them, and methods as before."""

import sys
import types

import capo
import pytest


class Registry(dict):
    def add(self, hook):
        self[id(hook)] = hook
        return types.SimpleNamespace(remove=lambda: self.pop(id(hook)))

    def run(self, graph):
        for hook in list(self.values()):
            hook(graph)


@pytest.fixture(params=["hooks", "methods"])
def cuda(request, monkeypatch):
    """A stand-in for torch.cuda that tells of its graphs by hooks, or has only the methods."""
    torch, cuda, graphs = (types.ModuleType(name) for name in ("torch", "torch.cuda", "torch.cuda.graphs"))
    starts, replays = Registry(), Registry()

    class CUDAGraph:
        def capture_begin(self):
            starts.run(self)

        def replay(self):
            replays.run(self)

        def reset(self):
            pass

    def make_graphed_callables(callables, sample_args=(), **_):
        made = callables if isinstance(callables, tuple) else (callables,)
        forwards = [captured(CUDAGraph()) for _ in made]
        backwards = [captured(CUDAGraph()) for _ in made][::-1]
        return list(zip(forwards, backwards))

    cuda.CUDAGraph, cuda.graphs, torch.cuda = CUDAGraph, graphs, cuda
    cuda.make_graphed_callables = graphs.make_graphed_callables = make_graphed_callables
    if request.param == "hooks":
        graphs.register_graph_capture_start_hook = starts.add
        graphs.register_graph_replay_start_hook = replays.add
    for module in (torch, cuda, graphs):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return cuda


def captured(graph):
    graph.capture_begin()
    return graph


@pytest.fixture
def engine(cuda, monkeypatch):
    """A stand-in for TransformerEngine's function, which captures as graph.py does."""

    def make_graphed_callables(modules, sample_args=(), *, _order, _num_layers_per_chunk=None, **_):
        layers, graphs, count = _num_layers_per_chunk, {}, {}
        for entry in _order:
            chunk = int(abs(entry))
            microbatch = count[entry] = count.get(entry, -1) + 1
            within = range(layers[chunk - 1])
            for layer in within if entry > 0 else reversed(within):
                graphs[entry, microbatch, layer] = captured(cuda.CUDAGraph())
        return graphs

    module = types.ModuleType("transformer_engine.pytorch.graph")
    module.make_graphed_callables = make_graphed_callables
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def replay(graphs, entries, layers):
    count = {}
    for entry in entries:
        microbatch = count[entry] = count.get(entry, -1) + 1
        within = range(layers[int(abs(entry)) - 1])
        for layer in within if entry > 0 else reversed(within):
            graphs[entry, microbatch, layer].replay()


def test_pytorchs_own_callables(cuda):
    with capo.record() as recorded:
        (first_forward, first_backward), (last_forward, last_backward) = cuda.make_graphed_callables(("a", "b"))
        for _ in range(2):
            for graph in (first_forward, last_forward, last_backward, first_backward):
                graph.replay()
    assert recorded.captured == ["F1", "F2", "B2", "B1"]
    assert recorded.steps == [["F1", "F2", "B2", "B1"]] * 2
    assert recorded.unnamed == 0
    assert capo.check(recorded.schedule()).accepted


def test_te_captures_and_replays_alike(engine, tmp_path):
    order = [1, 1, -1, -1]
    with capo.record() as recorded:
        graphs = engine.make_graphed_callables(("a", "b"), _order=order, _num_layers_per_chunk=[2])
        replay(graphs, order, [2])
    assert recorded.captured == recorded.replayed == ["F1", "F1", "B1", "B1"]
    recorded.write(tmp_path / "recorded.json")
    report = capo.check(tmp_path / "recorded.json", plan="te")
    assert report.verdict == "accepted" and report.diagnostics == []


def test_a_record_within_a_guard(engine):
    with capo.te.guard() as guard, capo.record() as recorded:
        engine.make_graphed_callables(("a",), ((),), _order=[1, -1], _num_layers_per_chunk=[1])
    assert recorded.captured == ["F1", "B1"] and len(guard.reports) == 1


def test_a_replay_that_parts_from_the_capture_is_judged(engine, tmp_path):
    """TE 2376's kind of loss: the weight gradient is replayed behind a forward that takes its input."""
    order = [1, -1, -1.5, 1, -1, -1.5]
    with capo.record() as recorded:
        graphs = engine.make_graphed_callables(("a",), _order=order, _num_layers_per_chunk=[1])
        replay(graphs, [1, -1, 1, -1.5, -1, -1.5], [1])
    assert recorded.replayed == ["F1", "B1", "F1", "W1", "B1", "W1"]
    recorded.write(tmp_path / "recorded.json")
    report = capo.check(tmp_path / "recorded.json", plan="te", modules="linear")
    assert report.verdict == "rejected"
    assert [finding.rule for finding in report.diagnostics if finding.severity == "error"] == ["Y01"]


def test_named_graphs(cuda):
    with capo.record() as recorded:
        forward, backward, other = cuda.CUDAGraph(), cuda.CUDAGraph(), captured(cuda.CUDAGraph())
        recorded.name(forward, "F1")
        captured(forward)
        captured(backward)
        recorded.name(backward, "B1")
        for graph in (forward, other, backward):
            graph.replay()
    assert recorded.captured == recorded.replayed == ["F1", "B1"]
    assert recorded.unnamed == 1
    with pytest.raises(ValueError, match="'X1' is no action"):
        recorded.name(other, "X1")


def test_one_graph_for_all_microbatches(cuda):
    with capo.record() as recorded:
        ((forward, backward),) = cuda.make_graphed_callables("a")
        for graph in (forward, forward, backward, backward):
            graph.replay()
        recorded.step()
        forward.replay()
    assert recorded.steps[0] == ["F1"]  # a graph that comes again begins a step, as nobody had said otherwise

    with capo.record() as recorded:
        recorded.step()
        ((forward, backward),) = cuda.make_graphed_callables("a")
        for graph in (forward, forward, backward, backward):
            graph.replay()
    assert recorded.replayed == ["F1", "F1", "B1", "B1"]


def test_a_layer_that_is_not_replayed_is_named(engine):
    with capo.record() as recorded:
        graphs = engine.make_graphed_callables(("a", "b"), _order=[1, -1], _num_layers_per_chunk=[2])
        graphs[1, 0, 0].replay()
    with pytest.raises(ValueError, match="1 layers of F1, microbatch 0, did not come"):
        recorded.replayed


def test_nothing_is_left_behind(cuda, engine):
    before = [dict(vars(holder)) for holder in (cuda, cuda.CUDAGraph, cuda.graphs, engine)]
    with capo.record() as recorded:
        pass
    assert [dict(vars(holder)) for holder in (cuda, cuda.CUDAGraph, cuda.graphs, engine)] == before
    graph = captured(cuda.CUDAGraph())
    graph.replay()
    assert recorded.steps == []
    with pytest.raises(ValueError, match="no graph was captured that has a name"):
        recorded.to_order()


# --- resets ----------------------------------------------------------------------------------------


def reset(graphs, chunk, microbatch=None):
    """What TransformerEngine's reset() of graphed callables does with their graphs."""
    for (entry, m, _), graph in graphs.items():
        if abs(entry) == chunk and microbatch in (None, m):
            graph.reset()


def test_a_reset_behind_the_last_step(engine):
    order = [1, 1, -1, -1]
    with capo.record() as recorded:
        graphs = engine.make_graphed_callables(("a", "b"), _order=order, _num_layers_per_chunk=[2])
        for _ in range(2):
            replay(graphs, order, [2])
        reset(graphs, 1)
        reset(graphs, 1)
    assert recorded.steps == [["F1", "F1", "B1", "B1"]] * 2
    assert recorded.to_order().splitlines()[-1] == "rank 0: F1 F1 B1 B1 reset"
    report = capo.check(recorded.schedule())
    assert report.accepted and report.diagnostics == []


def test_a_reset_behind_a_step_that_is_said_to_end(engine):
    with capo.record() as recorded:
        graphs = engine.make_graphed_callables(("a",), _order=[1, -1], _num_layers_per_chunk=[1])
        replay(graphs, [1, -1], [1])
        recorded.step()
        reset(graphs, 1)
    assert recorded.to_order().splitlines()[-1] == "rank 0: F1 B1 reset"


def test_resets_between_replays_stand_where_the_last_graph_goes(engine):
    order = [1, -1, 1, -1, 2, -2, 2, -2]
    with capo.record() as recorded:
        graphs = engine.make_graphed_callables(("a", "b"), _order=order, _num_layers_per_chunk=[1, 1])
        graphs[1, 0, 0].replay()
        graphs[1, 0, 0].reset()
        graphs[-1, 0, 0].replay()
        graphs[-1, 0, 0].reset()
        graphs[1, 1, 0].replay()
        graphs[-1, 1, 0].replay()
        reset(graphs, 1)
        replay(graphs, [2, -2, 2, -2], [1, 1])
    assert recorded.replayed == recorded.captured
    assert recorded.to_order().splitlines()[-1] == "rank 0: F1 B1 reset1.0 F1 B1 reset1.1 F2 B2 F2 B2"
    report = capo.check(recorded.schedule())
    assert report.accepted, str(report)


def test_a_reset_of_a_chunk_in_another_order_of_replay(engine):
    with capo.record() as recorded:
        graphs = engine.make_graphed_callables(("a", "b"), _order=[1, -1, 2, -2], _num_layers_per_chunk=[1, 1])
        replay(graphs, [2, -2], [1, 1])
        reset(graphs, 2)
        replay(graphs, [1, -1], [1, 1])
    assert recorded.to_order().splitlines()[-2:] == ["rank 0: F1 B1 F2 B2", "rank 0 replay: F2 B2 reset2 F1 B1"]
    assert recorded.schedule().to_order().count("reset2") == 1


def test_resets_of_some_graphs_of_a_microbatch_alone_are_none(engine):
    with capo.record() as recorded:
        graphs = engine.make_graphed_callables(("a",), _order=[1, -1], _num_layers_per_chunk=[1])
        replay(graphs, [1, -1], [1])
        graphs[1, 0, 0].reset()
        captured(type(graphs[1, 0, 0])()).reset()
    assert "reset" not in recorded.to_order()
