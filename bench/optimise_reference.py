#!/usr/bin/env python3
"""Runs `capo optimise` against published schedules and proven optima, and counts where it is worse.

    bench/optimise_reference.py build/ci/cli/capo [--all | --sample N] [--time 2s] [--threads 2] [--objective both]
                                [--jobs 8] [--share 1/4] [--rows rows.jsonl]

Rows are those of tests/data/zb_reference.json: 902 orders that published programs make, each with its costs and
memory, and 218 optima of small settings that an exhaustive search proved. Every row is optimised under its own
costs, placement and memory: the limit of the published search, or what the published order holds on its fullest
rank. Without --all a sample is taken that holds rows of every schedule and size, the same each time. optimise_runs.py
tells of --jobs, --share and --rows.

Printed is, for each objective, how many results are not worse than the published one, how many are better and by
how much in the geometric mean, the gap to the bound, how many optima are met, and how many bounds lie above an
optimum, which must be none. Rows that are worse are listed. Orders in which two tasks overlap in less time than
both take (overlap_factor below 1) are no orders that are searched, and are counted apart.

The exit code is 1 if a result is worse, an optimum is not met or a bound is above one, so that a time too short for a
slow machine shows.
"""

import argparse
import json
import math
import pathlib
import sys

sys.dont_write_bytecode = True

import optimise_runs  # noqa: E402, which stands beside this file

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDING = 1e-9


def flags_of(row):
    """The row's step as flags of `capo optimise`."""
    placement = {"linear": "loop", "interleaved": "loop", "V": "v", "bidirectional": "bidirectional"}[row["placement"]]
    flags = ["--ranks", row["p"], "--microbatches", row["m"], "--chunks", row["v"], "--placement", placement]
    flags += ["--cost", f"comm={row['comm']!r}"]
    for key, times in ("f", row["F"]), ("b", row["B"]), ("w", row["W"]):
        if isinstance(times, list):
            for rank, time in enumerate(times):
                flags += ["--cost", f"r{rank}:{key}={time!r}"]
        else:
            flags += ["--cost", f"{key}={times!r}"]
    memory = row["mem_model"]
    flags += ["--mem", f"f={memory['F']!r},b={memory['B']!r},w={memory['W']!r}"]
    limit = row["mem_limit"] if row["mem_limit"] is not None else max(row["peak_mem"])
    return [str(flag) for flag in flags + ["--memory", repr(limit)]]


def optimised(runs, rows, objective_of):
    """Yields each row, its objective and the result."""
    asked = [(row, [*flags_of(row), "--objective", objective_of(row)]) for row in rows]
    for row, result in runs.all(asked):
        yield row, objective_of(row), result


def sampled(rows, count):
    """Rows of every schedule in turn, evenly over the sizes of each."""
    by_schedule = {}
    for row in sorted(rows, key=lambda row: row["p"] * row["m"] * row["v"]):
        by_schedule.setdefault(row["schedule"], []).append(row)
    each = max(1, count // len(by_schedule))
    chosen = []
    for group in by_schedule.values():
        step = max(1, len(group) // each)
        chosen += group[step // 2 :: step][:each]
    return chosen


def geometric_mean(shares):
    return math.exp(sum(map(math.log, shares)) / len(shares)) if shares else 1


def middle(values):
    return sorted(values)[len(values) // 2] if values else 0


def compare(options, runs, rows, objective):
    """Published orders. Returns how many results are worse."""
    shares, gaps, worse = [], [], []
    for row, _, result in optimised(runs, rows, lambda row: objective):
        shares.append(result[objective] / row[objective])
        gaps.append(result["gap"])
        if shares[-1] > 1 + ROUNDING:
            worse.append(f"  worse: {row['id']}: {result[objective]:g} against {row[objective]:g}, from {result['from']}")
        elif options.verbose:
            print(f"  {row['id']}: {shares[-1]:.4f} of the published one, gap {gaps[-1]:.4f}", flush=True)
    better = [share for share in shares if share < 1 - ROUNDING]
    print(f"{objective}: {len(rows) - len(worse)} of {len(rows)} not worse, {len(better)} better by "
          f"{1 - geometric_mean(better):.2%} in the geometric mean; gap to the bound {middle(gaps):.2%} in the median, "
          f"{max(gaps, default=0):.2%} at most, {sum(gap <= ROUNDING for gap in gaps)} proved", flush=True)
    print("\n".join(worse), end="\n" if worse else "", flush=True)
    return len(worse)


def meet(runs, rows):
    """Proven optima. Returns how many are not met or below a bound."""
    met, above, proved = 0, 0, 0
    for row, objective, result in optimised(runs, rows, lambda row: row["objective"]):
        assert result[objective] >= row[objective] * (1 - ROUNDING), f"{row['id']}: better than the optimum"
        met += result[objective] <= row[objective] * (1 + ROUNDING)
        above += result["lower_bound"][objective] > row[objective] * (1 + ROUNDING)
        proved += result["proved"]
        if result[objective] > row[objective] * (1 + ROUNDING):
            print(f"  not met: {row['id']}: {result[objective]:g} against {row[objective]:g}", flush=True)
    print(f"optima: {met} of {len(rows)} met, {proved} of them proved by the bound; {above} bounds above an optimum",
          flush=True)
    return len(rows) - met + above


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("capo", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="all 1,120 rows")
    parser.add_argument("--sample", type=int, default=60, help="published rows, and as many optima")
    optimise_runs.add_options(parser, "2s")
    parser.add_argument("--objective", choices=("makespan", "span", "both"), default="both")
    parser.add_argument("--reference", type=pathlib.Path, default=ROOT / "tests/data/zb_reference.json")
    parser.add_argument("--verbose", action="store_true", help="a line for each row")
    options = parser.parse_args()

    rows = json.loads(options.reference.read_text())["rows"]
    published = [row for row in rows if row["kind"] == "schedule" and row.get("overlap_factor", 1) == 1]
    optima = [row for row in rows if row["kind"] == "optimum"]
    apart = len(rows) - len(published) - len(optima)
    if not options.all:
        published = sampled(published, options.sample)
        optima = optima[:: max(1, len(optima) // options.sample)]
    published, optima = optimise_runs.shared(options, published), optimise_runs.shared(options, optima)
    runs = optimise_runs.Runs(options)
    print(f"{len(published)} published orders and {len(optima)} optima, {options.time} each on {options.threads} threads; "
          f"{apart} with an overlap that is not searched are left out", flush=True)
    bad = meet(runs, optima)
    for objective in ("makespan", "span") if options.objective == "both" else (options.objective,):
        bad += compare(options, runs, published, objective)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
