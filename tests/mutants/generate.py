"""Writes the sources that have mutants, each mutant beside what it replaces.

    generate.py --list           the files of the table, one a line
    generate.py --includers      sources without mutants that include headers with some
    generate.py FOLDER           writes the files of the table below FOLDER, mutated

An expression becomes `(on("name") ? (new) : (old))`, statements `if (on("name")) { new } else { old }`;
which one is on is switch.h's concern. Lines keep their numbers, so that a compiler's message is about
the place in the original.
"""

import sys
from collections import defaultdict
from pathlib import Path

from table import ROOT, Mutant, TableError, read_table


def beside(mutants: list[Mutant], old: str) -> str:
    """What stands in the place of `old`, where each of the mutants can be on."""
    text = old
    for mutant in mutants:
        on = f'::capo::mutants::on("{mutant.name}")'
        if mutant.is_statement:
            text = f"{{ if ({on}) {{ {mutant.new} }} else {{ {text} }} }}"
        else:
            text = f"({on} ? ({mutant.new}) : ({text}))"
    return text


def mutated(file: str, mutants: list[Mutant]) -> str:
    source = (ROOT / file).read_text()
    places = defaultdict(list)
    for mutant in mutants:
        places[mutant.find(source).span()].append(mutant)
    result, end = "", 0
    for (begin, behind), here in sorted(places.items()):
        if begin < end:
            raise TableError(f"{here[0].name}: its text is a part of another mutant's")
        result += source[end:begin] + beside(here, source[begin:behind])
        end = behind
    return f'#include "tests/mutants/switch.h"\n#line 1 "{file}"\n' + result + source[end:]


def write_if_other(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def remove_others(folder: Path, files: set[str]) -> None:
    """A header without mutants any more would hide the real one."""
    for path in folder.glob("**/*"):
        if path.is_file() and str(path.relative_to(folder)) not in files:
            path.unlink()


def includers(headers: set[str], sources: set[str]) -> list[str]:
    """What has to be compiled again, since a header of core that it includes has mutants."""
    lines = {f'#include "{header}"' for header in headers}
    others = {str(path.relative_to(ROOT)): path for path in ROOT.glob("core/**/*.cpp")}
    return sorted(
        file
        for file, path in others.items()
        if file not in sources and not lines.isdisjoint(path.read_text().splitlines())
    )


def main(arguments: list[str]) -> None:
    by_file = defaultdict(list)
    for mutant in read_table():
        by_file[mutant.file].append(mutant)
    if arguments == ["--list"]:
        print("\n".join(sorted(by_file)))
        return
    if arguments == ["--includers"]:
        print("\n".join(includers({file for file in by_file if file.endswith(".h")}, set(by_file))))
        return
    (folder,) = arguments
    remove_others(Path(folder), set(by_file))
    for file, mutants in sorted(by_file.items()):
        write_if_other(Path(folder) / file, mutated(file, mutants))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except TableError as error:
        sys.exit(f"mutants: {error}")
