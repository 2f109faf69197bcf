"""Runs `capo optimise` on many problems, one after the other or side by side, for the other bench/optimise_*.py.

    --jobs 8            8 programs at a time, each on as many cores as it has threads, which it shares with none
    --share 2/5         the second of five parts of the problems: every fifth from the second on
    --rows rows.jsonl   each result is added to this file as it comes; what is there is not run again

A run that was ended goes on with the same --rows, and shares that ran apart are summed up by a call without --share,
whose --rows holds the lines of all of them. A result belongs to all flags of its program but --threads, so that another
--time is another result. Needs Python alone and, for --jobs above 1, taskset of util-linux.
"""

import concurrent.futures
import json
import os
import pathlib
import queue
import subprocess
import sys


def add_options(parser, time):
    parser.add_argument("--time", default=time, help="for each problem")
    parser.add_argument("--threads", type=int, default=2, help="of each program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="programs side by side, each on cores of its own")
    parser.add_argument("--share", type=share, default=(1, 1), metavar="K/N", help="run the K-th of N parts alone")
    parser.add_argument("--rows", type=pathlib.Path, help="add results to this file, and run none that it has")


def share(text):
    """\"2/5\" as numbers; ValueError, which argparse tells, if it is no part."""
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError
    return part, parts


def shared(options, rows):
    part, parts = options.share
    return rows[part - 1 :: parts]


class Runs:
    """Results by flags, those of the file of --rows among them."""

    def __init__(self, options):
        if options.jobs < 1 or options.threads < 1:
            sys.exit("--jobs and --threads are at least 1")
        self.options, self.known = options, {}
        cores = sorted(os.sched_getaffinity(0))
        if options.jobs > 1 and options.jobs * options.threads > len(cores):
            sys.exit(f"--jobs {options.jobs} with {options.threads} threads each need {options.jobs * options.threads} cores, "
                     f"and there are {len(cores)}")
        self.cores = queue.SimpleQueue()
        for job in range(options.jobs):
            mine = cores[job * options.threads : (job + 1) * options.threads]
            self.cores.put(["taskset", "-c", ",".join(map(str, mine))] if options.jobs > 1 else [])
        if options.rows and options.rows.exists():
            self.read(options.rows)

    def read(self, file):
        text = file.read_text()
        for line in text.splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue  # half a line of a run that was ended
            self.known[row["flags"]] = row["result"]
        if text and not text.endswith("\n"):
            file.write_text(text + "\n")

    def all(self, asked):
        """Yields (problem, result) of pairs (problem, flags) as they come, known ones first."""
        fixed = ["--format", "json", "--time", self.options.time, "--seed", str(self.options.seed)]
        left = []
        for problem, flags in asked:
            words = " ".join([*flags, *fixed])
            if words in self.known:
                yield problem, self.known[words]
            else:
                left.append((problem, words))
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            running = {pool.submit(self.run, words): (problem, words) for problem, words in left}
            try:
                for done in concurrent.futures.as_completed(running):
                    problem, words = running[done]
                    result = done.result()
                    self.keep(words, result)
                    yield problem, result
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def run(self, words):
        pinned = self.cores.get()
        try:
            command = [*pinned, str(self.options.capo), "optimise", *words.split(), "--threads", str(self.options.threads)]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
        finally:
            self.cores.put(pinned)
        if ran.returncode != 0:
            sys.exit(f"exit code {ran.returncode}\n{' '.join(command)}\n{ran.stderr}")
        return json.loads(ran.stdout)

    def keep(self, words, result):
        self.known[words] = result
        if not self.options.rows:
            return
        with self.options.rows.open("a") as file:
            file.write(json.dumps({"flags": words, "result": result}) + "\n")
