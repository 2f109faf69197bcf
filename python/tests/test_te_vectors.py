"""The orders whose answers by TransformerEngine are known, asked through Python."""

import json
import pathlib

import capo
import pytest

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"


def rows_of(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is missing")
    return json.loads(path.read_text())


def delayed_of(need):
    return [chunk for chunk, delays in enumerate(need, 1) if delays]


def test_verdict_and_kind_of_every_golden_order():
    rows = rows_of("te_orders.json")
    assert len(rows) == 96
    for row in rows:
        report = capo.check(
            [float(entry) if isinstance(entry, str) else entry for entry in row["order"]],
            num_layers_per_chunk=row["num_layers_per_chunk"],
            delayed=delayed_of(row["need_wgrad"]),
            profiles=("sound", "te"),
        )
        answer = report.profiles["te"]
        assert (answer.accepts, answer.error_kind, report.accepted) == (
            row["te_accepts"],
            row["te_error_kind"],
            row["truly_sound"],
        ), row


def test_victims_and_slots_of_every_hazard():
    rows = rows_of("te_hazards.json")["rows"]
    assert rows
    for row in rows:
        report = capo.check(row["order"], delayed="all", plan="te", modules="linear")
        victims = report.victims
        counted = {
            kind: sorted([chunk - 1, microbatch] for chunk, microbatch in victims[kind])
            for kind in victims
        }
        assert report.slots == row["static_input_slots"], row
        assert counted["static_input"] == sorted(row["static_input_victims"]), row
        assert counted["grad_output"] == sorted(row["grad_output_victims"]), row
