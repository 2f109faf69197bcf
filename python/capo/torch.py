"""PyTorch's schedule objects, read by their attributes: torch itself is never imported."""

from capo import _capo
from capo._check import check as judge


def _rows(schedule):
    """The table of all ranks, the one with transfers if there is one."""
    for name in ("pipeline_order_with_comms", "pipeline_order"):
        order = getattr(schedule, name, None)
        if order:
            return [order[rank] for rank in sorted(order)]
    raise TypeError(f"{type(schedule).__name__} has no pipeline_order, so there is no table to judge")


def table(schedule):
    """The table of a schedule object as PyTorch writes it to CSV, a row for each rank.

    Actions are written in their own words; None is an idle slot.
    """
    return "".join(
        ",".join("" if action is None else str(action) for action in row) + "\n"
        for row in _rows(schedule)
    )


def facts(schedule):
    """The microbatches, the stages and their ranks that the object knows, each if it does."""
    ranks = getattr(schedule, "stage_index_to_group_rank", None)
    return _capo.TorchFacts(
        getattr(schedule, "_n_microbatches", None),
        getattr(schedule, "_num_stages", None),
        [ranks[stage] for stage in sorted(ranks)] if ranks else None,
    )


def check(
    schedule, *, modules=None, plan=None, plan_in=None, topology=None, comm=None, profiles=("sound", "torch")
):
    """Judge the table of a torch schedule object, with its number of microbatches and its stages.

    ``schedule`` has ``pipeline_order`` or ``pipeline_order_with_comms``, as the multi-stage schedules
    of torch.distributed.pipelining do. ``plan_in`` may hold the slots that torch 2.15 gives activations.
    """
    _rows(schedule)
    return judge(
        schedule, modules=modules, plan=plan, plan_in=plan_in, topology=topology, comm=comm, profiles=profiles
    )
