"""A pytest plugin: the fixture ``assert_accepted``, and ``--capo-report DIR``.

    def test_our_schedule(assert_accepted):
        assert_accepted(make_schedule(ranks=8), plan="te", modules="linear")

An order that is not accepted fails the test with the report and no traceback. With ``--capo-report DIR`` every
report is written there, as text and as JSON, under the name of its test. pytest finds the plugin by itself.
"""

import pathlib
import re

import pytest

from capo._check import check


def pytest_addoption(parser):
    group = parser.getgroup("capo", "capture orders of pipelines")
    group.addoption("--capo-report", metavar="DIR", help="write the report of every assert_accepted into DIR")


def _write(folder, test, number, report):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]+", "_", test) + (f"-{number}" if number > 1 else "")
    (folder / f"{name}.txt").write_text(str(report), encoding="utf-8")
    (folder / f"{name}.json").write_text(report.to_json(), encoding="utf-8")


@pytest.fixture
def assert_accepted(request):
    """A function that judges an order as ``capo.check`` does, and fails the test unless it is accepted."""
    judged = 0

    def judge(order, **declared):
        nonlocal judged
        judged += 1
        report = check(order, **declared)
        folder = request.config.getoption("--capo-report")
        if folder:
            _write(folder, request.node.nodeid, judged, report)
        if not report.accepted:
            pytest.fail(str(report), pytrace=False)
        return report

    return judge
