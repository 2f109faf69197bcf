"""The pytest plugin, in a pytest of its own."""

import importlib.metadata

import pytest

pytest_plugins = "pytester"

TESTS = """
    def test_right(assert_accepted):
        assert assert_accepted([1, 1, -1, -1]).slots is None
        assert_accepted([1, -1], plan="te")

    def test_wrong(assert_accepted):
        assert_accepted([1, 2, -1, -1])
"""


@pytest.fixture
def outcome(pytester):
    pytester.makepyfile(test_orders=TESTS)
    # Where capo is installed pytest finds the plugin by itself.
    found = any(entry.value == "capo.pytest_plugin" for entry in importlib.metadata.entry_points(group="pytest11"))
    named = () if found else ("-p", "capo.pytest_plugin")
    return lambda *options: pytester.runpytest(*named, *options)


def test_a_wrong_order_fails_with_its_report(outcome):
    result = outcome()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["error?S15?*", "*help: chunk 2 lacks a backward*"])
    assert "Traceback" not in result.stdout.str()


def test_reports_are_written_where_that_is_asked_for(outcome, pytester):
    outcome("--capo-report", "reports")
    names = sorted(path.name for path in (pytester.path / "reports").iterdir())
    assert names == [
        f"test_orders.py_{name}" for name in (
            "test_right-2.json", "test_right-2.txt", "test_right.json", "test_right.txt",
            "test_wrong.json", "test_wrong.txt",
        )
    ]
    assert "S15" in (pytester.path / "reports" / "test_orders.py_test_wrong.txt").read_text()
