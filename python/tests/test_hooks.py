"""The hook for pre-commit and the GitHub workflow, on a small repository of orders.

`python python/tests/test_hooks.py` lets pre-commit itself do it: it fetches pre-commit from PyPI, installs this
repository's last commit as `pre-commit try-repo` does, which builds the package, and has it judge a right order and a
wrong one. It says so, and does nothing, where PyPI cannot be reached.
"""

import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import venv

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
RIGHT = "capo 1\nrank 0: F1 F1 B1 B1\n"
WRONG = "capo 1\nrank 0: F1 F1 B1\n"


def _read_yaml(path):
    import pytest

    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed, so what GitHub and pre-commit read is not read")
    return yaml.safe_load((REPOSITORY / path).read_text(encoding="utf-8"))


def _git(folder, *arguments):
    named = ["-c", "user.name=capo", "-c", "user.email=capo@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True, text=True)


def _shell(folder, command):
    """As a step of a workflow or a hook runs, with the program under test on PATH."""
    import program

    path = f"{program.PROGRAM.parent}:{os.environ.get('PATH', os.defpath)}"
    return subprocess.run(["/bin/bash", "-e", "-c", command], cwd=folder, env=os.environ | {"PATH": path},
                          capture_output=True, text=True, check=False)


def test_the_hook_judges_the_orders_that_it_is_given(tmp_path):
    (hook,) = _read_yaml(".pre-commit-hooks.yaml")
    assert (hook["id"], hook["language"], hook["files"]) == ("capo-check", "python", r"\.order$")
    (tmp_path / "right.order").write_text(RIGHT)
    (tmp_path / "wrong.order").write_text(WRONG)
    right = _shell(tmp_path, f"{hook['entry']} right.order")
    assert right.returncode == 0, right.stdout + right.stderr
    both = _shell(tmp_path, f"{hook['entry']} right.order wrong.order")
    assert both.returncode == 1 and "error[S15]" in both.stdout


def test_the_workflow_marks_lines_of_the_orders_that_are_wrong(tmp_path):
    workflow = _read_yaml("examples/github/capo.yml")
    assert workflow[True] == "pull_request"  # YAML 1.1 reads the key `on` as true
    steps = {step["name"]: step for step in workflow["jobs"]["orders"]["steps"] if "name" in step}
    assert shlex.split(steps["install"]["run"], comments=True)[:2] == ["pip", "install"]
    (tmp_path / "schedules").mkdir()
    (tmp_path / "schedules" / "right.order").write_text(RIGHT)
    right = _shell(tmp_path, steps["judge"]["run"])
    assert right.returncode == 0, right.stderr
    (tmp_path / "schedules" / "wrong.order").write_text(WRONG)
    assert _shell(tmp_path, steps["judge"]["run"]).returncode == 1
    log = json.loads((tmp_path / steps["mark the lines"]["with"]["sarif_file"]).read_text())
    (run,) = log["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], place["artifactLocation"]["uri"]) == ("S15", "schedules/wrong.order")
    assert place["region"]["startLine"] == 2
    assert steps["mark the lines"]["if"] == "always()"


def _pre_commit(folder):
    """The program of pre-commit in an environment of its own; None where PyPI cannot be reached."""
    venv.create(folder, with_pip=True)
    install = [folder / "bin" / "pip", "install", "-q", "--retries", "1", "--timeout", "20", "pre-commit==4.7.0"]
    fetched = subprocess.run(install, capture_output=True, text=True, check=False)
    return folder / "bin" / "pre-commit" if fetched.returncode == 0 else None


def try_pre_commit():
    with tempfile.TemporaryDirectory() as made:
        work = pathlib.Path(made)
        program = _pre_commit(work / "environment")
        if program is None:
            print("skipped: PyPI cannot be reached, so there is no pre-commit to try the hook with")
            return
        orders = work / "orders"
        orders.mkdir()
        _git(orders, "init", "-q")
        (orders / "right.order").write_text(RIGHT)
        (orders / "wrong.order").write_text(WRONG)
        _git(orders, "add", ".")
        # It installs the repository anew each time, so one run judges both.
        command = [program, "try-repo", REPOSITORY, "capo-check", "--all-files", "--verbose"]
        run = subprocess.run(command, cwd=orders, capture_output=True, text=True, check=False)
        print(run.stdout + run.stderr)
        assert run.returncode == 1 and "wrong.order:2:12" in run.stdout
        assert "2 files: 1 accepted, 1 rejected" in run.stdout


if __name__ == "__main__":
    try_pre_commit()
