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


def test_stubs_name_what_there_is():
    """Every public name and parameter of the stubs is the module's, and the other way round."""
    import ast
    import inspect
    import pathlib

    stubs = pathlib.Path(capo.__file__).with_suffix(".pyi")
    nodes = {node.name: node for node in ast.parse(stubs.read_text()).body if hasattr(node, "name")}
    functions = [name for name, node in nodes.items() if isinstance(node, ast.FunctionDef)]
    assert functions == ["check", "generate", "schedule_names", "simulate"]
    for name in functions:
        stated = [each.arg for each in nodes[name].args.args + nodes[name].args.kwonlyargs]
        assert stated == list(inspect.signature(getattr(capo, name)).parameters), name
    for name, node in nodes.items():
        assert hasattr(capo, name), name
        for member in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(member, ast.FunctionDef):
                assert hasattr(getattr(capo, name), member.name), (name, member.name)
