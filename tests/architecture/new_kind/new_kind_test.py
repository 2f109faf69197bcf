#!/usr/bin/env python3
"""Adds an imaginary kind of module to a copy of the sources, and checks, plans and runs with it.

    new_kind_test.py SOURCES CAPO FOLDER

scaled_linear.patch beside this file is the kind. The test fails if it touches more than eight files of
the product, if CONTRIBUTING.md's row for a kind of module names other files than it touches, or if the
capo that it makes in FOLDER cannot check, plan and run scaled-linear; CAPO is the program without it.

The copy is compiled a folder at a time and with -Og, which takes g++ least time, since it runs three commands.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

PRODUCT = ("core", "schedules", "sim", "optimise", "run", "gpu", "cli")
BUILT_FROM = (*PRODUCT, "cmake", "docs/schema", "CMakeLists.txt")
MOST_FILES = 8
PATCH = Path(__file__).with_name("scaled_linear.patch")


def fail(text: str) -> None:
    sys.exit(f"new_kind: {text}")


def output(command: list, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        fail(f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_row(sources: Path, files: list[str]) -> None:
    rows = (sources / "CONTRIBUTING.md").read_text().splitlines()
    row = next(line for line in rows if line.startswith("| a kind of module"))
    named = {path for path in re.findall(r"`([^`]+)`", row) if path.startswith(PRODUCT)}
    touched = {file.replace("scaled_linear", "<name>") for file in files}
    if named != touched:
        fail(f"CONTRIBUTING.md names {sorted(named)} for a kind of module, the patch touches {sorted(touched)}")


def patched_copy(sources: Path, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    for name in BUILT_FROM:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (sources / name).is_dir():
            shutil.copytree(sources / name, copy / name)
        else:
            shutil.copy(sources / name, copy / name)
    # Without the ceiling git would find the repository around the build folder and skip the files.
    output(["git", "apply", PATCH], cwd=copy, env={**os.environ, "GIT_CEILING_DIRECTORIES": str(copy.parent)})


def built(copy: Path) -> Path:
    build = copy / "build"
    options = {"CMAKE_BUILD_TYPE": "Debug", "CMAKE_CXX_FLAGS_DEBUG": "-Og", "CAPO_UNITY": "ON",
               "CAPO_TESTS": "OFF", "CAPO_CUDA": "OFF"}
    output(["cmake", "-S", copy, "-B", build, "-G", "Ninja", *(f"-D{name}={value}" for name, value in options.items())])
    output(["cmake", "--build", build, "-j", "2", "--target", "capo"])
    return build / "cli" / "capo"


def main() -> None:
    sources, today, copy = (Path(os.path.abspath(word)) for word in sys.argv[1:])
    files = [file for file in re.findall(r"^\+\+\+ b/(\S+)", PATCH.read_text(), re.M) if file.startswith(PRODUCT)]
    if len(files) > MOST_FILES:
        fail(f"the kind touches {len(files)} files of the product: {files}")
    check_row(sources, files)

    listed = ["--order", "[1, 1, -1, -1]", "--modules", "scaled-linear"]
    unknown = subprocess.run([today, "check", *listed], capture_output=True, text=True)
    if unknown.returncode != 2 or "scaled-linear" not in unknown.stderr:
        fail(f"capo knows the kind without the patch: {unknown.stdout}{unknown.stderr}")
    patched_copy(sources, copy)
    capo = built(copy)
    output([capo, "check", *listed])
    planned = output([capo, "check", *listed, "--plan", "te"])
    if "plan te" not in planned:
        fail(f"no plan is reported:\n{planned}")
    print(output([capo, "run", *listed]))
    print(f"{len(files)} files of the product make the kind: {', '.join(files)}")


main()
