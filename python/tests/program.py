"""The program `capo` that belongs to the package under test: a wheel's, or that of the same build."""

import pathlib
import subprocess
import sys

import capo

_PLACES = (pathlib.Path(sys.executable).parent / "capo", pathlib.Path(capo.__file__).parents[2] / "cli" / "capo")
PROGRAM = next((place for place in _PLACES if place.is_file()), None)


def run(*arguments):
    assert PROGRAM, f"there is no program capo in any of {_PLACES}"
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
