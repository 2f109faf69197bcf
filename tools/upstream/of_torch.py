"""torch.distributed.pipelining: cells, schedules' tables, passes and slots, asked of a release's own functions."""

import functools
import hashlib

from extract import scope_of
from questions import Question

PACKAGE = "torch"
FOLDER = "torch/distributed/pipelining"
FILES = {"schedules.py": f"{FOLDER}/schedules.py", "_utils.py": f"{FOLDER}/_utils.py"}
VECTORS = ["torch215_lowered.json", "torch215_slots.json"]
MODELLED = ["_Action", "_Action.*", "_ComputationType", "_add_*", "_merge_bw", "_resolve_*", "_validate_*", "_defer_*", "_batch_p2p",
            "_sorted_batch_p2p", "_requires_*", "_get_*_ops", "_assign_*", "analyze_*", "_simulate_*", "*._get_pipeline_order",
            "*._calculate_single_rank_operations", "*._prepare_schedule_with_comms", "*._load_csv", "*._validate_*"]


class Stage:
    """What a schedule asks of a stage before it runs."""

    is_first = is_last = False
    has_backward = True
    submod = None

    def __init__(self, ranks, stages):
        self.group_rank, self.group_size, self.num_stages, self.stage_index = 0, ranks, stages, 0


class Release:
    """One release's functions, asked as its own constructors ask them."""

    def __init__(self, texts):
        self.scope = scope_of(texts, "schedules.py")

    def cell(self, text):
        return repr(self.scope["_Action"].from_str(text))

    def lowered(self, rows, stages, microbatches, policy, form="compute_only"):
        """The schedule of a table, lowered."""
        of_rank = [Stage(len(rows), stages) for _ in range(max(stages // len(rows), 1))]
        schedule = self.scope["_PipelineScheduleRuntime"](of_rank, microbatches, **policy)
        schedule._prepare_schedule_with_comms(
            {rank: [self.scope["_Action"].from_str(cell) for cell in row.split(",")] for rank, row in enumerate(rows)}, form)
        return schedule

    def lowered_rows(self, *arguments):
        schedule = self.lowered(*arguments)
        return [",".join(map(str, row)) for row in schedule.pipeline_order_with_comms.values()]

    def order(self, name, ranks, chunks, microbatches):
        """The computations of each rank, as a schedule's class has them."""
        stages = [Stage(ranks, ranks * chunks) for _ in range(chunks)]
        schedule = self.scope[f"Schedule{name}"]
        single = issubclass(schedule, self.scope["PipelineScheduleSingle"])
        order = schedule(stages[0] if single else stages, microbatches).pipeline_order
        computes = [[action for action in row if action is not None and action.is_compute_op] for row in order.values()]
        return [",".join(map(str, row)) for row in computes]

    def slots(self, rows, stage_to_rank, microbatches):
        schedule = self.lowered(rows, len(stage_to_rank), microbatches, {})
        of_ranks = {}
        for rank in range(len(rows)):
            stages = [stage for stage, at in enumerate(stage_to_rank) if at == rank]
            plan = self.scope["analyze_pipeline_activation_liveness"](
                schedule, pp_rank=rank, stage_indices=stages, granularity="stage_microbatch")
            of_ranks[str(rank)] = {str(s): [plan.slot_for(s, m) for m in range(microbatches)] for s in stages}
        return of_ranks


def policy_named(name):
    """The arguments of "defer_pp_recv,max_outstanding_sends=1"."""
    policy = {}
    for word in name.split(",") if name != "default" else []:
        key, _, value = word.partition("=")
        policy[key] = True if not value else int(value) if value.isdigit() else value
    return policy


def arguments_of(policy):
    return {key: tuple(value) if isinstance(value, list) else value for key, value in policy.items()}


def digest(rows):
    return hashlib.sha256("".join(row + "\n" for row in rows).encode()).digest()


def stored_table(row, of_policy):
    if isinstance(of_policy, dict):
        return of_policy["error"]
    return bytes.fromhex(of_policy) if isinstance(of_policy, str) else [row["lines"][line] for line in of_policy]


def questions(texts, vectors):
    release = Release(texts)
    tables, slots = vectors["torch215_lowered.json"], vectors["torch215_slots.json"]
    for text, stored in tables["parse"]:
        stored = stored["error"] if isinstance(stored, dict) else repr(stored) if stored is None else stored
        yield Question("cells", repr(text), stored, functools.partial(release.cell, text))
    for row, of_row in zip(tables["rows"], slots["rows"]):
        ranks, chunks, microbatches, rows = row["P"], row["V"], row["M"], row["compute"]
        yield Question("schedules", row["id"], rows, functools.partial(release.order, row["cls"], ranks, chunks, microbatches))
        for policy, of_policy in row["lowered"].items():
            stored = stored_table(row, of_policy)
            ask = functools.partial(release.lowered_rows, rows, ranks * chunks, microbatches, policy_named(policy))
            if isinstance(of_policy, str):
                ask = (lambda table: lambda: digest(table()))(ask)
            yield Question(f"tables lowered with {policy}", row["id"], stored, ask)
        yield Question("slots of activations", row["id"], of_row["slots"],
                       functools.partial(release.slots, rows, row["stage_to_rank"], microbatches))
    for number, row in enumerate(tables["more"]):
        ask = functools.partial(release.lowered_rows, row["rows"], row["stages"], row["microbatches"], arguments_of(row["policy"]),
                                row["format"])
        yield Question("random and damaged tables", f"more#{number}", row.get("error", row.get("lowered")), ask)
