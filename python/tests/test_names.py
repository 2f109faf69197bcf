"""The values of arguments: those that are named in stubs, docstrings and pages are all that there are, and the command
line's."""

import pathlib
import re

import capo
import program
import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(capo.__file__).parent
NONE = "none-of-them"


def _refused(argument):
    """What is said of a value that is none; a schedule of two ranks has a use for each argument."""
    with pytest.raises(ValueError) as raised:
        capo.check([[1, -1], [1, -1]], **{"topology": "chain", argument: NONE})
    return str(raised.value)


def _named(argument):
    """The values that there are, as that names them."""
    listed = re.search("there are (.*)", _refused(argument))[1]
    return [word for word in re.split(", | and ", listed) if word]


def _of_the_command_line(option):
    run = program.run("check", "--order", "[1, -1]", option, NONE)
    assert run.returncode != 0
    listed = re.search(r"(?:is none of|there are|takes) (.*?)(?:, or a JSON.*)?$", run.stderr, re.MULTILINE)[1]
    return re.split(", | and ", listed)


@pytest.mark.parametrize(("argument", "option"), [("comm", "--comm"), ("plan", "--plan"), ("topology", "--topology"),
                                                  ("modules", "--modules"), ("profiles", "--profile")])
def test_the_command_line_has_the_same_values(argument, option):
    assert sorted(_named(argument)) == sorted(_of_the_command_line(option))


@pytest.mark.parametrize("argument", ["comm", "plan"])
def test_stubs_name_every_value(argument):
    stubs = (PACKAGE / "__init__.pyi").read_text(encoding="utf-8")
    literal = re.search(rf"^_{argument.title()} = Literal\[(.*)\]$", stubs, re.MULTILINE)[1]
    assert re.findall(r'"([^"]+)"', literal) == _named(argument)
    declared = re.findall(rf"^ +{argument}: (\w+)", stubs, re.MULTILINE)
    assert declared and set(declared) == {f"_{argument.title()}"}


@pytest.mark.parametrize("argument", ["comm", "plan", "topology", "profiles"])
def test_docstring_and_page_name_every_value(argument):
    entry = re.search(rf"- ``{argument}``: (.*?)(?=\n    - ``|\n\n)", capo.check.__doc__, re.DOTALL)[1]
    page = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{argument}` \| (.*) \|$", page, re.MULTILINE)[1]
    words = set(_named(argument)) - {"sound"}  # which needs no asking
    assert words <= set(re.findall(r'``"([^"]+)"``', entry))
    assert words <= set(re.findall(r'`"([^"]+)"`', row))


def test_the_page_of_the_package_has_every_name():
    page = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8")
    there = set(re.findall(r"^\.\. auto\w+:: capo\.(\w+)", page, re.MULTILINE))
    constants = {name for name in capo.__all__ if name.isupper() or name.startswith("__")}
    assert set(capo.__all__) - constants == there & set(capo.__all__)
    assert all(f"capo.{name}" in page for name in constants if name.isupper())


def test_versions_of_profiles_are_named_by_those_that_there_are():
    page = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
    versions = set(re.findall(r'"(\w+@[\d.]+)"', page + capo.check.__doc__))
    assert versions
    assert list(capo.check([1, -1], profiles=sorted(versions)).profiles) == sorted(versions)
