#!/usr/bin/env python3
"""Adds an imaginary kind of module to a copy of the sources, and checks, plans and runs with it.

    new_kind_test.py SOURCES BUILD

scaled_linear.patch beside this file is the kind. The test fails if it touches more than eight files of
the product, if CONTRIBUTING.md's row for a kind of module names other files than it touches, or if the
capo that it makes cannot check, plan and run scaled-linear.

Only what the patch changes is compiled again, with the commands of BUILD: files that it touches, files
that read a header that it touches, and, for the table of kinds, files that ask the table. Nearly every
file reads the table's header, and a row at its end changes nothing for a file that does not ask it. All
other objects are taken from BUILD, where capo has been built before.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PRODUCT = ("core", "schedules", "sim", "run", "gpu", "cli")
MOST_FILES = 8
TABLE = "core/model/module_kinds.h"
ASKS = re.compile(
    r"\b(facts_of|kModuleKind\w*|module_kind_named|is_grouped|has_norm|is_one_product|is_mlp|is_made_of_modules)\b"
)
PATCH = Path(__file__).with_name("scaled_linear.patch")


def fail(text: str) -> None:
    sys.exit(f"new_kind: {text}")


def output(command: list[str], **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        fail(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def patched_files() -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)", PATCH.read_text(), re.M)


def check_row(sources: Path, files: list[str]) -> None:
    rows = (sources / "CONTRIBUTING.md").read_text().splitlines()
    row = next(line for line in rows if line.startswith("| a kind of module"))
    named = {path for path in re.findall(r"`([^`]+)`", row) if path.startswith(PRODUCT)}
    touched = {file.replace("scaled_linear", "<name>") for file in files}
    if named != touched:
        fail(f"CONTRIBUTING.md names {sorted(named)} for a kind of module, the patch touches {sorted(touched)}")


def copy_sources(sources: Path, copy: Path) -> None:
    for part in (*PRODUCT, "docs/schema"):
        for file in sorted((sources / part).rglob("*")):
            if not file.is_file():
                continue
            to = copy / file.relative_to(sources)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(file.read_bytes())


def headers_by_object(build: Path) -> dict[str, list[str]]:
    """What each object was compiled from, relative to the sources, as Ninja noted it."""
    found: dict[str, list[str]] = {}
    for block in output(["ninja", "-C", str(build), "-t", "deps"]).split("\n\n"):
        lines = block.splitlines()
        if lines and ": #deps" in lines[0]:
            found[lines[0].split(":")[0]] = [line.strip() for line in lines[1:]]
    return found


class Rebuild:
    def __init__(self, sources: Path, build: Path, copy: Path, files: list[str]):
        self.sources, self.build, self.copy, self.files = sources, build, copy, files
        self.asks: dict[str, bool] = {}
        self.headers = headers_by_object(build)
        link = output(["ninja", "-C", str(build), "-t", "commands", "cli/capo"]).splitlines()[-1]
        self.link = [word for word in shlex.split(link) if word not in ("&&", ":")]
        self.commands = {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            command = shlex.split(entry["command"])
            if "-o" in command and entry["file"].endswith(".cpp"):
                self.commands[command[command.index("-o") + 1]] = (entry["file"], command)

    def relative(self, path: str) -> str | None:
        """The path below the sources if it belongs to the product."""
        try:
            below = Path(os.path.abspath(self.build / path)).relative_to(self.sources)
        except ValueError:
            return None
        return str(below) if below.parts[0] in PRODUCT else None

    def asks_the_table(self, file: str) -> bool:
        if file not in self.asks:
            self.asks[file] = file != TABLE and bool(ASKS.search((self.copy / file).read_text()))
        return self.asks[file]

    def is_changed(self, obj: str) -> bool:
        read = {self.relative(path) for path in self.headers.get(obj, [])} - {None}
        return any(file in self.files and file != TABLE or self.asks_the_table(file) for file in read)

    def is_of_capo(self, obj: str) -> bool:
        return obj in self.link or re.match(r"(core|schedules|sim|run)/CMakeFiles/capo_", obj) is not None

    def compile(self, obj: str, source: str, command: list[str]) -> str:
        """Compiles a file of the copy with the options of one that has been compiled."""
        made = self.copy / "objects" / obj
        made.parent.mkdir(parents=True, exist_ok=True)
        words, skip = [], False
        for word in command:
            if skip:
                skip = False
            elif word in ("-o", "-c"):
                skip = True
            elif word == f"-I{self.sources}":
                words.append(f"-I{self.copy}")
            else:
                words.append(word)
        output([*words, "-o", str(made), "-c", str(self.copy / source)], cwd=self.build)
        return str(made)

    def run(self) -> Path:
        jobs = []
        for obj, (file, command) in self.commands.items():
            source = self.relative(file)
            if source and self.is_of_capo(obj) and self.is_changed(obj):
                jobs.append((obj, source, command))
        known = {source for _, source, _ in jobs}
        for file in self.files:
            if not file.endswith(".cpp") or file in known or (self.sources / file).exists():
                continue
            neighbour = next(job for job in jobs if Path(job[1]).parent == Path(file).parent)
            jobs.append((neighbour[0] + ".new.o", file, neighbour[2]))
        with ThreadPoolExecutor(2) as pool:
            made = list(pool.map(lambda job: self.compile(*job), jobs))
        print(f"{len(jobs)} files of {len(self.commands)} compiled")
        return self.link_with(dict(zip((job[0] for job in jobs), made)))

    def link_with(self, made: dict[str, str]) -> Path:
        capo = self.copy / "capo"
        words = [made.get(word, word) for word in self.link]
        words[words.index("-o") + 1] = str(capo)
        # An object that was made again comes before the libraries, so that none gives its old one.
        at = next(i for i, word in enumerate(words) if word.endswith(".a"))
        words[at:at] = [path for obj, path in made.items() if obj not in self.link]
        output(words, cwd=self.build)
        return capo


def main() -> None:
    sources, build = (Path(os.path.abspath(word)) for word in sys.argv[1:])
    files = patched_files()
    product = [file for file in files if file.startswith(PRODUCT)]
    if len(product) > MOST_FILES:
        fail(f"the kind touches {len(product)} files of the product: {product}")
    check_row(sources, product)

    copy = build / "tests" / "new_kind"
    subprocess.run(["rm", "-rf", str(copy)], check=True)
    copy_sources(sources, copy)
    # Without the ceiling git would find the repository around the build folder and skip the files.
    output(["git", "apply", str(PATCH)], cwd=copy, env={**os.environ, "GIT_CEILING_DIRECTORIES": str(copy.parent)})

    listed = ["--order", "[1, 1, -1, -1]", "--modules", "scaled-linear"]
    today = subprocess.run([build / "cli" / "capo", "check", *listed], capture_output=True, text=True)
    if today.returncode != 2 or "scaled-linear" not in today.stderr:
        fail(f"capo knows the kind without the patch: {today.stdout}{today.stderr}")
    capo = str(Rebuild(sources, build, copy, product).run())
    output([capo, "check", *listed])
    planned = output([capo, "check", *listed, "--plan", "te"])
    if "plan te" not in planned:
        fail(f"no plan is reported:\n{planned}")
    print(output([capo, "run", *listed]))
    print(f"{len(product)} files of the product make the kind: {', '.join(product)}")


main()
