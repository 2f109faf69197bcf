"""The package: docstrings that run, names that exist, what an import loads."""

import doctest
import importlib
import os
import pathlib
import subprocess
import sys

import capo
import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

MODULES = ["capo", "capo._check", "capo._compare", "capo._draw", "capo._record", "capo._report", "capo._run", "capo._schedule",
           "capo._simulate", "capo._wired", "capo.megatron", "capo.te", "capo.torch"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_name_exists():
    assert all(hasattr(capo, name) for name in capo.__all__)


def test_an_import_loads_nothing_heavy():
    heavy = ("numpy", "torch", "pandas", "transformer_engine", "dataclasses", "typing")
    code = f"import sys, capo; print([name for name in {heavy!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True,
                            env={"PYTHONPATH": ":".join(sys.path)}, check=True)
    assert loaded.stdout == "[]\n"


def test_stubs_are_the_modules(tmp_path):
    """mypy's stubtest: every public name, parameter and default of the stubs is the package's."""
    pytest.importorskip("mypy")
    root = pathlib.Path(capo.__file__).parents[1]
    command = [sys.executable, "-m", "mypy.stubtest", "capo", "--mypy-config-file", str(REPOSITORY / "pyproject.toml")]
    env = os.environ | {"PYTHONPATH": str(root), "MYPYPATH": str(root)}
    held = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert held.returncode == 0, held.stdout
