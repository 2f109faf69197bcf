"""The package: docstrings that run, names that exist, what an import loads."""

import doctest
import importlib
import subprocess
import sys

import capo
import pytest

MODULES = ["capo", "capo._check", "capo._report", "capo._schedule", "capo._simulate",
           "capo.megatron", "capo.te", "capo.torch"]


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
