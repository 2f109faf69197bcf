"""What a release is asked, and how its answers differ from those that are stored."""

import collections
import dataclasses
import fnmatch
import re
import typing

from extract import definitions

KINDS = 5  # of differences in an area that are named without --all


@dataclasses.dataclass
class Question:
    """One input of an area, with the answer that a file of tests/data has for it."""

    area: str
    name: str
    stored: object
    ask: typing.Callable[[], object]

    def answer(self):
        """What the release says, or raises: "ValueError: its first line"."""
        try:
            return self.ask()
        except Exception as raised:  # whatever the release raises is its answer
            return f"{type(raised).__name__}: {str(raised).strip().splitlines()[0] if str(raised).strip() else ''}".rstrip(": ")


def apart(stored, found):
    """Where two answers part, in a line: the first cell or number in which they do."""
    if isinstance(stored, bytes) and isinstance(found, bytes):
        return "another table"
    if not (isinstance(stored, list) and isinstance(found, list)):
        both = isinstance(stored, str) == isinstance(found, str)
        return f"stored {short(stored)}, now {short(found)}" if both else f"now {short(found)}"
    if len(stored) != len(found):
        return f"stored {len(stored)} rows, now {len(found)}"
    row = next(k for k, (a, b) in enumerate(zip(stored, found)) if a != b)
    a, b = (cells.split(",") if isinstance(cells, str) else [cells] for cells in (stored[row], found[row]))
    at = next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    x, y = (cells[at] if at < len(cells) else "the end" for cells in (a, b))
    return f"row {row}, place {at}: stored {short(x)}, now {short(y)}"


def short(value, most=160):
    text = str(value)
    return text if len(text) <= most else text[:most] + "..."


def kinds(other, most):
    """Lines for (name, how it parts): those that part alike, whatever the numbers, are one kind, named by the first."""
    alike = collections.defaultdict(list)
    for name, how in other:
        alike[re.sub(r"\d+", "", how)].append((name, how))
    for (name, how), *more in list(alike.values())[:most]:
        yield f"    {name}{f' and {len(more)} more' if more else ''}: {how}"
    if len(alike) > most:
        yield f"    and {len(alike) - most} other kinds; --all names each"


def compare(questions, say, every=False):
    """Says for each area how many answers are as stored and where others part. Returns how many do."""
    asked, other = collections.Counter(), collections.defaultdict(list)
    for question in questions:
        asked[question.area] += 1
        found = question.answer()
        if found != question.stored:
            other[question.area].append((question.name, apart(question.stored, found)))
    for area, number in asked.items():
        say(f"  {area}: {number - len(other[area])} of {number} as stored")
        for line in [f"    {name}: {how}" for name, how in other[area]] if every else kinds(other[area], KINDS):
            say(line)
    return sum(map(len, other.values()))


def modelled(texts, patterns):
    """By name: digests of the definitions that capo has a model of."""
    found = {}
    for text in texts.values():
        found |= {name: of for name, of in definitions(text).items() if any(fnmatch.fnmatchcase(name, p) for p in patterns)}
    return found


def compare_definitions(stored, found, say):
    """Names the definitions that are new, gone or other code. Returns how many."""
    changes = {"new": sorted(found.keys() - stored.keys()), "gone": sorted(stored.keys() - found.keys()),
               "other code": sorted(name for name in found.keys() & stored.keys() if found[name] != stored[name])}
    same = sum(found.get(name) == digest for name, digest in stored.items())
    say(f"  definitions: {same} of {len(stored)} as stored")
    for what, names in changes.items():
        for name in names:
            say(f"    {what}: {name}")
    return sum(map(len, changes.values()))
