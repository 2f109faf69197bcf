#!/usr/bin/env python3
"""Holds `capo optimise` against a solver that knows nothing of pipelines: CP-SAT of OR-tools.

    ./dev oracle [--cases N] [--seed N] [--solver-time S] [--time 2s] [--threads 2]
    python3 bench/optimise_oracle.py build/release/cli/capo [...]

Problems are drawn by chance: placement, counts, whole costs of each rank or of all, memory and its limit, objective. The
solver gets each as a certificate of capo's states it: a task is an interval, a rank runs one at a time, a task waits for
others, microbatches of a series run in order, and what a microbatch holds fits under the limit. Where the solver proves an
optimum, capo's result must be that, and its bound no more. Where it runs out of time, capo's result must be no worse than the
best that it has, and neither bound above the other's result. A rank of the solver's may begin later than it could, and has a
shorter span then; so its orders are run as early as they may be, and their span is what counts.

Exit code 0; 1 where a result is worse or a bound is above, with the flags that show it; 5 where OR-tools is not there.
"""

import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

import check_bound  # noqa: E402, which reads a problem from a certificate

MOST_TASKS = 150


def by_chance(dice):
    """Flags of a problem that the solver may close."""
    while True:
        placement = dice.choice(["loop", "loop", "v", "bidirectional"])
        ranks = dice.randint(2, 5)
        chunks = dice.choice([1, 1, 2]) if placement == "loop" else 2
        microbatches = dice.randint(2, 8)
        if placement == "bidirectional" and (microbatches % 2 or ranks % 2):
            continue
        tasks = 3 * ranks * (microbatches if placement == "bidirectional" else chunks * microbatches)
        if tasks <= MOST_TASKS:
            break
    flags = ["--ranks", ranks, "--microbatches", microbatches, "--placement", placement, "--chunks", chunks, "--cost-per", "chunk"]
    for scope in dice.choice([[""], [""], [f"r{rank}:" for rank in range(ranks)]]):
        flags += ["--cost", scope + ",".join(f"{key}={dice.randint(1, 6)}" for key in "fbw")]
    flags += ["--cost", f"comm={dice.choice([0, 1, 1, 2, 4])}", "--objective", dice.choice(["makespan", "span"])]
    flags += ["--mem", dice.choice(["f=1,b=0,w=-1", "f=1,b=-0.5,w=-0.5"])]
    return [str(flag) for flag in flags + dice.choice([[], ["--memory", dice.choice([1, 1.5, 2, 2.5, 3, 4])]])]


def optimised(options, flags, folder):
    """Capo's report, and the problem as its certificate states it."""
    file = folder / "bound.json"
    command = [str(options.capo), "optimise", *flags, "--format", "json", "--bound-out", str(file)]
    command += ["--time", options.time, "--threads", str(options.threads), "--seed", str(options.seed)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"exit code {ran.returncode}\n{' '.join(command)}\n{ran.stderr}")
    return json.loads(ran.stdout), check_bound.Problem(json.loads(file.read_text())["problem"])


def whole(values):
    """What to multiply fractions by, so that all of them are whole."""
    return math.lcm(*(value.denominator for value in values))


def modelled(cp_model, problem, objective, worst):
    """The problem for the solver, in whole units; how many units one of the problem's has."""
    unit = whole([*problem.takes.values(), *problem.lag.values()])
    model, tasks = cp_model.CpModel(), {}
    # No step that is worth looking at takes longer; a shorter span may be that of a longer makespan.
    work = problem.microbatches * (sum(problem.takes.values()) + sum(problem.lag.values()))
    horizon = math.ceil((worst if objective == "makespan" else work) * unit)
    for series, takes in problem.takes.items():
        for k in range(problem.microbatches):
            begin = model.NewIntVar(0, horizon, "")
            tasks[(*series, k)] = model.NewFixedSizeIntervalVar(begin, int(takes * unit), "")
    for task, interval in tasks.items():
        for first, lag in problem.waits_for(task):
            model.Add(interval.StartExpr() >= tasks[first].EndExpr() + int(lag * unit))
    for rank in range(problem.ranks):
        mine = {task: interval for task, interval in tasks.items() if problem.rank[task[1]] == rank}
        model.AddNoOverlap(mine.values())
        if problem.limit is not None:
            fit_memory(model, problem, mine)
    total = model.NewIntVar(0, math.ceil(worst * unit), "")  # anything that is no worse than capo's will do
    for rank in range(problem.ranks):
        begins, ends = model.NewIntVar(0, horizon, ""), model.NewIntVar(0, horizon, "")
        for task, interval in tasks.items():
            if problem.rank[task[1]] == rank:
                model.Add(begins <= interval.StartExpr())
                model.Add(ends >= interval.EndExpr())
        model.Add(total >= (ends - begins if objective == "span" else ends))
    model.Minimize(total)
    return model, unit, tasks


def fit_memory(model, problem, tasks):
    """A forward holds one part until its backward ends, and the other until its weight gradient does."""
    unit = whole(problem.holds.values())
    intervals, demands = [], []
    for (kind, stage, k), forward in tasks.items():
        for until in "BW" if kind == "F" else "":
            amount = int(-problem.holds[until, stage] * unit)
            if amount > 0:
                begin, end = forward.StartExpr(), tasks[until, stage, k].EndExpr()
                length = model.NewIntVar(0, 1 << 40, "")
                intervals.append(model.NewIntervalVar(begin, length, end, ""))
                demands.append(amount)
    model.AddCumulative(intervals, demands, math.floor(problem.limit * unit))


def solved(cp_model, options, problem, objective, worst):
    """The best makespan or span that the solver's orders come to, and its bound; None for what it does not have."""
    model, unit, tasks = modelled(cp_model, problem, objective, worst)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = options.solver_time
    solver.parameters.num_workers = max(options.threads, 2)
    solver.parameters.random_seed = options.seed
    status = solver.Solve(model)
    known = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    if status in (cp_model.INFEASIBLE, cp_model.MODEL_INVALID):
        return -math.inf, math.inf  # there is an order, so that this is wrong
    least = solver.BestObjectiveBound() / unit
    if not known:
        return None, least
    if objective == "makespan":
        return solver.ObjectiveValue() / unit, least
    begins = sorted((solver.Value(interval.StartExpr()), problem.rank[task[1]], task) for task, interval in tasks.items())
    orders = [" ".join(f"{task[0]}{task[1]}" for _, of, task in begins if of == rank) for rank in range(problem.ranks)]
    return float(check_bound.run(problem, orders)[1]), least


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("capo", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--time", default="2s", help="of capo for each case")
    parser.add_argument("--solver-time", type=float, default=20, help="seconds of the solver for each case")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="a line for each case")
    options = parser.parse_args()
    try:
        import ortools
        from ortools.sat.python import cp_model
    except ImportError as why:
        print(f"no solver: {why}; `./dev oracle` installs OR-tools", file=sys.stderr)
        return 5
    dice = random.Random(options.seed)
    closed = met = proved = reached = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in range(options.cases):
            flags = by_chance(dice)
            report, problem = optimised(options, flags, pathlib.Path(folder))
            objective = report["objective"]
            value, bound = report[objective], report["lower_bound"][objective]
            best, least = solved(cp_model, options, problem, objective, value)
            is_closed = best is not None and best <= least + 1e-6
            bad = []
            if best is not None and value > best + 1e-6:
                bad.append("worse than the solver's")
            if best is not None and bound > best + 1e-6:
                bad.append("the bound is above what the solver found")
            if value < least - 1e-6:
                bad.append("better than the solver's bound")
            closed += is_closed
            met += is_closed and abs(value - best) <= 1e-6
            proved += is_closed and report["proved"]
            reached += is_closed and bound >= best - 1e-6
            wrong += bool(bad)
            if bad or options.verbose:
                print(f"{', '.join(bad) or 'right'}: capo {value:g}, at least {bound:g}; solver {best}, at least {least:g}: "
                      f"capo optimise {' '.join(flags)}", flush=True)
    print(f"{options.cases} problems by chance, seed {options.seed}, up to {MOST_TASKS} tasks; capo {options.time} on "
          f"{options.threads} threads, CP-SAT of OR-tools {ortools.__version__} {options.solver_time:g} s")
    print(f"{closed} closed by the solver: capo's result is the optimum of {met}, its bound of {reached} and proved as such of "
          f"{proved}; {wrong} of all are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
