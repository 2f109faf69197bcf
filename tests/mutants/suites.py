"""The tests that are set on mutants: which programs, and which of their tests for which family.

A suite runs until the first test that fails. Three kinds there are: the exhaustive comparison with the
oracle and the enumerations beside it, the properties, and the golden corpus.
"""

import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Seconds of processor time that no suite takes by itself; one that does has not killed anything.
CPU_SECONDS = 300


class Broken(Exception):
    """A test program says nothing about the mutant: it fails without one, or never ends."""


@dataclass(frozen=True)
class Suite:
    """A program with tests, and which of them to run by family; patterns or names, with `:` between."""

    program: str
    tests: dict[str, str]

    def run(self, build: Path, arguments: list[str], mutant: str) -> subprocess.CompletedProcess:
        environment = os.environ | {"RC_PARAMS": "seed=2376 max_success=1000 noshrink=1"}
        environment["CAPO_MUTANT"] = mutant
        program = build / "tests" / "mutants" / self.program
        command = ["prlimit", f"--cpu={CPU_SECONDS}", program, *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace"
        )
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise Broken(f"{self.program} does not end on {mutant or 'no mutant'}")
        return done


@dataclass(frozen=True)
class GoogleTests(Suite):
    prefix: str = ""  # of all names of its tests; left out in reports

    def has(self, killer: str) -> bool:
        return bool(self.prefix) or "." in killer

    def first_failure(self, build: Path, tests: str, mutant: str) -> str | None:
        """The first test that fails, or that the program dies in; none if all of them pass."""
        chosen = ":".join(self.prefix + pattern for pattern in tests.split(":"))
        flags = ["--gtest_fail_fast", "--gtest_color=no", f"--gtest_filter={chosen}"]
        done = self.run(build, flags, mutant)
        if done.returncode == 0:
            if not re.search(r"^\[  PASSED  \] [1-9]", done.stdout, re.MULTILINE):
                raise Broken(f"{self.program} has no test {chosen}")
            return None
        failed = re.search(r"^\[  FAILED  \] ([^\s,]+)", done.stdout, re.MULTILINE)
        begun = re.findall(r"^\[ RUN      \] (\S+)", done.stdout, re.MULTILINE)
        if not failed and not begun:
            raise Broken(f"{self.program} did not run: {done.stderr.strip()[-400:]}")
        return (failed[1] if failed else begun[-1]).removeprefix(self.prefix)


@dataclass(frozen=True)
class Scopes(Suite):
    """The exhaustive program, a scope at a time: asked through check(), or through Verdicts as well."""

    def has(self, killer: str) -> bool:
        return "." not in killer

    def first_failure(self, build: Path, tests: str, mutant: str) -> str | None:
        for scope in tests.split(":"):
            name, _, through = scope.partition(" through ")
            flags = [name, "--quick", "--stop-at-first", "--through", through]
            done = self.run(build, flags, mutant)
            if done.returncode > 1:
                raise Broken(f"{self.program} did not run {scope}: {done.stderr.strip()[-400:]}")
            if done.returncode != 0:  # a disagreement, or it died of the mutant
                return scope
        return None


# The suites of a kind of test are tried one after another.
KINDS = {
    "exhaustive": [
        Scopes(
            program="capo_exhaustive_mutated",
            tests={
                "shape": "strings through check:lists-with-weights through check:"
                "strings through verdicts:lists-with-weights through verdicts",
                "dependencies": "lists through check:neighbours through check:pairs through check",
                "buffers": "plans through check:declared through check",
                "lifecycle": "declared through check:resets through check",
            },
        ),
        GoogleTests(
            program="capo_enumeration_mutated",
            tests={
                "shape": "*NamedOrders*",
                "dependencies": "*RankOrders*:*NamedOrders*:*ParameterOrders*:*ExchangeOrders*:GroupsInRings*",
                "buffers": "*HazardousOrders*",
                "lifecycle": "*HazardousOrders*",
            },
        ),
    ],
    "property": [
        GoogleTests(
            program="capo_properties_mutated",
            tests={
                "shape": "Faults.OfAList*:Faults.OfANamed*:SoundOrders.*:NearMissLists.*",
                "dependencies": "Faults.OfANamed*:Faults.OfATable*:SoundOrders.*:Transfers.*:Parameters.*:Exchanges.*",
                "placement": "Placement.*:Faults.OfANamed*:Faults.OfATable*",
                "routing": "Transfers.*:Faults.OfCommunication*",
                "transfers": "Transfers.*:Waits.*:Faults.OfCommunication*:Faults.OfModules*",
                "buffers": "Memory.*:PlanFaults.*:Faults.OfPlans*",
                "given": "GivenPlans.*:LocalGraphs.*:Memory.*",
                "streams": "PlanFaults.*:Faults.OfPlans*:Memory.*:Workspaces.*:Replays.*",
                "replay": "Replays.*:PlanFaults.*:Faults.OfPlans*:Faults.OfModules*:Memory.*",
                "gradients": "ModuleFaults.*:Faults.OfModules*",
                "capture": "ModuleFaults.*:Faults.OfModules*:QuantizingModules.*",
            },
        )
    ],
    "corpus": [
        GoogleTests(
            program="capo_corpus_mutated",
            prefix="Rules/CorpusCase.AnswersAsExpected/",
            tests={
                "placement": "P*:D*:T*",
                "routing": "R*",
                "transfers": "T*:R*:D*",
                "given": "B*:E*:C11*:Y01*:I01*",
                "lifecycle": "Y*:B08*",
                "streams": "E*:T*:B*",
                "replay": "Y*:B*:S*:D*",
                "gradients": "G*:C*",
                "capture": "C*:G*",
            },
        )
    ],
}
