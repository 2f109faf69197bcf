"""Sources of released packages, fetched from PyPI for a test and never kept in the repository."""

import functools
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import pytest


@functools.cache
def _wheel(requirement):
    folder = tempfile.mkdtemp()
    fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--retries", "1"]
    fetch += ["--python-version", "3.12"]  # whichever runs here: the files are only read
    fetched = subprocess.run([*fetch, "--timeout", "20", "-d", folder, requirement], capture_output=True, text=True)
    wheels = list(pathlib.Path(folder).glob("*.whl"))
    return (wheels[0], "") if wheels else (None, fetched.stderr.strip().splitlines()[-1:])


def source(requirement, path):
    """The text of one file of a wheel; the test is skipped, saying so, where PyPI cannot be reached."""
    wheel, why = _wheel(requirement)
    if wheel is None:
        pytest.skip(f"{requirement} cannot be fetched: {why}")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(path).decode()
