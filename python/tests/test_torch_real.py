"""capo.torch.check on schedule objects of the torch that is installed: every class that it has.

Stages are real and live on the processor; their process group is torch's fake one, which says how
many ranks there are and sends nothing. Skipped where torch is absent. `python test_torch_real.py`
prints the table that bench/results/python/torch_check.txt keeps.
"""

import re
import warnings

import capo
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed, so no schedule object of its is judged")

SETTINGS = [(1, 2), (2, 4), (4, 8), (8, 16)]  # ranks and microbatches
# Its pipeline_order, which it does not run by, begins the last rank with the forward of microbatch 1.
WRONG_TABLE = "Schedule1F1B"
V_SHAPED = ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")  # the last stage is beside the first


def _schedules():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.distributed.pipelining import schedules

    return schedules


def class_names():
    """The classes of schedules that this torch has, as its module names them."""
    schedules = _schedules()
    bases = (schedules.PipelineScheduleSingle, schedules.PipelineScheduleMulti)
    return sorted(
        name
        for name, held in vars(schedules).items()
        if name.startswith("Schedule") and isinstance(held, type) and issubclass(held, bases)
    )


def make(name, ranks, microbatches):
    """The schedule object of rank 0."""
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage
    from torch.testing._internal.distributed.fake_pg import FakeStore

    schedules = _schedules()
    made = getattr(schedules, name)
    alone = issubclass(made, schedules.PipelineScheduleSingle)
    stages = ranks if alone else 2 * ranks
    held = [0] if alone else [0, 2 * ranks - 1] if name in V_SHAPED else [0, ranks]
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    try:
        parts = [PipelineStage(torch.nn.Linear(2, 2), index, stages, torch.device("cpu")) for index in held]
        # A loss lets the class plan backwards.
        loss = torch.nn.functional.mse_loss
        return made(parts[0] if alone else parts, microbatches, loss_fn=loss)
    finally:
        dist.destroy_process_group()


def cases():
    return [(name, *setting) for name in class_names() for setting in SETTINGS]


@pytest.mark.parametrize(("name", "ranks", "microbatches"), cases())
def test_torch_and_capo_accept_what_torch_makes(name, ranks, microbatches):
    report = capo.torch.check(make(name, ranks, microbatches))
    assert report.profiles["torch"].accepts == report.accepted, str(report)
    if name == WRONG_TABLE and not report.accepted:
        assert {finding.rule for finding in report.diagnostics} == {"S19", "S21"}, str(report)
    else:
        assert report.accepted, str(report)


@pytest.mark.parametrize("name", class_names())
def test_a_backward_before_its_forward_is_found(name):
    schedule = make(name, 2, 4)
    table = getattr(schedule, "pipeline_order_with_comms", None) or schedule.pipeline_order
    order = table[0]
    cells = [str(action) for action in order]
    halves = [re.fullmatch(r"(\d+)[BI](\d+)", cell) for cell in cells]
    backward, forward = next(
        (at, cells.index(f"{half[1]}F{half[2]}"))
        for at, half in enumerate(halves)
        if half and f"{half[1]}F{half[2]}" in cells
    )
    order[forward], order[backward] = order[backward], order[forward]
    report = capo.torch.check(schedule)
    assert not report.accepted
    assert any(finding.rule == "D01" for finding in report.diagnostics), str(report)


if __name__ == "__main__":
    print(f"torch {torch.__version__}, capo {capo.__version__}")
    print(f"{'class':32}{'ranks':>6}{'microbatches':>14}{'actions':>9}  capo      torch")
    for case in cases():
        schedule = make(*case)
        table = getattr(schedule, "pipeline_order_with_comms", None) or schedule.pipeline_order
        actions = sum(action is not None for row in table.values() for action in row)
        report = capo.torch.check(schedule)
        says = "accepts" if report.profiles["torch"].accepts else "refuses"
        print(f"{case[0]:32}{case[1]:6}{case[2]:14}{actions:9}  {report.verdict:10}{says}")
