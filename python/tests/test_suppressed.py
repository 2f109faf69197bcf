"""What a comment or capo.toml suppresses: taken out of the findings, and told beside them."""

import json

import capo
import pytest

LATE = "capo 1\nrank 0: F1.0 B1.0 F1.1 W1.0 B1.1 W1.1"
TOML = """
[[suppress]]
file = "orders/late.order"
rule = "B01"
{}
reason = "the input is copied before"
"""


def checked(order):
    return capo.check(order, plan="te", modules="linear", profiles=("sound", "te"))


def test_a_comment_suppresses_and_says_why():
    report = checked(LATE + "  # capo: allow B01 at W1.0: the input is copied before\n")
    assert report.verdict == "accepted" and not report.diagnostics
    (finding,) = report.suppressed
    assert (finding.rule, finding.severity) == ("B01", "error")
    assert (finding.reason, finding.written_at) == ("the input is copied before", "<order>:2:40")
    assert "accepted but for 1 suppressed error" in str(report)
    assert json.loads(report.to_json())["suppressed"][0]["suppression"]["reason"] == finding.reason
    report.raise_for_errors()


def test_nothing_is_suppressed_without_a_word():
    assert checked([1, -1, 1, -1]).suppressed == []
    assert not checked(LATE + "  # capo: allow B01 at W1.1: another entry\n").accepted


def test_a_rule_that_others_rest_on_stays():
    report = checked(LATE + "  # capo: allow D01: it will be fine\n")
    assert report.verdict == "no-verdict"
    assert report.diagnostics[0].message == "D01 cannot be suppressed: what is judged after it rests on it"


@pytest.mark.parametrize(("place", "verdict"), [("", "accepted"), ("rank = 0\nindex = 3", "accepted"),
                                                ("rank = 0\nindex = 5", "rejected"), ("rank = 1", "rejected")])
def test_the_nearest_capo_toml_holds_for_a_path(tmp_path, place, verdict):
    order = tmp_path / "orders" / "late.order"
    order.parent.mkdir()
    order.write_text(LATE + "\n")
    (tmp_path / "capo.toml").write_text(TOML.format(place))
    report = checked(order)
    assert report.verdict == verdict
    assert len(report.suppressed) == (verdict == "accepted")
    (order.parent / "capo.toml").write_text("")
    assert checked(order).verdict == "rejected"


def test_a_capo_toml_that_cannot_be_read(tmp_path):
    order = tmp_path / "late.order"
    order.write_text(LATE + "\n")
    (tmp_path / "capo.toml").write_text("plans = 'te'\n")
    report = checked(order)
    assert report.verdict == "no-verdict"
    assert report.diagnostics[0].message == "capo.toml has no key `plans`"
    assert report.diagnostics[0].spans[0].source.endswith("capo.toml")


def test_a_run_judges_without_suppressions():
    text = LATE + "  # capo: allow B01: the input is copied before\n"
    with pytest.raises(capo.OrderError, match="B01"):
        capo.run(text, plan="te", modules="linear")
