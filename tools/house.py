#!/usr/bin/env python3
"""Counts that say how many rooms the house has: files, headers, arrows, names, fragments.

    tools/house.py            the counts of the tree it stands in
    tools/house.py FOLDER     those of another checkout
    tools/house.py --list=te  what one of them counts: headers, circles, rules, te, fragments
    tools/house.py --signatures=7   ten functions drawn by that seed; with --answers their folders

It reads the sources as text, so a figure is one that anybody can count again.
"""

import random
import re
import sys
from collections import defaultdict
from pathlib import Path

PRODUCT = ["core", "schedules", "sim", "optimise", "run", "gpu", "cli"]
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
FRAGMENT = re.compile(
    r"^(Of|What|Where|Who|Nothing|The same|As|But|By|Behind|Beside|Likewise|Else|Such|That)\b"
)
INCLUDE = re.compile(r'^\s*#include\s+[<"](?:capo/)?([a-z]+/[^">]+)[">]', re.M)


def sources(root: Path, parts: list[str]) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text()
        for part in parts
        for path in sorted((root / part).rglob("*"))
        if path.suffix in SOURCES
    }


def unit_of(path: str) -> str:
    return path.rsplit(".", 1)[0]


def lonely_headers(product: dict[str, str]) -> list[str]:
    """Headers that at most one file includes, the unit's own source left out."""
    includers = defaultdict(set)
    for path, text in product.items():
        for header in INCLUDE.findall(text):
            if unit_of(header) != unit_of(path):
                includers[header].add(path)
    headers = [path for path in product if path.endswith((".h", ".cuh"))]
    return [path for path in headers if len(includers[path]) <= 1]


def folder_circles(files: dict[str, str]) -> list[list[str]]:
    """The strongly connected groups of folders, by the includes of their files."""
    arrows = defaultdict(set)
    for path, text in files.items():
        here = path.rsplit("/", 1)[0]
        for header in INCLUDE.findall(text):
            there = header.rsplit("/", 1)[0]
            if header in files and there != here:
                arrows[here].add(there)

    def reached(start: str) -> set[str]:
        seen, open_ = set(), [start]
        while open_:
            for folder in arrows[open_.pop()] - seen:
                seen.add(folder)
                open_.append(folder)
        return seen

    reach = {folder: reached(folder) for folder in list(arrows)}
    circles = {
        frozenset(other for other in reach[folder] if folder in reach.get(other, ()))
        for folder in reach
        if folder in reach[folder]
    }
    return [sorted(circle) for circle in circles]


def comments(text: str) -> list[str]:
    """Each comment's text from its first word: a run of whole-line comments, or one behind code."""
    found, run = [], False
    for line in text.splitlines():
        whole = re.match(r"\s*//[/!]*<?\s?(.*)", line)
        behind = None if whole else re.search(r"[^:\"]//[/!]*<?\s?(.*)", line)
        if whole and not run:
            found.append(whole.group(1))
        if behind:
            found.append(behind.group(1))
        run = bool(whole)
    return found


def fragments(files: dict[str, str]) -> list[str]:
    return [
        f"{path}: {comment}"
        for path, text in files.items()
        for comment in comments(text)
        if FRAGMENT.match(comment)
    ]


def naming_te(product: dict[str, str]) -> list[str]:
    return [
        path
        for path, text in product.items()
        if not path.startswith("core/frameworks/") and re.search("TransformerEngine|d0067d0da", text)
    ]


def signatures(product: dict[str, str]) -> list[tuple[str, str]]:
    """Free functions that headers declare, as (signature, folder)."""
    found = []
    for path, text in product.items():
        if not path.endswith(".h"):
            continue
        for match in re.finditer(r"^\[\[nodiscard\]\] ([\w:<>,&*\s]+\([^;{}]*\));", text, re.M):
            found.append((" ".join(match.group(1).split()), path.rsplit("/", 1)[0]))
    return found


def main(arguments: list[str]) -> None:
    for argument in arguments:
        if argument.startswith("--signatures="):
            product = sources(Path(__file__).resolve().parent.parent, PRODUCT)
            drawn = random.Random(int(argument.partition("=")[2])).sample(signatures(product), 10)
            for number, (signature, folder) in enumerate(drawn, 1):
                print(f"{number}. {signature}" + (f"    {folder}" if "--answers" in arguments else ""))
            return
    listed = [argument for argument in arguments if argument.startswith("--list=")]
    places = [argument for argument in arguments if not argument.startswith("--")]
    root = Path(places[0]) if places else Path(__file__).resolve().parent.parent
    product = sources(root, PRODUCT)
    testing = sources(root, ["testing"])
    both = product | testing
    lists = {
        "headers": lonely_headers(product),
        "circles": [" <-> ".join(circle) for circle in folder_circles(both)],
        "rules": [path for path in product if re.fullmatch(r"core/rules/(.*/)?[^/]+\.cpp", path)],
        "te": naming_te(product),
        "fragments": fragments(both),
    }
    for name in listed:
        print("\n".join(lists[name.removeprefix("--list=")]))
    if listed:
        return
    lines = sum(text.count("\n") for text in product.values())
    casts = sum(text.count("static_cast<std::size_t>") for text in product.values())
    rows = [
        ("product files", len(product)),
        ("product lines", lines),
        ("testing files", len(testing)),
        ("testing lines", sum(text.count("\n") for text in testing.values())),
        ("headers with at most one includer", len(lists["headers"])),
        ("folder circles", len(lists["circles"])),
        (".cpp files in core/rules", len(lists["rules"])),
        ("files naming TransformerEngine outside core/frameworks", len(lists["te"])),
        ("essays", len(list((root / "core/rules/essays").glob("*.md")))),
        ("comments that begin as fragments do", len(lists["fragments"])),
        ("casts to std::size_t", casts),
    ]
    for name, count in rows:
        print(f"{name:56} {count:6}")


if __name__ == "__main__":
    main(sys.argv[1:])
