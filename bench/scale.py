#!/usr/bin/env python3
"""Measures the scale of the program as it is typed: a process for each row, its text and report included.

    bench/scale.py build/ci/cli/capo [--only PATTERN] [--list] [--timeout 120] [--folder FOLDER]

A row is a command on a step of some shape: `check` of 1F1B over 64 ranks with two and a half and ten million
computations, whose transfers capo adds, `simulate`, and `check` under either plan, on that step and on one of 4,096
ranks with two chunks. Each prints the wall time, seconds of processor, the most memory that was resident, what
is wanted of it, and whether it was kept; a row that takes longer than the time-out is ended and says so. Behind them
come the growth of the time a task from 10^5 to 10^7 tasks, and the memory limit, which is kept if the command ends
with exit code 4, names the flag and never had more.

Steps are made by `capo generate` and removed afterwards, unless a folder is given, in which they stay for the next
time. It judges nothing but figures: that verdicts are right is for the tests. The exit code is 0 whatever is kept,
since a machine that does other work as well is slower.
"""

import argparse
import dataclasses
import fnmatch
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

MIB = 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Step:
    """A published schedule by its name and counts."""

    name: str
    ranks: int
    chunks: int
    microbatches: int

    @property
    def tasks(self):
        """Computations of the step."""
        return 2 * self.ranks * self.chunks * self.microbatches

    def file(self, folder):
        return folder / f"{self.name}-{self.ranks}x{self.chunks}x{self.microbatches}.order"


def one_chunk(microbatches):
    return Step("1f1b", 64, 1, microbatches)


MANY = one_chunk(81920)
WIDE = Step("looped-bfs", 4096, 2, 1024)


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    step: Step
    command: tuple
    wall: float  # seconds that are wanted
    memory: float  # MiB that are wanted


GB = 1e9 / MIB
ROWS = [Row("check of 2.6 million", one_chunk(20480), ("check",), 1.5, 550)]
for words, step in ("10 million", MANY), ("4,096 ranks", WIDE):
    ROWS += [
        Row(f"check of {words}", step, ("check",), 4, 2 * GB),
        Row(f"simulate of {words}", step, ("simulate",), 3, 1.2 * GB),
        Row(f"check --plan te of {words}", step, ("check", "--plan", "te"), 10, 3 * GB),
        Row(f"check --plan safe of {words}", step, ("check", "--plan", "safe"), 10, 3 * GB),
    ]
GROWTH = [one_chunk(780), one_chunk(7800), one_chunk(78000)]  # 10^5, 10^6 and 10^7 tasks
COMMANDS = [("check",), ("simulate",), ("check", "--plan", "te"), ("check", "--plan", "safe")]
MOST_GROWTH = 1.5
LIMIT_MIB = 128


@dataclasses.dataclass(frozen=True)
class Run:
    code: int
    wall: float
    processor: float
    memory: float  # MiB
    errors: str
    timed_out: bool


def run(capo, arguments, timeout):
    begin = time.monotonic()
    process = subprocess.Popen([capo, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    ended = threading.Event()

    def end():
        ended.set()
        os.kill(process.pid, signal.SIGKILL)

    timer = threading.Timer(timeout, end)
    timer.start()
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)  # Popen's own wait() says nothing of memory
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    return Run(process.returncode, time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024,
               errors.decode(), ended.is_set())


class Bench:
    def __init__(self, capo, folder, timeout):
        self.capo = capo
        self.folder = folder
        self.timeout = timeout

    def file_of(self, step):
        file = step.file(self.folder)
        if not file.exists():
            command = [self.capo, "generate", step.name, "--ranks", step.ranks, "--microbatches", step.microbatches]
            if step.chunks > 1:
                command += ["--chunks", step.chunks]
            subprocess.run([*map(str, command), "-o", file], check=True)
        return file

    def measured(self, step, command, *more):
        return run(self.capo, [command[0], self.file_of(step), *command[1:], *more], self.timeout)

    def print_row(self, row):
        seen = self.measured(row.step, row.command)
        figures = f"{seen.wall:7.2f} s wall {seen.processor:7.2f} s processor {seen.memory:7.0f} MiB"
        if seen.timed_out:
            kept = f"not done after {self.timeout} s"
        elif seen.code not in (0, 1):
            kept = f"exit code {seen.code}: {seen.errors.strip().partition(chr(10))[0]}"
        else:
            slow = [] if seen.wall <= row.wall else ["time"]
            large = [] if seen.memory <= row.memory else ["memory"]
            kept = " and ".join(slow + large) + " not kept" if slow or large else "kept"
        print(f"{row.name:32} {figures}  wanted {row.wall:g} s, {row.memory:.0f} MiB: {kept}", flush=True)

    def print_growth(self, command):
        a_task = []
        for step in GROWTH:
            best = min(self.measured(step, command).processor for _ in range(3))
            a_task.append(best / step.tasks)
            print(f"{' '.join(command):32} {step.tasks:9} tasks {a_task[-1] * 1e9:7.0f} ns a task", flush=True)
        grown = a_task[-1] / a_task[0]
        print(f"{' '.join(command):32} grown {grown:.2f}-fold a task, wanted at most {MOST_GROWTH}-fold", flush=True)

    def print_limit(self, command):
        seen = self.measured(MANY, command, "--max-memory", f"{LIMIT_MIB}MiB")
        kept = seen.code == 4 and "--max-memory" in seen.errors and seen.memory <= LIMIT_MIB + 32  # and the program
        words = "kept" if kept else f"NOT kept: exit code {seen.code}"
        name = " ".join(command) + f" in {LIMIT_MIB} MiB"
        print(f"{name:32} {seen.wall:7.2f} s wall {seen.memory:7.0f} MiB  {words}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capo", type=pathlib.Path)
    parser.add_argument("--only", default="*", help="rows whose name fits the pattern, growth and limit among them")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--timeout", type=float, default=120, help="seconds until a row is ended")
    parser.add_argument("--folder", type=pathlib.Path, help="where the steps are kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options.capo.resolve(), options.folder or pathlib.Path(scratch), options.timeout)
        prints = [(row.name, lambda row=row: bench.print_row(row)) for row in ROWS]
        prints += [(f"growth of {' '.join(of)}", lambda of=of: bench.print_growth(of)) for of in COMMANDS]
        prints += [(f"limit of {' '.join(of)}", lambda of=of: bench.print_limit(of)) for of in COMMANDS]
        for name, show in prints:
            if not fnmatch.fnmatchcase(name, options.only):
                continue
            print(name) if options.list else show()


if __name__ == "__main__":
    main()
