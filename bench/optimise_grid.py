#!/usr/bin/env python3
"""Runs `capo optimise` where published schedules lose, and prints how much better it is and how far from its bound.

    bench/optimise_grid.py build/ci/cli/capo [--sample N] [--group line] [--time 10s] [--threads 2] [--objective span]
                           [--jobs 8] [--share 1/4] [--rows rows.jsonl]

Published schedules are made for equal costs, and for the memory of 1F1B or more. The grid has the settings where they
are known to lose, over 4, 8 and 16 ranks:

    line       a line with memory for p/3, p/2, 2p/3 or 5p/6 microbatches on each of p ranks
    transfers  a line whose transfers take more than half a weight gradient (2c > W), with memory for p or 3p/2
    v          a V whose forwards, backwards and weight gradients differ, with memory for p or 3p/2
    uneven     a line and a V whose ranks differ by up to a third, drawn with --seed
    few        a line and a V with no more microbatches than ranks, or one more
    tight      a V of unequal costs or ranks with memory for p/2 or 2p/3, where bounds are weakest

Costs are those of the reference rows by their letters, and a profile. A line of the output is one setting: the best
published schedule of the same placement that fits, what was found, and the bound. The improvement of a setting is what
the published schedule takes more, as a share of what it takes; a setting for which no published schedule of its
placement fits has a gap and no improvement. The last lines are of each group, of all but the tight ones, and of all.
--sample takes settings evenly over the grid. optimise_runs.py tells of --jobs, --share and --rows.

The exit code is 1 if a result is worse than a published schedule.
"""

import argparse
import math
import pathlib
import random
import sys

sys.dont_write_bytecode = True

import optimise_runs  # noqa: E402, which stands beside this file

#        F   B   W   of a transfer
COSTS = {
    "u": (1, 1, 1, 0),
    "t": (12, 13, 9, 1),
    "l": (10, 16, 4, 1),
    "n": (5, 6, 4, 0),
    "6.2B": (29.718, 29.444, 19.927, 0.527),
}
SLOW = {"c": (20, 20, 20, 12), "t6": (12, 13, 9, 6), "l3": (10, 16, 4, 3), "t12": (12, 13, 9, 12)}
SIZES = (4, 8, 16)
# The placement of published schedules that are starts on a line and on a V of two chunks.
PLACED = {
    "loop": {"gpipe", "1f1b", "zb-h1", "zb-h2", "zb"},
    "v": {"1f1b-v", "zbv", "v-half", "v-min", "v-adaptive", "dualpipev", "hanayo"},
}


class Setting:
    def __init__(self, group, placement, ranks, microbatches, costs, memory, shares=None):
        self.group, self.placement, self.ranks, self.microbatches = group, placement, ranks, microbatches
        self.costs, self.memory, self.shares = costs, memory, shares

    @property
    def name(self):
        costs = "f={:g} b={:g} w={:g} c={:g}".format(*self.costs)
        place = "line" if self.placement == "loop" else "v"
        return f"{self.group:9} {place:4} p={self.ranks} m={self.microbatches} {costs} memory={self.memory:g}"

    def flags(self):
        forward, backward, weight, transfer = self.costs
        flags = ["--ranks", self.ranks, "--microbatches", self.microbatches, "--placement", self.placement]
        flags += ["--chunks", 2 if self.placement == "v" else 1, "--memory", f"{self.memory!r}"]
        flags += ["--cost", f"f={forward!r},b={backward!r},w={weight!r},comm={transfer!r}"]
        for rank, share in enumerate(self.shares or []):
            for key, time in zip("fbw", (forward, backward, weight)):
                flags += ["--cost", f"r{rank}:{key}={round(time * share, 3)!r}"]
        return [str(flag) for flag in flags]


def grid(seed):
    """All settings, the same ones for a seed."""
    chance = random.Random(seed)
    for p in SIZES:
        for m in (2 * p, 4 * p):
            for costs in COSTS.values():
                for memory in sorted({math.ceil(p / 3), p // 2, math.ceil(2 * p / 3), math.ceil(5 * p / 6)}):
                    yield Setting("line", "loop", p, m, costs, memory)
            for costs in SLOW.values():
                for memory in (p, 3 * p // 2):
                    yield Setting("transfers", "loop", p, m, costs, memory)
            for costs in ("t", "l", "n", "6.2B"):
                yield Setting("tight", "v", p, m, COSTS[costs], p // 2 + 1)
                for memory in (p, 3 * p // 2):
                    yield Setting("v", "v", p, m, COSTS[costs], memory)
            for placement in ("loop", "v"):
                for costs in ("t", "l"):
                    for memory in (math.ceil(2 * p / 3), p):
                        shares = [chance.uniform(1, 4 / 3) for _ in range(p)]
                        group = "tight" if placement == "v" and memory < p else "uneven"
                        yield Setting(group, placement, p, m, COSTS[costs], memory, shares)
        for m in (p // 2, p - 1, p, p + 1):
            for placement in ("loop", "v"):
                for costs in ("t", "l"):
                    yield Setting("few", placement, p, m, COSTS[costs], math.ceil(3 * p / 4))


def best_published(options, setting, result):
    """The least time of a schedule of the same placement that fits, and its name; None if there is none."""
    fitting = [(each[options.objective], each["name"]) for each in result["named"]
               if each["fits"] and each["name"] in PLACED[setting.placement]]
    return min(fitting, default=(None, "none fits"))


def middle(values):
    return sorted(values)[len(values) // 2] if values else 0


def summary(name, improvements, gaps, proved):
    better = 1 - math.exp(sum(math.log(1 - each) for each in improvements) / len(improvements)) if improvements else 0
    print(f"{name:9} {len(gaps)} settings, {len(improvements)} with a published schedule that fits: {better:.2%} better in "
          f"the geometric mean; gap {middle(gaps):.2%} in the median, {max(gaps, default=0):.2%} at most, {proved} proved",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("capo", type=pathlib.Path)
    parser.add_argument("--sample", type=int, help="take about so many settings, evenly over the grid")
    parser.add_argument("--group", help="of this group alone")
    optimise_runs.add_options(parser, "10s")
    parser.add_argument("--objective", choices=("makespan", "span"), default="makespan")
    options = parser.parse_args()

    settings = [setting for setting in grid(options.seed) if options.group in (None, setting.group)]
    total = len(settings)
    if options.sample and options.sample < total:
        settings = [settings[i * total // options.sample] for i in range(options.sample)]
    settings = optimise_runs.shared(options, settings)
    print(f"{len(settings)} of {total} settings, {options.objective}, {options.time} each on {options.threads} threads",
          flush=True)
    groups, worse = {setting.group: ([], [], []) for setting in settings}, 0
    asked = [(setting, [*setting.flags(), "--objective", options.objective]) for setting in settings]
    for setting, result in optimise_runs.Runs(options).all(asked):
        found, bound = result[options.objective], result["lower_bound"][options.objective]
        published, name = best_published(options, setting, result)
        group = groups[setting.group]
        group[1].append(result["gap"])
        group[2].append(result["proved"])
        better = ""
        if published is not None:
            group[0].append(1 - found / published)
            better = f"{1 - found / published:7.2%}"
            worse += found > published * (1 + 1e-9)
        print(f"{setting.name:62} {name:10} {published or 0:9.2f} found {found:9.2f} {better:8} bound {bound:9.2f} "
              f"gap {result['gap']:6.2%}{' proved' if result['proved'] else ''}", flush=True)
    for name, (improvements, gaps, proved) in groups.items():
        summary(name, improvements, gaps, sum(proved))
    for name, left_out in (("not tight", {"tight"}), ("all", set())):
        every = [sum((group[i] for key, group in groups.items() if key not in left_out), []) for i in range(3)]
        summary(name, every[0], every[1], sum(every[2]))
    if worse:
        print(f"{worse} results are worse than a published schedule")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
