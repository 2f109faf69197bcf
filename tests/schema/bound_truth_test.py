"""Reasoning by chance about small problems, against all their orders: tools/check_bound.py shows no bound that an order goes below.

Run by ctest: bound_truth_test.py SOURCE_DIR. bound_test.py begins with certificates of capo and changes one field of each. Here
problems are such as capo would never write as well, whose stages give up too much or too little, and facts follow from each
other in every way that the checker takes: each step of reasoning is asked about tasks and premises by chance, and what it says
is a premise of the next. A bound is false if it is above the least that any order comes to, of all that keep to the limit, as the
checker itself runs them. Each argument and each step has to be taken often.
"""

import collections
import importlib.util
import itertools
import math
import pathlib
import random
import sys

PROBLEMS = 250
MOST_ORDERS = 150  # of all ranks together; problems with more are left out
STEPS = 150  # of reasoning, in each problem and for each objective
SIZES = {"loop": [(1, 1, 4), (2, 1, 2), (2, 1, 3), (2, 1, 4), (3, 1, 2), (2, 2, 1)], "v": [(1, 2, 2), (2, 2, 1)], "bidirectional": [(1, 2, 1), (2, 2, 1)]}


def load(source):
    spec = importlib.util.spec_from_file_location("check_bound", source / "tools" / "check_bound.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stage_by_chance(dice, fuses):
    takes, made = [dice.choice([0, 1, 2, 3, 5]) for _ in range(3)], dice.choice([0, 0, 0.5])
    given_up = dice.choice([0, 0.25, 0.5, 1])
    gift = dice.choice([0, 0, 0, 5e-10, -0.5, 1])
    of = {"takes": takes, "holds": [1, -given_up, min(0, given_up - 1 - made - gift)], "lags": [0, 0], "remakes": made}
    return {**of, "further": takes[2] * dice.choice([0, 0.5, 1])} if fuses else of


def problem_by_chance(checker, dice):
    placement = dice.choice(list(SIZES))
    ranks, chunks, microbatches = dice.choice(SIZES[placement])
    fuses, alike = dice.random() < 0.25, dice.random() < 0.4
    first, lag = stage_by_chance(dice, fuses), dice.choice([0, 1, 3])
    stages = [{**(first if alike else stage_by_chance(dice, fuses)), "lags": [0, 0]} for _ in range(ranks * chunks)]
    given = {"placement": placement, "ranks": ranks, "chunks": chunks, "microbatches": microbatches, "stages": stages,
             "memory_limit": dice.choice([None, 1, 1.5, 2, 3, 2 - 2.4e-9])}
    given |= {"fuse_w": dice.choice([2, 3])} if fuses else {}
    problem = checker.Problem(given)
    for stage, k in itertools.product(range(len(stages)), (0, 1)):
        before = problem.neighbour("FB"[k], stage)
        stages[stage]["lags"][k] = lag if before is not None and problem.rank[before] != problem.rank[stage] else 0
    return checker.Problem(given)


def orders_of(problem, rank):
    """All orders of a rank in which its tasks come behind what they need there, and that keep to the limit."""
    series, found = problem.of_rank[rank], []

    def extend(order, counts, held):
        if len(order) == len(series) * problem.microbatches:
            found.append(" ".join(order))
        for one in series if len(found) <= MOST_ORDERS else ():
            kind, stage = one
            if counts[one] == problem.microbatches or any(counts[other] < problem.how_many(other, one, counts[one]) for other in series):
                continue
            begins = held + (problem.remakes[stage] if kind == "B" else 0)
            after = begins + problem.all_holds[one]
            if problem.limit is None or max(begins, after) <= problem.limit:
                extend([*order, f"{kind}{stage}"], {**counts, one: counts[one] + 1}, after)

    extend([], dict.fromkeys(series, 0), 0)
    return found


def least_of(checker, problem):
    """The least makespan and span of all orders; None where there are none, or too many."""
    orders = [orders_of(problem, rank) for rank in range(problem.ranks)]
    if math.prod(map(len, orders)) > MOST_ORDERS:
        return None
    times = []
    for choice in itertools.product(*orders):
        try:
            times.append(checker.run(problem, choice)[:2])
        except checker.Wrong as wrong:
            assert "waits for ever" in str(wrong), wrong
    return tuple(map(min, zip(*times))) if times else None


def reason(checker, problem, rank, dice, used):
    """Facts that follow from each other, by chance."""
    reasoning = checker.Reasoning(problem, rank, [], False)
    tasks = [(*series, k) for series in problem.takes for k in range(problem.microbatches)]
    wanted = [(side, by, task, []) for task in tasks for side, by in (("head", "start"), ("tail", "end"), ("tail", "work"))]
    for n in range(len(wanted) + STEPS):
        if n < len(wanted):
            side, by, task, premises = wanted[n]
        else:
            side, task, known = dice.choice(["head", "head", "tail"]), dice.choice(tasks), reasoning.facts
            by = dice.choice(["wait", "wait", "work", "memory", "memory-work"])
            before = {first for first, _ in problem.waits_for(task)}
            near = [of for of in known if of.task in before or any(first == task for first, _ in problem.waits_for(of.task))]
            premises = [dice.choice(near)] if by == "wait" and near else dice.sample(known, dice.randint(1, len(known)))
            premises = [of for of in premises if of.side == side]
        try:
            value, _ = (checker.HEADS if side == "head" else checker.TAILS)[by](reasoning, "step", task, premises)
        except (checker.Wrong, KeyError, ValueError):
            continue
        used[f"{side} {by}"] += 1
        reasoning.facts.append(checker.Fact(side, task, value))
    return reasoning


def arguments_of(problem, reasoning, rank, dice):
    best = {}  # by side and task: the fact that says most
    for k, fact in enumerate(reasoning.facts):
        if (fact.side, fact.task) not in best or fact.value > reasoning.facts[best[fact.side, fact.task]].value:
            best[fact.side, fact.task] = k
    for _ in range(8):
        tasks = []
        for series in dice.sample(problem.of_rank[rank], dice.randint(1, len(problem.of_rank[rank]))):
            first = dice.randrange(problem.microbatches)
            last = dice.randrange(first, problem.microbatches)
            head, tail = best.get(("head", (*series, first))), best.get(("tail", (*series, last)))
            tasks.append({"series": f"{series[0]}{series[1]}", "first": first, "last": last, "head": head, "tail": tail})
        yield {"by": "machine", "tasks": tasks}
    yield {"by": "memory", "from": [k for (side, _), k in best.items() if side == "head"]}
    yield from ({"by": by, "from": []} for by in ("L1", "L2"))
    yield from ({"by": "narrowing", "unit": 0.5, "refuted": dice.randrange(80)} for _ in range(8))


def main():
    checker, dice, used = load(pathlib.Path(sys.argv[1])), random.Random(35), collections.Counter()
    while used["problem"] < PROBLEMS:
        problem = problem_by_chance(checker, dice)
        least = least_of(checker, problem)
        if least is None:
            continue
        used["problem"] += 1
        rank = dice.randrange(problem.ranks)
        for own, reached in zip((None, rank), least):
            reasoning = reason(checker, problem, own, dice, used)
            for argument in arguments_of(problem, reasoning, rank, dice):
                try:
                    shown, why = checker.ARGUMENTS[argument["by"]](reasoning, rank, argument)
                except checker.Wrong:
                    continue
                used[argument["by"]] += 1
                assert shown <= reached * (1 + checker.ROUNDING), (float(shown), float(reached), why, vars(problem))
    steps = [f"head {by}" for by in checker.HEADS] + [f"tail {by}" for by in checker.TAILS]
    for name in [*steps, *(by for by in checker.ARGUMENTS if by != "any placement")]:
        assert used[name] >= 50, (name, used)
    print(", ".join(f"{name} {count}" for name, count in used.items()))


if __name__ == "__main__":
    main()
