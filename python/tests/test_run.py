"""capo.run, and the smaller questions: minimise, explain, compare, sweep."""

import pickle

import capo
import pytest

TE2376 = [1, -1, 1, -1.5, -1, -1.5]


def test_a_sound_order_comes_out_equal():
    report = capo.run([1, -1, -1.5, 1, -1, -1.5], modules="linear", plan="te")
    assert report.ok and report.bit_equal and report.within_bounds
    assert report.gradients and "bit" in str(report)


def test_a_wrong_order_is_not_run_unless_that_is_asked_for():
    with pytest.raises(capo.OrderError, match=r"B01(.|\n)*was not run: ") as raised:
        capo.run(TE2376, modules="linear", plan="te")
    report = raised.value.report
    assert report.verdict == "rejected" and report.victims["static_input"] == [[1, 0]]
    assert str(raised.value).startswith(str(report))
    report = capo.run(TE2376, modules="linear", plan="te", unchecked=True)
    assert not report.bit_equal and not report.ok
    assert report.victims["static_input"] == [[1, 0]]


def test_an_order_that_is_not_accepted_is_the_error_that_runs_have_for_all_else():
    """Programs that caught a RuntimeError go on working, also where it comes from another process."""
    with pytest.raises(RuntimeError) as raised:
        capo.run([1, -1, -1])
    sent = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(sent, RuntimeError) and isinstance(sent, capo.OrderError)
    assert str(sent) == str(raised.value) and sent.report is None
    shape = dict.fromkeys(("tokens", "hidden", "ffn"), 2**31 - 1)
    with pytest.raises(RuntimeError, match="more than capo runs") as raised:
        capo.run([1, -1], modules={"modules": {"m": {"kind": "linear", "dtype": "bf16", "shape": shape}}})
    assert not isinstance(raised.value, capo.OrderError)


@pytest.mark.parametrize("argument", [{"sizes": "odd"}, {"plan": "none"}, {"modules": "quadratic"}])
def test_arguments_of_a_run_that_are_none(argument):
    with pytest.raises(ValueError, match=next(iter(argument))):
        capo.run([1, -1], **argument)


def test_the_smallest_order_that_breaks_the_same_rule():
    table = capo.generate("1f1b", ranks=4, microbatches=8).lists()
    table[2].remove(-1)
    least = capo.minimise(table, topology="chain")
    broken = {finding.rule for finding in capo.check(least).diagnostics}
    assert "S15" in broken and sum(map(len, least.lists())) < 8
    with pytest.raises(ValueError, match="breaks no rule"):
        capo.minimise([1, -1])
    with pytest.raises(ValueError, match="T01 is not broken"):
        capo.minimise([1, -1, -1], "T01")
    with pytest.raises(ValueError, match="there is no rule `S99`"):
        capo.minimise([1, -1, -1], "S99")


def test_pages():
    assert capo.explain("S15").startswith("# S15")
    assert "contract" in capo.explain("contract").lower()
    with pytest.raises(ValueError, match="there is no rule `S99`"):
        capo.explain("S99")


def test_a_comparison_is_of_a_ranks_share_of_the_model(tmp_path):
    """A V has two chunks on each rank, and is no dearer for that: it has fewer bubbles."""
    table = capo.compare(["1f1b", "zbv"], ranks=4, microbatches=16, cost={"f": 10, "b": 12, "w": 8})
    makespans = {row.name: row.makespan for row in table}
    assert makespans["zbv"] < makespans["1f1b"]
    assert str(table).splitlines()[0].split() == [
        "schedule", "ranks", "microbatches", "makespan", "over", "best", "bubbles", "peak"
    ]
    named = capo.compare({"mine": [[1, -1], [1, -1]]}, topology="chain")
    assert [row.name for row in named] == ["mine"] and "mine" in str(named)
    file = tmp_path / "mine.csv"
    file.write_text("0F0,0B0\n")
    beside = capo.compare(["1f1b", str(file)], ranks=1, microbatches=1)
    assert [row.name for row in beside] == ["1f1b", str(file)]
    with pytest.raises(ValueError, match="1f1c"):
        capo.compare(["1f1c", str(file)], ranks=1, microbatches=1)
    with pytest.raises(ValueError, match="given together"):
        capo.compare(["1f1b"], ranks=4)
    with pytest.raises(ValueError, match="1f1b is a published schedule: say ranks and microbatches"):
        capo.compare(["1f1b", "zbv"])


def test_a_sweep_leaves_out_what_there_is_not():
    table = capo.sweep(["gpipe", "dualpipe"], ranks=(2, 3), microbatches=8)
    assert [(row.name, row.ranks) for row in table] == [("gpipe", 2), ("gpipe", 3), ("dualpipe", 2)]
    with pytest.raises(ValueError, match="even"):
        capo.sweep("dualpipe", ranks=3, microbatches=8)


def test_the_best_of_a_sweep_is_among_the_same_counts():
    lines = str(capo.sweep("1f1b", ranks=(4, 8), microbatches=(16, 32))).splitlines()
    assert [line.split()[4] for line in lines[1:]] == ["+0.0%"] * 4
    two = str(capo.sweep(("gpipe", "v-half"), ranks=4, microbatches=16)).splitlines()
    assert sorted(line.split()[4] == "+0.0%" for line in two[1:]) == [False, True]
