"""The table of mutants: faults of capo's own verdict code, by hand, each in one place.

    weight-may-come-first: a weight gradient may come one place before its backward
      core/rules/order.cpp
      - entry.microbatch < done[chunk] && !together
      + entry.microbatch <= done[chunk] && !together

A mutant has a name, what it breaks, the file, the text there and the text in its stead. Both texts are
an expression, or statements, which end in `;` or `}`; none stands for nothing. The text occurs in its
file once, whatever its line breaks; several mutants may replace the same text, none a part of another's.

table/ has a file for each family of docs/model.md that has mutants, and one for plans that are given. table_test.py compares the table
with the sources, generate.py writes the mutated ones and run.py sets test programs on them.
"""

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# What has to kill the mutants of a family. The exhaustive scope holds counted orders of few chunks; what
# lies outside of it is seen by the corpus.
FAMILIES = {
    "shape": ("exhaustive", "property"),
    "dependencies": ("exhaustive", "property"),
    "placement": ("corpus", "property"),
    "routing": ("corpus", "property"),
    "transfers": ("corpus", "property"),
    "buffers": ("exhaustive", "property"),
    "given": ("corpus", "property"),
    "lifecycle": ("exhaustive", "corpus"),
    "streams": ("corpus", "property"),
    "replay": ("corpus", "property"),
    "gradients": ("corpus", "property"),
    "capture": ("corpus", "property"),
}


class TableError(Exception):
    """The table is not in its form, or does not fit the sources."""


@dataclass(frozen=True)
class Mutant:
    name: str
    family: str
    breaks: str
    file: str
    old: str
    new: str

    @property
    def is_statement(self) -> bool:
        return self.old.endswith((";", "}"))

    def find(self, source: str) -> re.Match:
        """Where its text stands, which is one place; line breaks and indents count as one space."""
        found = list(re.finditer(r"\s+".join(map(re.escape, self.old.split())), source))
        if len(found) != 1:
            raise TableError(f"{self.name}: {len(found)} times in {self.file}, and not once: {self.old}")
        return found[0]


_MUTANT = re.compile(
    r"(?P<name>[a-z0-9-]+): (?P<breaks>\S.*)\n"
    r"  (?P<file>core/\S+)\n"
    r"  - (?P<old>\S.*)\n"
    r"  \+(?: (?P<new>\S.*))?\n?"
)


def read_family(family: str) -> list[Mutant]:
    mutants = []
    for block in re.split(r"\n{2,}", (HERE / "table" / family).read_text().strip()):
        if all(line.startswith("#") for line in block.splitlines()):
            continue
        match = _MUTANT.fullmatch(block)
        if not match:
            raise TableError(f"table/{family}: this is no mutant:\n{block}")
        fields = match.groupdict(default="")
        mutants.append(Mutant(family=family, **fields))
    return mutants


def read_table() -> list[Mutant]:
    return [mutant for family in FAMILIES for mutant in read_family(family)]
