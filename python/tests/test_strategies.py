"""capo.strategies, against the verdicts of capo itself."""

import capo
import pytest

pytest.importorskip("hypothesis")

from capo import strategies
from hypothesis import find, given, settings

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=100)


@FIXED
@given(strategies.orders())
def test_orders_are_sound(order):
    assert capo.check(order).accepted


@FIXED
@given(strategies.schedules())
def test_schedules_are_sound(schedule):
    assert capo.check(schedule).accepted


def test_a_counterexample_shrinks_to_a_short_order():
    wrong = find(strategies.one_entry_off(), lambda order: not capo.check(order).accepted,
                 settings=settings(FIXED, max_examples=500))
    assert len(wrong) <= 2
