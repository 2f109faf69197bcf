"""Every form in which Python holds an order, and schedules from and to them."""

import pathlib

import capo
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TABLE = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"


def test_numbers_of_numpy():
    numpy = pytest.importorskip("numpy")
    scalars = [numpy.int64(1), numpy.int32(1), numpy.float64(-1), -1.0]
    assert capo.check([numpy.int64(1), numpy.int8(-1)]).accepted
    assert str(capo.check([1, numpy.float64(-1.0)])) == str(capo.check([1, -1.0]))
    assert capo.check(scalars).verdict == capo.check([1, 1, -1.0, -1.0]).verdict
    assert capo.check(numpy.array([1, 1, -1, -1])).accepted
    assert capo.check(numpy.array([[1, -1], [1, -1]])).accepted
    assert capo.check([1, -1, numpy.float32(-1.5)]).accepted


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ([1, "x"], r"order\[1\] is 'x', no number"),
        ([1, None], r"order\[1\] is None, no number"),
        ([1, [2]], r"order\[1\] is \[2\], no number"),
        ([[1, -1], [1, None]], r"order\[1\]\[1\] is None, no number"),
        ([[1, -1], 3], r"order\[1\] is 3, no list of numbers"),
        (None, "order is None, no list of numbers"),
    ],
)
def test_an_item_that_is_no_number_is_named_by_its_index(order, words):
    with pytest.raises(TypeError, match=words):
        capo.check(order)


def test_odd_numbers_are_findings_as_on_the_command_line():
    for order in ([1, float("nan")], [0], [1.5], [1.0, -1], [1e300, -1], [2**40, -1], [-(10**9), 10**9 + 1], []):
        assert str(capo.check(order)) == str(capo.check(str(order)))
    assert not capo.check([1, 10**400]).accepted
    assert capo.check([True, -1]).accepted


def test_texts_and_paths(tmp_path):
    table = tmp_path / "step.csv"
    table.write_text(TABLE)
    for given in (TABLE, table, str(table)):
        report = capo.check(given, profiles=("sound", "torch"))
        assert report.accepted and report.profiles["torch"].accepts
    wrong = capo.check(SOURCE / "examples/torch/both_send_first.csv")
    assert wrong.diagnostics[0].rule == "T09"
    assert wrong.diagnostics[0].spans[0].source.endswith("both_send_first.csv")
    with pytest.raises(FileNotFoundError):
        capo.check("missing.order")


def test_schedules_go_from_and_to_every_form():
    schedule = capo.generate("1f1b", ranks=2, microbatches=2)
    assert schedule.ranks == 2 and schedule.chunks == [1, 1]
    assert schedule.lists() == [[1, 1, -1, -1], [1, -1, 1, -1]]
    for text in (schedule.to_order(), schedule.to_json()):
        assert capo.Schedule(text) == schedule
    assert capo.check(schedule).accepted and capo.check(schedule.to_csv()).accepted
    assert capo.Schedule(schedule) == schedule
    assert capo.Schedule([1, -1]) != schedule


def test_a_text_that_is_no_schedule():
    with pytest.raises(ValueError, match="I01"):
        capo.Schedule("[1, x]")
    with pytest.raises(ValueError, match="cannot say it"):
        capo.Schedule([1, -1, -1.5], topology="chain").to_csv() and capo.Schedule("0F0,,0B0\n").to_te()


def test_a_mapping_is_by_rank_or_the_json_form():
    lists = [[1, 1, -1, -1], [1, -1, 1, -1]]
    assert capo.Schedule({1: lists[1], 0: lists[0]}) == capo.Schedule(lists)
    table = {0: ["0F0", None, "0B0"], 1: [None, "1F0", "1B0"]}
    assert capo.Schedule(table) == capo.Schedule("0F0,,0B0\n,1F0,1B0\n")
    assert capo.Schedule({"order": lists}) == capo.Schedule(lists)
    with pytest.raises(TypeError, match="ranks, 0 and up, and here 1, 2"):
        capo.check({1: lists[0], 2: lists[1]})
    with pytest.raises(TypeError, match="it is bytes"):
        capo.check(b"[1, -1]")
