"""PyTorch's schedule objects, read by their attributes: torch itself is never imported."""

from capo import _capo
from capo._report import Report


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


def check(schedule, *, modules=None, plan=None, topology=None, comm=None, profiles=("sound", "torch")):
    """Judge the table of a torch schedule object, with its number of microbatches and its stages.

    ``schedule`` has ``pipeline_order`` or ``pipeline_order_with_comms``, as the multi-stage schedules
    of torch.distributed.pipelining do.
    """
    judgement = _capo.check(
        table(schedule), "<schedule>", None, None, modules, plan, topology, comm, list(profiles)
    )
    return Report(judgement, profiles)
