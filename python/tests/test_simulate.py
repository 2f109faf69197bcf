"""Timelines: figures, and columns that are views."""

import capo
import pytest

STEP = capo.generate("1f1b", ranks=2, microbatches=2)


def test_figures():
    step = capo.simulate(STEP, cost={"f": 1, "b": 1, "w": 1})
    assert step.makespan == 9 and step.span == 9  # three microbatches' worth of three units
    assert [rank.busy for rank in step.ranks] == [6, 6]
    assert step.ranks[0].bubble == 3
    assert step.peak == 2
    assert "rank 0" in step.grid(60)


def test_costs_as_text_are_those_of_the_command_line():
    assert capo.simulate(STEP, cost="f=2,b=2,w=2,comm=1").makespan > 18
    assert capo.simulate(STEP, mem={"f": 1, "b": -0.5, "w": -0.5}).peak == 2


def test_columns_are_views_that_keep_their_step():
    step = capo.simulate(STEP)
    begin = step.begin
    assert isinstance(begin, memoryview) and begin.readonly and len(begin) == len(step)
    del step
    assert min(begin) == 0
    numpy = pytest.importorskip("numpy")
    array = numpy.asarray(begin)
    assert array.dtype == numpy.float64 and not array.flags.owndata


def test_columns_agree():
    step = capo.simulate(STEP)
    assert max(step.end) == step.makespan
    assert set(step.rank) == {0, 1} and set(step.stage) <= {-1, 0, 1}
    assert {capo.KINDS[kind] for kind in step.kind} >= {"F", "B"}
    assert step.label(0) == "F1.0"
    with pytest.raises(IndexError):
        step.label(10**6)


def test_what_cannot_be_simulated():
    with pytest.raises(capo.OrderError, match="cannot be simulated") as raised:
        capo.simulate([1, -1, -1])
    assert [finding.rule for finding in raised.value.report.diagnostics] == ["S15"]
    assert isinstance(raised.value, RuntimeError)
    with pytest.raises(ValueError, match="cost: "):
        capo.simulate(STEP, cost="q=1")
    with pytest.raises(ValueError, match="cost: speaks of rank 5, but there are 2"):
        capo.simulate(STEP, cost="r5:f=1")
    with pytest.raises(ValueError, match="mem: "):
        capo.simulate(STEP, mem="f=1")
