"""Schedules that capo makes, and Megatron-LM's orders."""

import json
import pathlib

import capo
import pytest
from capo import megatron

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"


def test_every_published_schedule_is_accepted():
    for name in capo.schedule_names():
        try:
            schedule = capo.generate(name, ranks=4, microbatches=8)
        except ValueError as searched:
            assert "searches within a limit" in str(searched)
            schedule = capo.generate(name, ranks=4, microbatches=8, memory_limit=8)
        assert capo.check(schedule).accepted, name


def test_torch_tables_by_class():
    schedule = capo.generate("torch:Interleaved1F1B", ranks=2, chunks=2, microbatches=4)
    assert capo.check(schedule.to_csv(), profiles=("sound", "torch")).accepted


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "1f1c"}, "1f1b"),
        ({"name": "gpipe", "ranks": 0}, "rank"),
        ({"name": "gpipe", "ranks": 60000, "microbatches": 10**6}, "entries"),
    ],
)
def test_what_cannot_be_made(arguments, words):
    name = arguments.pop("name")
    with pytest.raises(ValueError, match=words):
        capo.generate(name, **arguments)


def test_orders_of_megatron():
    assert megatron.orders(pp=2, vp=2, microbatches=4, rank=1) == [
        1, 1, 2, -2, 2, -2, 1, -1, 1, -1, 2, -2, 2, -2, -1, -1,
    ]
    delayed = megatron.orders(pp=1, vp=None, microbatches=2, overlap=True, delayed_wgrad=True)
    assert all(-1.5 in order for order in delayed)
    assert capo.check(megatron.schedule(pp=4, vp=2, microbatches=8)).accepted
    assert megatron.refusal(pp=2, microbatches=4, overlap=True) == "EP overlap needs VP when PP>1"
    assert megatron.refusal(pp=2, vp=2, microbatches=4) is None


def test_what_megatron_raises_is_told():
    with pytest.raises(ValueError, match="Megatron's .* raises"):
        megatron.orders(pp=2, vp=2, microbatches=4, group_size=0)
    with pytest.raises(ValueError, match="rank: there are ranks 0 to 1"):
        megatron.orders(pp=2, microbatches=4, rank=2)


def test_every_order_of_megatron_is_its_own():
    rows = json.loads((DATA / "megatron_orders.json").read_text())["rows"]
    made = 0
    for row in rows:
        if row["kind"] != "schedule":
            continue
        given = row["inputs"]
        order = megatron.orders(
            pp=given["pp"],
            vp=given["vp"],
            microbatches=given["num_microbatches"],
            group_size=given["group_size"],
            overlap=given["overlap"],
            delayed_wgrad=given["wgrad"],
            layers=given["layers_per_chunk"],
            rank=given["rank"],
            force=True,
        )
        assert order == row["layer_order" if given["overlap"] else "chunk_order"], row["id"]
        refusal = megatron.refusal(
            pp=given["pp"],
            vp=given["vp"],
            microbatches=given["num_microbatches"],
            group_size=given["group_size"],
            overlap=given["overlap"],
        )
        assert ("rejected: " + refusal if refusal else "accepted") == row["runtime"][0], row["id"]
        made += 1
    assert made == 272
