#!/usr/bin/env python3
"""Runs `capo optimise --placement free` where another placement than a loop or a V may be better, beside these two.

    bench/optimise_free.py build/ci/cli/capo [--moves 3000000] [--group links] [--threads 2] [--rows rows.jsonl]

The settings, all of two chunks a rank:

    links     some links take much longer than the others: between two machines, or from every second rank
    uneven    ranks differ, by up to a third or one of them by half
    transfers all messages take about as long as a weight gradient
    memory    memory for a third, half or two thirds as many microbatches as there are ranks

Each placement has the same number of moves, so that the machine and what else runs on it do not matter: free has no more
than one of the two others. A line of the output is one setting; better is how much less free takes than the best of both.
--time 10s in place of --moves gives each placement as much time. optimise_runs.py tells of --jobs, --share and --rows.

The exit code is 1 if a result of free is worse than both by more than 2 %.
"""

import argparse
import math
import pathlib
import random
import sys

sys.dont_write_bytecode = True

import optimise_runs  # noqa: E402, which stands beside this file

PLACEMENTS = ("loop", "v", "free")


class Setting:
    def __init__(self, group, ranks, microbatches, memory, costs, scopes=()):
        self.group, self.ranks, self.microbatches, self.memory = group, ranks, microbatches, memory
        self.costs, self.scopes = costs, list(scopes)

    @property
    def name(self):
        scopes = f" {len(self.scopes)} scopes" if len(self.scopes) > 2 else "".join(f" {scope}" for scope in self.scopes)
        return f"{self.group:9} p={self.ranks} m={self.microbatches} {self.costs}{scopes} memory={self.memory:g}"

    def flags(self, placement, moves):
        flags = ["--ranks", self.ranks, "--microbatches", self.microbatches, "--chunks", 2, "--placement", placement]
        flags += ["--memory", self.memory, "--cost", self.costs]
        for scope in self.scopes:
            flags += ["--cost", scope]
        return [str(flag) for flag in [*flags, *(["--moves", moves] if moves else [])]]


def settings_of(seed):
    """All settings, the same ones for a seed."""
    chance = random.Random(seed)
    usual, deep = "f=12,b=13,w=9,comm=1", "f=10,b=16,w=4,comm=1"
    for p in (4, 8):
        slow = [f"r{a}-r{b}:comm=12" for a in range(p // 2) for b in range(p // 2, p)]
        odd = [f"r{a}-r{b}:comm=12" for a in range(p) for b in range(a + 1, p) if (a + b) % 2 == 1]
        for memory in (p // 2, p):
            yield Setting("links", p, 2 * p, memory, usual, slow)
        yield Setting("links", p, 2 * p, p, usual, odd)
        for costs in (usual, deep):
            f, b, w = (float(part.split("=")[1]) for part in costs.split(",")[:3])
            shares = [chance.uniform(1, 4 / 3) for _ in range(p)]
            yield Setting("uneven", p, 2 * p, math.ceil(2 * p / 3), costs,
                          [f"r{r}:f={f * s:.2f},b={b * s:.2f},w={w * s:.2f}" for r, s in enumerate(shares)])
        yield Setting("uneven", p, 2 * p, p, usual, ["r1:f=18,b=19.5,w=13.5"])
        for comm in (4, 9):
            yield Setting("transfers", p, 2 * p, p, f"f=12,b=13,w=9,comm={comm}")
        for memory in sorted({math.ceil(p / 3), p // 2, math.ceil(2 * p / 3)}):
            yield Setting("memory", p, 2 * p, memory, usual)
            yield Setting("memory", p, 3 * p, memory, deep)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("capo", type=pathlib.Path)
    parser.add_argument("--moves", type=int, default=3_000_000, help="of each placement; 0: --time ends it")
    parser.add_argument("--group", help="of this group alone")
    optimise_runs.add_options(parser, "60m")
    options = parser.parse_args()

    settings = [setting for setting in settings_of(options.seed) if options.group in (None, setting.group)]
    settings = optimise_runs.shared(options, settings)
    ended = f"{options.moves} moves" if options.moves else options.time
    print(f"{len(settings)} settings, makespan, {ended} for each placement, {options.threads} threads", flush=True)
    asked = [((setting, placement), setting.flags(placement, options.moves)) for setting in settings for placement in PLACEMENTS]
    results, all_better, worse = {}, [], 0
    for (setting, placement), result in optimise_runs.Runs(options).all(asked):
        of = results.setdefault(setting, {})
        of[placement] = result
        if len(of) < len(PLACEMENTS):
            continue
        loop, v, free = (of[each]["makespan"] for each in PLACEMENTS)
        better = 1 - free / min(loop, v)
        worse += better < -0.02
        all_better.append(better)
        found = of["free"]["placement"]
        words = found if isinstance(found, str) else ";".join(",".join(map(str, stages)) for stages in found)
        print(f"{setting.name:58} loop {loop:8.2f} v {v:8.2f} free {free:8.2f} {better:7.2%} bound "
              f"{of['free']['lower_bound']['makespan']:8.2f} {words}", flush=True)
    mean = 1 - math.exp(sum(math.log(1 - each) for each in all_better) / len(all_better)) if all_better else 0
    print(f"{len(all_better)} settings: free is better in {sum(each > 1e-9 for each in all_better)}, the same in "
          f"{sum(abs(each) <= 1e-9 for each in all_better)}, worse in {sum(each < -1e-9 for each in all_better)}, "
          f"by {mean:.2%} in the geometric mean, {max(all_better, default=0):.2%} at most and "
          f"{min(all_better, default=0):.2%} at least")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
