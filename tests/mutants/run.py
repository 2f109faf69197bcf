"""Sets the tests on every mutant and writes who killed it.

    run.py BUILD                   all mutants, two processes at a time; writes report.md and report.json
    run.py BUILD --family buffers  those of one family
    run.py BUILD --only NAME       one
    run.py BUILD --checked-in      fails also where the reports that are checked in say something else

A mutant of a family has to be killed by both kinds of test that table.py names for it. The tests of a
kind run until the first one fails; which that was the last time is in report.json and is tried first.
A test counts only if it passes without a mutant. Exit code 1 where a mutant survives.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import REPORT, Report, read_report, write_reports
from suites import KINDS, Broken
from table import FAMILIES, Mutant, TableError, read_table


def killer_of(build: Path, mutant: Mutant, kind: str, known: str | None) -> str | None:
    suites = KINDS[kind]
    for suite in suites:
        if known and suite.has(known):
            try:
                if killer := suite.first_failure(build, known, mutant.name):
                    return killer
            except Broken:
                pass  # a test that is gone by now
    for suite in suites:
        if killer := suite.first_failure(build, suite.tests[mutant.family], mutant.name):
            return killer
    return None


def killers_of(build: Path, mutant: Mutant, known: dict[str, str]) -> dict[str, str | None]:
    found = {
        name: killer_of(build, mutant, name, known.get(name)) for name in FAMILIES[mutant.family]
    }
    said = ", ".join(f"{name} {killer or 'SURVIVED'}" for name, killer in found.items())
    print(f"{mutant.family}: {mutant.name}: {said}", flush=True)
    return found


def require_passing(build: Path, report: Report) -> None:
    """The tests that killed something pass where there is nothing to kill."""
    for kind, suites in KINDS.items():
        killers = sorted({killed[kind] for killed in report.values() if killed.get(kind)})
        for suite in suites:
            own = [killer for killer in killers if suite.has(killer)]
            failed = suite.first_failure(build, ":".join(own), "") if own else None
            if failed:
                raise Broken(f"{failed} fails without a mutant")


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev mutants", description="Sets the tests on every mutant.")
    parser.add_argument("build", type=Path)
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--checked-in", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()

    table = read_table()
    chosen = [
        mutant
        for mutant in table
        if arguments.family in (None, mutant.family) and arguments.only in (None, mutant.name)
    ]
    if not chosen:
        parser.error("there is no such mutant")
    known = read_report()
    report = {mutant.name: known[mutant.name] for mutant in table if mutant.name in known}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        found = pool.map(
            lambda mutant: killers_of(arguments.build, mutant, known.get(mutant.name, {})), chosen
        )
        report |= {mutant.name: killed for mutant, killed in zip(chosen, found)}
    require_passing(arguments.build, {mutant.name: report[mutant.name] for mutant in chosen})

    before = REPORT.read_text() if REPORT.exists() else ""
    write_reports(table, report)
    survivors = [mutant.name for mutant in chosen if None in report[mutant.name].values()]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants killed as they have to be")
    for name in survivors:
        print(f"survives: {name}", file=sys.stderr)
    if arguments.checked_in and REPORT.read_text() != before:
        print(f"{REPORT} was out of date and has been written anew", file=sys.stderr)
        return 1
    return 1 if survivors else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Broken, TableError) as error:
        sys.exit(f"mutants: {error}")
