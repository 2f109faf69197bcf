"""capo.torch.check, on objects that have the attributes of torch's schedules."""

import sys
import types

import capo
import pytest


class Action:
    """torch's _Action, as far as it is written: stage, kind and microbatch."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def schedule_of(rows, **others):
    order = {
        rank: [Action(cell) if cell else None for cell in row.split(",")]
        for rank, row in enumerate(rows)
    }
    return types.SimpleNamespace(pipeline_order=order, **others)


def test_a_sound_table():
    report = capo.torch.check(schedule_of(["0F0,0F1,,0B0,0B1", ",1F0,1B0,1F1,1B1"]))
    assert report.accepted and report.profiles["torch"].accepts
    assert "torch" not in sys.modules


def test_a_table_with_transfers_goes_before():
    rows = ["0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0WAIT_SEND_F0,0RECV_B1,0B1,0WAIT_SEND_F1",
            "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1"]
    lowered = schedule_of(rows).pipeline_order
    report = capo.torch.check(
        types.SimpleNamespace(pipeline_order=schedule_of(["0F0"]).pipeline_order,
                              pipeline_order_with_comms=lowered)
    )
    assert report.diagnostics[0].rule == "T09"
    assert report.profiles["torch"].disagreement == "accepted there and wrong"


def test_check_takes_the_object_as_well():
    assert capo.check(schedule_of(["0F0,0B0", "1F0,1B0"])).accepted


def test_microbatches_that_the_table_lacks_are_missed():
    rows = ["0F0,0F1,,0B0,0B1", ",1F0,1B0,1F1,1B1"]
    placed = {0: 0, 1: 1}
    whole = schedule_of(rows, _n_microbatches=2, _num_stages=2, stage_index_to_group_rank=placed)
    assert capo.torch.check(whole).accepted
    short = schedule_of(rows, _n_microbatches=3, _num_stages=2, stage_index_to_group_rank=placed)
    assert not capo.torch.check(short).accepted
    swapped = schedule_of(rows, _n_microbatches=2, stage_index_to_group_rank={0: 1, 1: 0})
    assert not capo.torch.check(swapped).accepted


def test_an_object_without_a_table():
    with pytest.raises(TypeError, match="has no pipeline_order"):
        capo.torch.check(object())
