#!/usr/bin/env python3
"""Checks a certificate of `capo optimise`, without a line of capo's.

    capo optimise --ranks 4 --microbatches 8 --bound-out bound.json
    tools/check_bound.py [--explain] bound.json

It is one file, to be read from here to its end before it is believed. What it holds if it says so:

  - no order of the problem in the file gets below the bound
  - the orders in it run, keep to the memory limit and come to the times that it states

It does not know whether the problem is the one that was meant: what tasks and messages take and
what microbatches hold is capo's word. Where capo searched all orders, it checks that this is said
of what the orders come to, and not that nothing is better: that would be to search them again.

The problem. A task is F, B or W (forward, input half of the backward, weight gradient) of a stage
and a microbatch, `B3.7`. A rank runs one task at a time. Of a series, one kind in one stage,
microbatches run in order. A forward waits for that of the stage before, a backward for its forward
and for that of the stage behind, a weight gradient for its backward; between ranks a message takes
its lag. A task holds memory from its beginning on if it takes some, and gives it up at its end.

  calls      Weight gradients of one stage that stand next to each other may be one call: the problem
             says with `fuse_w` how many a call takes, and with `further` what each one but the
             first takes there. n of them take no less than n times the share of each in the best
             call, in any calls, and those behind a task fill calls of their own: so the reasoning
             counts that share for each, and only the run of the orders makes calls.
  remaking   A stage that recomputes says with `remakes` what its backward takes when it begins, on
             top of what its forward holds; what it gives up at its end and its weight gradient
             stands in `holds`. Orders are run with all of that. The reasoning leaves out what is
             made again, but for what it holds over time and for the ways through a rank's tasks: a
             stage then holds what its forward takes until its weight gradient is done, or less
             where less is left behind the backward, which is no more than it holds.

The reasoning. A fact is that a task begins no earlier than so long after the beginning (its head),
or that so much follows its end (its tail). Of the makespan, beginning and end are those of the
step; of a span, those of the rank's own tasks. A fact follows by a step from facts before it, and
an argument makes a bound of facts, or of none. Each is a function below, whose comment says why it
is right; its value is worked out here, and none is read from the file:

  step of a head       start, wait, work, memory, memory-work
  step of a tail       end, wait, work
  argument             machine, memory, L1, L2, narrowing, any placement

Numbers are exact fractions; capo's own sums are rounded, so a billionth is allowed where they are
compared. --explain prints each step. Exit code 0: it holds; 1: the line says what does not.
"""

import json
import math
import re
import sys
from fractions import Fraction
from typing import NamedTuple

ROUNDING = Fraction(1, 10**9)
KINDS = "FBW"


class Wrong(Exception):
    """What the certificate says does not hold."""


def require(holds, what):
    if not holds:
        raise Wrong(what)


def is_count(value, below=None):
    return type(value) is int and value >= 0 and (below is None or value < below)


def number(value, what, least=None):
    """A finite number, exactly."""
    require(type(value) in (int, float) and math.isfinite(value), f"{what} is no number: {value!r}")
    exact = Fraction(value)
    require(least is None or exact >= least, f"{what} is less than {least}: {value}")
    return exact


def shown(value):
    return f"{float(value):g}"


# --- the problem ---


class Problem:
    """Ranks, stages and what they take; series are pairs of a kind and a stage, tasks triples.

    `all_holds` and `in_call` are what the orders are run with. `takes` of a weight gradient and `holds` are what the
    reasoning counts, which is no more."""

    def __init__(self, given):
        self.ranks, self.chunks, self.microbatches = (given[key] for key in ("ranks", "chunks", "microbatches"))
        for key in ("ranks", "chunks", "microbatches"):
            require(is_count(given[key]) and given[key] > 0, f"problem: {key} is no count above 0")
        self.place(given["placement"], given["stages"])
        limit = given["memory_limit"]
        self.limit = None if limit is None else number(limit, "problem: memory_limit", 0) * (1 + ROUNDING)
        self.fuse_w = given.get("fuse_w", 1)
        require(is_count(self.fuse_w) and self.fuse_w > 0, "problem: fuse_w is no count above 0")
        self.takes, self.holds, self.lag = {}, {}, {}
        self.remakes = {}  # by stage: what its backward takes when it begins
        self.in_call = {}  # by stage: what the first weight gradient of a call takes, and each further one
        for stage, of in enumerate(given["stages"]):
            self.read_stage(stage, of, "fuse_w" in given)
        for kind, stage in self.lag:
            before = self.neighbour(kind, stage)
            if before is None or self.rank[before] == self.rank[stage]:
                require(self.lag[kind, stage] == 0, f"problem: {kind}{stage} waits for no message and has a lag")
        self.links = self.links_of(given["links"]) if "links" in given else None
        self.of_rank = [[series for series in self.takes if self.rank[series[1]] == rank] for rank in range(self.ranks)]
        self.all_holds = dict(self.holds)
        self.count_less()

    # --- as the file states it ---

    def place(self, placement, stages):
        """Says of each stage which rank it is on, and which of two pipelines it is of."""
        self.placement = placement
        ranks, custom = self.ranks, type(placement) is list
        places = {"loop": lambda stage: stage % ranks,
                  "v": lambda stage: stage % ranks if stage // ranks % 2 == 0 else ranks - 1 - stage % ranks,
                  "bidirectional": lambda stage: stage if stage < ranks else 2 * ranks - 1 - stage}
        require(custom or placement in places, f"problem: there is no placement {placement!r}")
        require(len(stages) == self.ranks * self.chunks, f"problem: it has {len(stages)} stages, not {self.ranks * self.chunks}")
        require(placement != "bidirectional" or self.chunks == 2, "problem: two pipelines need two chunks a rank")
        self.rank = self.placed(placement) if custom else [places[placement](stage) for stage in range(len(stages))]
        half = len(stages) // 2
        self.pipeline = [int(placement == "bidirectional" and stage >= half) for stage in range(len(stages))]

    def placed(self, stages_of):
        """The rank of each stage, of the stages of each rank."""
        require(len(stages_of) == self.ranks and all(len(of) == self.chunks and of == sorted(of) for of in stages_of),
                f"problem: the placement has not {self.chunks} stages of each of {self.ranks} ranks, each rank's in order")
        rank = {stage: of for of, stages in enumerate(stages_of) for stage in stages}
        require(all(is_count(stage) for stages in stages_of for stage in stages) and
                sorted(rank) == list(range(self.ranks * self.chunks)), "problem: a stage is not placed once")
        return [rank[stage] for stage in sorted(rank)]

    def read_stage(self, stage, of, fuses):
        for k, kind in enumerate(KINDS):
            self.takes[kind, stage] = number(of["takes"][k], f"problem: what {kind}{stage} takes", 0)
            self.holds[kind, stage] = number(of["holds"][k], f"problem: what {kind}{stage} holds")
        require(len(of["takes"]) == len(of["holds"]) == 3 and len(of["lags"]) == 2, f"problem: stage {stage} has other fields")
        self.remakes[stage] = number(of.get("remakes", 0), f"problem: what B{stage} makes again", 0)
        require(self.holds["F", stage] >= 0 >= max(self.holds["B", stage], self.holds["W", stage]),
                f"problem: stage {stage} takes memory behind its forward")
        require(fuses == ("further" in of), f"problem: stage {stage} has `further`, or the problem `fuse_w`, without the other")
        first = self.takes["W", stage]
        self.in_call[stage] = first, number(of["further"], f"problem: what a further W{stage} takes", 0) if fuses else first
        self.lag["F", stage], self.lag["B", stage] = (number(lag, f"problem: a lag of stage {stage}", 0) for lag in of["lags"])

    def links_of(self, given):
        """What a message takes from each rank to each other one, as the stages say where they have one."""
        require(len(given) == self.ranks and all(len(row) == self.ranks for row in given), "problem: links have not a row and a column for each rank")
        links = [[number(each, "problem: a link", 0) for each in row] for row in given]
        for (kind, stage), lag in self.lag.items():
            before = self.neighbour(kind, stage)
            if before is not None and self.rank[before] != self.rank[stage]:
                require(lag == links[self.rank[before]][self.rank[stage]], f"problem: {kind}{stage} waits longer or shorter than its link says")
        return links

    # --- as the reasoning counts it ---

    def count_less(self):
        """Takes off what the reasoning does not count: gifts, calls and what is made again."""
        # Nobody gives up more than it took, as the reasoning has it, but there is room for all gifts that there can be.
        self.room = None if self.limit is None else self.limit + self.microbatches * sum(map(self.gift, self.remakes))
        for stage in self.remakes:
            self.takes["W", stage] = self.least_weight(stage)
        for stage, made in self.remakes.items():
            if made == 0:
                continue
            left = made + self.holds["B", stage]  # behind the backward, more than the forward took
            self.holds["B", stage] = min(Fraction(0), left)
            if left >= 0:
                self.holds["W", stage] = -self.holds["F", stage]

    def gift(self, stage):
        """What a microbatch gives up beyond what it takes: next to nothing, where holds are rounded."""
        return max(Fraction(0), -sum(self.all_holds[kind, stage] for kind in KINDS) - self.remakes[stage])

    def least_weight(self, stage):
        """What a weight gradient takes at least: its share of a call that is as good as any. Until a call is over, each of its
        microbatches holds what its forward took and its backward left, within the room."""
        first, further = self.in_call[stage]
        most = min(self.fuse_w, self.microbatches)
        held = self.all_holds["F", stage] + self.remakes[stage] + self.all_holds["B", stage]
        if self.room is not None and held > 0:
            most = max(1, min(most, math.floor(self.room / held)))
        return min(first, (first + (most - 1) * further) / most)

    # --- which task comes before which ---

    def stages_of(self, rank):
        return [stage for stage, of in enumerate(self.rank) if of == rank]

    def neighbour(self, kind, stage):
        """The stage whose task of the same kind and microbatch this one waits for."""
        other = stage - 1 if kind == "F" else stage + 1
        return other if 0 <= other < len(self.rank) and self.pipeline[other] == self.pipeline[stage] else None

    def waits_for(self, task):
        """The tasks that a task waits for directly, each with what passes between its end and this one."""
        kind, stage, k = task
        waits = []
        if k > 0:
            waits.append(((kind, stage, k - 1), 0))
        if kind in "FB" and self.neighbour(kind, stage) is not None:
            waits.append(((kind, self.neighbour(kind, stage), k), self.lag[kind, stage]))
        if kind != "F":
            waits.append((("F" if kind == "B" else "B", stage, k), 0))
        return waits

    def how_many(self, first, second, k):
        """Of a series, the tasks that come before task k of another one: those of microbatches 0 to so many - 1.

        Behind F come the forwards of later stages, and by way of the last stage all backwards and weight gradients of the
        pipeline; behind B those of earlier stages, with their weight gradients and its own; behind W nothing."""
        (kind, a), (of, b) = first, second
        if self.pipeline[a] != self.pipeline[b]:
            return 0
        if first == second:
            return k
        if kind == "F":
            return k + 1 if of != "F" or a < b else 0
        if kind == "B" and of != "F":
            return k + 1 if a > b or (of == "W" and a == b) else 0
        return 0

    def comes_before(self, first, second):
        return first[2] < self.how_many(first[:2], second[:2], second[2])

    def work_before(self, task):
        """The tasks of a task's rank that come before it: their work, and the first ones of each series."""
        work, firsts = Fraction(0), []
        for series in self.of_rank[self.rank[task[1]]]:
            many = self.how_many(series, task[:2], task[2])
            work += many * self.takes[series]
            if many:
                firsts.append((*series, 0))
        return work, firsts

    def work_behind(self, task):
        """The work of a task's rank behind it: of each series from the same microbatch on, or from the next one on, or none."""
        work = Fraction(0)
        for series in self.of_rank[self.rank[task[1]]]:
            behind = [j for j in (task[2], task[2] + 1) if self.how_many(task[:2], series, j) > task[2]]
            work += max(0, self.microbatches - behind[0]) * self.takes[series] if behind else 0
        return work

    def residence(self, stage):
        """At least so long from the beginning of a forward to the end of its backward."""
        time = self.takes["F", stage] + self.takes["B", stage]
        behind = self.neighbour("B", stage)
        return time if behind is None else time + self.residence(behind) + self.lag["F", behind] + self.lag["B", stage]


def name_of(task):
    return f"{task[0]}{task[1]}.{task[2]}"


def task_of(problem, text, what):
    match = re.fullmatch(r"([FBW])(0|[1-9]\d*)\.(0|[1-9]\d*)", text)
    require(match is not None, f"{what}: {text!r} names no task")
    task = match[1], int(match[2]), int(match[3])
    require(task[1] < len(problem.rank) and task[2] < problem.microbatches, f"{what}: there is no task {text}")
    return task


# --- facts, and the steps by which they follow ---


class Fact(NamedTuple):
    side: str  # "head" or "tail"
    task: tuple
    value: Fraction


class Reasoning:
    """The facts of a certificate, each with its value worked out from those before it."""

    def __init__(self, problem, rank, given, explain):
        self.problem = problem
        self.rank = rank  # whose span it is; None: the makespan
        self.facts = []
        for k, of in enumerate(given):
            what = f"fact {k}"
            side = "head" if "head" in of else "tail"
            require(set(of) == {side, "by", "from"}, f"{what} has other fields than a head or a tail, `by` and `from`")
            steps = HEADS if side == "head" else TAILS
            require(of["by"] in steps, f"{what}: there is no step {of['by']!r} for a {side}")
            require(all(is_count(j, k) for j in of["from"]), f"{what} follows from what is no fact before it")
            task = task_of(problem, of[side], what)
            value, why = steps[of["by"]](self, what, task, [self.facts[j] for j in of["from"]])
            self.facts.append(Fact(side, task, value))
            if explain:
                says = "begins at" if side == "head" else "is followed by"
                print(f"{what}: {name_of(task)} {says} {shown(value)} at least, {why}")

    def counts(self, task):
        """Whether the beginning and the end that are meant are those of the task's rank."""
        return self.rank is None or self.problem.rank[task[1]] == self.rank

    def fact(self, number_of, side, task, what):
        require(is_count(number_of, len(self.facts)), f"{what}: there is no fact {number_of}")
        fact = self.facts[number_of]
        require(fact.side == side, f"{what}: fact {number_of} is about no {side}")
        require(fact.task == task, f"{what}: fact {number_of} is about {name_of(fact.task)} and not about {name_of(task)}")
        return fact.value

    # --- heads ---

    def head_by_start(self, what, task, premises):
        """No task begins before the beginning."""
        require(not premises and self.counts(task), f"{what}: the span of rank {self.rank} does not begin with another rank")
        return Fraction(0), "since nothing begins before the beginning"

    def head_by_wait(self, what, task, premises):
        """A task begins when one that it waits for has begun and ended, and the message has come."""
        require(len(premises) == 1 and premises[0].side == "head", f"{what} follows from the head of one task that it waits for")
        first = premises[0].task
        lags = [lag for before, lag in self.problem.waits_for(task) if before == first]
        require(lags, f"{what}: {name_of(task)} does not wait for {name_of(first)}")
        return premises[0].value + self.problem.takes[first[:2]] + lags[0], f"since it waits for {name_of(first)}"

    def head_by_work(self, what, task, premises):
        """A rank runs one at a time all that comes before a task, from when the first of it begins."""
        work, firsts = self.problem.work_before(task)
        begins = self.rank_begins(what, firsts, premises)
        return begins + work, f"since its rank runs {shown(work)} before it, from {shown(begins)} on"

    def rank_begins(self, what, firsts, premises):
        """No task of these begins before this time: each is one that a premise is about, or behind one."""
        require(firsts, f"{what}: its rank runs nothing before it")
        require(premises and all(of.side == "head" for of in premises), f"{what} follows from heads")
        for first in firsts:
            known = any(of.task == first or self.problem.comes_before(of.task, first) for of in premises)
            require(known, f"{what}: it follows from nothing when {name_of(first)} begins")
        return min(of.value for of in premises)

    def head_by_memory(self, what, task, premises):
        """A forward begins when the first of some tasks has ended, each with the latest head that premises give it.

        Each microbatch gives up no more than it took, so that so many have given up something, the last of them at some
        stage: at the end of its input half if that gives up any, else of its weight gradient."""
        problem = self.problem
        stages, held, excess = self.excess(what, task)
        last = math.ceil(excess / held) - 1
        ends = []
        for stage in stages:
            kind = "B" if problem.holds["B", stage] < 0 else "W"
            known = [of for of in premises if of.side == "head" and of.task[:2] == (kind, stage) and of.task[2] <= last]
            require(known, f"{what}: it follows from nothing when {kind}{stage} gives up memory")
            ends.append(max(of.value for of in known) + problem.takes[kind, stage])
        return min(ends), f"since microbatch {last} must have given up memory by then"

    def head_by_memory_work(self, what, task, premises):
        """Beside what comes before a forward its rank runs what gives up memory, which none of that does: of each stage no less
        time for what it gives up than input halves alone take, or whole backwards, whichever is less."""
        problem = self.problem
        stages, _, excess = self.excess(what, task)
        times = []  # to give up one
        for s in stages:
            b, w, half = problem.takes["B", s], problem.takes["W", s], -problem.holds["B", s]
            whole = half - problem.holds["W", s]
            times += [b / half] if half > 0 else []
            times += [(b + w) / whole] if whole > 0 else []
        work, firsts = problem.work_before(task)
        begins = self.rank_begins(what, firsts, premises)
        least = excess * min(times)
        return begins + work + least, f"since {shown(excess)} must have been given up, which takes {shown(least)}"

    def excess(self, what, task):
        """What must have been given up before a forward begins, and what one microbatch takes up to this stage.

        Forwards up to this stage, of this microbatch and those before it, have begun; all others hold no less than nothing."""
        problem, (kind, stage, k) = self.problem, task
        require(kind == "F" and problem.room is not None, f"{what}: memory delays forwards, where it has a limit")
        stages = [s for s in problem.stages_of(problem.rank[stage]) if s <= stage and problem.pipeline[s] == problem.pipeline[stage]]
        held = sum(problem.holds["F", s] for s in stages)
        excess = (k + 1) * held - problem.room
        require(excess > 0, f"{what}: so many microbatches fit")
        return stages, held, excess

    # --- tails ---

    def tail_by_end(self, what, task, premises):
        """No task ends behind the end."""
        require(not premises and self.counts(task), f"{what}: the span of rank {self.rank} does not end with another rank")
        return Fraction(0), "since nothing ends behind the end"

    def tail_by_wait(self, what, task, premises):
        """Behind a task the message goes, one that waits for it runs, and what follows that follows."""
        require(len(premises) == 1 and premises[0].side == "tail", f"{what} follows from the tail of one task that waits for it")
        later = premises[0].task
        lags = [lag for before, lag in self.problem.waits_for(later) if before == task]
        require(lags, f"{what}: {name_of(later)} does not wait for {name_of(task)}")
        return lags[0] + self.problem.takes[later[:2]] + premises[0].value, f"since {name_of(later)} waits for it"

    def tail_by_work(self, what, task, premises):
        """A rank runs one at a time all that comes behind a task."""
        require(not premises and self.counts(task), f"{what}: the span of rank {self.rank} does not end with another rank")
        work = self.problem.work_behind(task)
        return work, f"since its rank runs {shown(work)} behind it"


HEADS = {"start": Reasoning.head_by_start, "wait": Reasoning.head_by_wait, "work": Reasoning.head_by_work,
         "memory": Reasoning.head_by_memory, "memory-work": Reasoning.head_by_memory_work}
TAILS = {"end": Reasoning.tail_by_end, "wait": Reasoning.tail_by_wait, "work": Reasoning.tail_by_work}


# --- arguments: each returns a bound, and why it is one ---


def by_machine(reasoning, rank, argument):
    """A rank runs one task at a time: the least head, all the work and the least tail follow each other."""
    problem = reasoning.problem
    heads, tails, work, seen = [], [], Fraction(0), set()
    require(argument["tasks"], "argument: it takes no tasks")
    for of in argument["tasks"]:
        match = re.fullmatch(r"([FBW])(0|[1-9]\d*)", of["series"])
        require(match is not None and int(match[2]) < len(problem.rank), f"argument: {of['series']!r} names no series")
        series = match[1], int(match[2])
        what = f"argument: {of['series']}"
        require(problem.rank[series[1]] == rank, f"{what} is not on rank {rank}")
        require(series not in seen, f"{what} stands twice")
        seen.add(series)
        first, last = of["first"], of["last"]
        require(is_count(first) and is_count(last, problem.microbatches) and first <= last, f"{what} has no tasks {first} to {last}")
        heads.append(reasoning.fact(of["head"], "head", (*series, first), what))
        tails.append(reasoning.fact(of["tail"], "tail", (*series, last), what))
        work += (last - first + 1) * problem.takes[series]
    names = ", ".join(f"{of['series']}.{of['first']} to {of['last']}" for of in argument["tasks"])
    return (min(heads) + work + min(tails),
            f"rank {rank} runs {names}: none begins before {shown(min(heads))}, together they take {shown(work)}, and "
            f"{shown(min(tails))} at least follows each of them")


def by_memory(reasoning, rank, argument):
    """What a microbatch holds times how long, over all of them, is at most the limit times the rank's time.

    It holds what its forward takes from there to the end of its backward, what is made again while that runs, and what is
    left then until its weight gradient is done."""
    problem = reasoning.problem
    require(problem.room is not None and problem.room > 0, "argument: there is no memory limit above 0")
    stages = problem.stages_of(rank)
    begins = Fraction(0)
    require(all(is_count(k, len(reasoning.facts)) for k in argument["from"]), "argument: it follows from what is no fact")
    if reasoning.rank is None:
        begins = reasoning.rank_begins("argument", [("F", stage, 0) for stage in stages],
                                       [reasoning.facts[k] for k in argument["from"]])
    held = Fraction(0)
    for stage in stages:
        taken, kept = problem.holds["F", stage], -problem.all_holds["W", stage]
        held += taken * problem.residence(stage) + problem.remakes[stage] * problem.takes["B", stage]
        held += kept * problem.takes["W", stage]
    held *= problem.microbatches
    return (begins + held / problem.room,
            f"microbatches hold {shown(held)} of memory times time on rank {rank}, within {shown(problem.room)}, from "
            f"{shown(begins)} on")


# --- the closed forms, where all stages cost the same ---


class Uniform:
    """The letters of the closed forms: times of a chunk, the same everywhere, of one pipeline down the ranks, or down and up."""

    def __init__(self, problem):
        linear = problem.placement == "loop" and problem.chunks == 1
        require(linear or (problem.placement == "v" and problem.chunks == 2), "argument: the closed forms know a line and a V of two chunks")
        same = all(problem.takes[kind, stage] == problem.takes[kind, 0] and problem.holds[kind, stage] == problem.holds[kind, 0]
                   for kind in KINDS for stage in range(len(problem.rank)))
        lags = {problem.lag[kind, stage] for kind in "FB" for stage in range(len(problem.rank))
                if problem.neighbour(kind, stage) is not None and problem.rank[problem.neighbour(kind, stage)] != problem.rank[stage]}
        require(same and len(lags) <= 1, "argument: the closed forms are for costs that are the same everywhere")
        self.linear, self.p, self.m = linear, problem.ranks, problem.microbatches
        self.f, self.b, self.w = (problem.takes[kind, 0] for kind in KINDS)
        self.c = lags.pop() if lags else Fraction(0)
        takes = problem.holds["F", 0]
        self.kept = -problem.holds["W", 0] / takes if takes else Fraction(0)
        self.memory = problem.room / takes if takes and problem.room is not None else None  # forwards that fit
        require(self.memory is None or self.memory >= 1, "argument: no forward fits")

    def fit(self, forwards):
        return forwards if self.memory is None else min(forwards, math.floor(self.memory))

    def chain(self, i):
        """From the beginning of the first forward of rank i to that of its first backward, at least."""
        if self.linear:
            return (self.p - i) * self.f + (self.p - 1 - i) * (self.b + 2 * self.c)
        return (2 * self.p - i) * self.f + i * self.b + (2 * self.p - 2) * self.c

    def passes(self):
        return 1 if self.linear else 2

    def head(self, i):
        """A rank is idle before its first backward: no more than so many forwards fit, and nothing else can run."""
        return max(Fraction(0), self.chain(i) - self.fit(self.passes() * self.m) * self.f)

    def offer(self):
        """The most work that other microbatches can do on a full rank between a forward and its backward, besides forwards. All that
        do some are held when it begins, whole before their backward and with what is kept before their weight gradient."""
        room = self.memory - 1
        return max(whole * (self.b + self.w) + math.floor((room - whole) / self.kept) * self.w for whole in range(math.floor(room) + 1))

    def idle(self, i):
        """Between a forward and its backward a full rank of a line idles again and again: the windows from F(j) to B(j) of j =
        0, k, 2k and so on and of the last microbatch do not overlap, if k microbatches fit."""
        idle, k = self.head(i), self.fit(self.m)
        if self.linear and self.memory is not None and self.m > k and self.kept > 0:
            offer = self.offer()
            idle += (self.m - 1 - k) // k * max(Fraction(0), self.chain(i) - k * self.f - offer)
            idle += max(Fraction(0), self.chain(i) - self.f - offer)
        return idle


def by_l1(reasoning, rank, argument):
    """A rank begins when the first microbatch has come to it, runs all its tasks, and is idle again and again."""
    require(argument["from"] == [], "argument: a closed form follows from no facts")
    u = Uniform(reasoning.problem)
    begins = rank * (u.f + u.c) if reasoning.rank is None else Fraction(0)
    work = u.passes() * u.m * (u.f + u.b + u.w)
    return (begins + work + u.idle(rank),
            f"rank {rank} begins at {shown(begins)}, works {shown(work)} and is idle for {shown(u.idle(rank))}, since no more "
            f"fits into its memory")


def by_l2(reasoning, rank, argument):
    """A rank begins, waits for its first backward and runs all forwards and backwards; the last backward then goes back to the
    first rank, where its weight gradient follows."""
    require(argument["from"] == [], "argument: a closed form follows from no facts")
    u = Uniform(reasoning.problem)
    require(reasoning.rank is None, "argument: L2 says nothing of a span")
    begins, follows = rank * (u.f + u.c), rank * (u.b + u.c) + u.w
    return (begins + u.head(rank) + u.passes() * u.m * (u.f + u.b) + follows,
            f"rank {rank} begins at {shown(begins)}, waits {shown(u.head(rank))} for its first backward and runs all "
            f"forwards and backwards, and {shown(follows)} follows")


# --- narrowing: a time by which all cannot have ended ---


class RankStates:
    """What a rank may run next whose chunks cost and hold the same. A state counts the forwards, the input halves and the
    weight gradients that it has run: nothing else says what it holds. Memory is counted in whole shares."""

    def __init__(self, problem, rank, passes):
        stages = problem.stages_of(rank)
        self.series = [[(kind, s) for s in stages] for kind in KINDS]
        self.count, self.passes = problem.microbatches * len(stages), passes
        remakes, amounts = problem.remakes[stages[0]], [problem.all_holds[kind, stages[0]] for kind in KINDS]
        shares = math.lcm(*(amount.denominator for amount in (*amounts, remakes)))
        self.made, self.holds = int(remakes * shares), [int(amount * shares) for amount in amounts]
        self.holds[1] += self.made  # once a backward is over
        self.limit = None if problem.limit is None else math.floor(problem.limit * shares)

    def next_of(self, state):
        """The kinds of task that may run in a state, each with the state behind it. So many backwards are of so many
        microbatches at least, all of whose forwards here came before; a weight gradient comes behind its backward."""
        f, b, w = state
        held = f * self.holds[0] + b * self.holds[1] + w * self.holds[2]
        if f < self.count and (self.limit is None or held + self.holds[0] <= self.limit):
            yield 0, (f + 1, b, w)
        has_room = self.made == 0 or self.limit is None or held + self.made <= self.limit
        if b < self.count and -(-(b + 1) // self.passes) * self.passes <= f and has_room:
            yield 1, (f, b + 1, w)
        if w < b:
            yield 2, (f, b, w + 1)

    def times(self, takes, first, last, until):
        """For the n-th task of each kind, between the times first[kind][n] and last[kind][n], the earliest and the latest time
        at which it begins on any way from the first state to the last one by `until`; None if there is no way."""
        end = (self.count, self.count, self.count)
        layers = self.reached(takes, first, last)
        if layers[-1].get(end, until + 1) > until:
            return None
        left = {end: until}  # of the states behind a task: the latest time from which the rest fits
        begins, latest = [[None] * self.count for _ in KINDS], [[None] * self.count for _ in KINDS]
        for reached in reversed(layers[:-1]):
            from_here = {}
            for state, now in reached.items():
                for kind, then in self.next_of(state):
                    if then not in left:
                        continue
                    n = state[kind]
                    begin, at_last = max(now, first[kind][n]), min(left[then] - takes[kind], last[kind][n])
                    if begin > at_last:
                        continue
                    from_here[state] = max(at_last, from_here.get(state, at_last))
                    begins[kind][n] = begin if begins[kind][n] is None else min(begin, begins[kind][n])
                    latest[kind][n] = at_last if latest[kind][n] is None else max(at_last, latest[kind][n])
            left = from_here
        return (begins, latest) if left else None

    def reached(self, takes, first, last):
        """The states after so many tasks, each with the time at which it is reached at the earliest."""
        layers = [{(0, 0, 0): min(0, first[0][0])}]
        for _ in range(3 * self.count):
            reached = {}
            for state, now in layers[-1].items():
                for kind, then in self.next_of(state):
                    begin = max(now, first[kind][state[kind]])
                    if begin <= last[kind][state[kind]]:
                        reached[then] = min(begin + takes[kind], reached.get(then, begin + takes[kind]))
            layers.append(reached)
        return layers


class Narrowing:
    """The times at which tasks may begin if all is to end by a given time, in whole units: from the first one to the last one
    that nothing refutes. What tasks wait for narrows them, and on a rank whose chunks are alike the ways through its states."""

    ROUNDS = 16  # all ranks are looked at so often at most; capo gives up sooner

    def __init__(self, problem, unit, own):
        self.problem, self.m = problem, problem.microbatches
        self.takes = {series: self.steps(time, unit) for series, time in problem.takes.items()}
        self.lag = {series: self.steps(time, unit) for series, time in problem.lag.items()}
        self.own = own
        alike = [rank for rank in range(problem.ranks) if own in (None, rank) and self.is_alike(rank)]
        self.states = {rank: RankStates(problem, rank, len(self.own_stages(("F", problem.stages_of(rank)[0])))) for rank in alike}
        stages = range(len(problem.rank))
        turns = [("F", s, k) for k in range(self.m) for s in stages]
        turns += [(kind, s, k) for k in range(self.m) for s in reversed(stages) for kind in "BW"]
        self.waits = [(task, before, self.steps(lag, unit)) for task in turns for before, lag in problem.waits_for(task)]

    @staticmethod
    def steps(time, unit):
        count = round(time / unit)
        require(abs(time - count * unit) <= ROUNDING * unit, f"argument: {shown(time)} is no multiple of {shown(unit)}")
        return count

    def is_alike(self, rank):
        """Whether its chunks cost and hold the same, so that tasks of a kind need not be told apart."""
        stages = self.problem.stages_of(rank)
        return all(self.problem.takes[kind, s] == self.problem.takes[kind, stages[0]] and
                   self.problem.all_holds[kind, s] == self.problem.all_holds[kind, stages[0]] and
                   self.problem.remakes[s] == self.problem.remakes[stages[0]] for kind in KINDS for s in stages)

    def own_stages(self, series):
        """The stages of the rank that a microbatch of the series passes."""
        return [s for s in self.problem.stages_of(self.problem.rank[series[1]])
                if self.problem.pipeline[s] == self.problem.pipeline[series[1]]]

    def refutes(self, until):
        """Whether it is shown that not all ends by then."""
        far = 2 * until + sum(self.takes.values()) * self.m + sum(self.lag.values()) * self.m + 1
        self.first, self.last = {}, {}
        for series in self.takes:
            counts = self.own is None or self.problem.rank[series[1]] == self.own
            self.first[series] = [0 if counts else -far] * self.m
            self.last[series] = [until - self.takes[series] if counts else far] * self.m
        before = None
        for _ in range(self.ROUNDS):
            if before == (self.first, self.last):
                break
            before = {s: list(of) for s, of in self.first.items()}, {s: list(of) for s, of in self.last.items()}
            if not self.hand_on() or not all(self.look_at(rank, until) for rank in self.states):
                return True
        return False

    def hand_on(self):
        """To those that wait, and back to those that are waited for; False if a task has no time left."""
        for task, before, lag in self.waits:
            first = self.first[before[:2]][before[2]] + self.takes[before[:2]] + lag
            self.first[task[:2]][task[2]] = max(self.first[task[:2]][task[2]], first)
        for task, before, lag in reversed(self.waits):
            last = self.last[task[:2]][task[2]] - lag - self.takes[before[:2]]
            self.last[before[:2]][before[2]] = min(self.last[before[:2]][before[2]], last)
        return all(a <= b for s in self.takes for a, b in zip(self.first[s], self.last[s]))

    def look_at(self, rank, until):
        """Narrows what forwards and input halves of a rank may do; False if there is no way through its states.

        A kind's tasks are not told apart there: the n-th to begin may take the times of the n-th in the order of times, and
        what is found of the n-th narrows a task with no fewer, or no more, of its kind before it."""
        states = self.states[rank]
        takes = [self.takes[series[0]] for series in states.series]
        first = [sorted(time for s in series for time in self.first[s]) for series in states.series]
        last = [sorted(time for s in series for time in self.last[s]) for series in states.series]
        times = states.times(takes, first, last, until)
        if times is None:
            return False
        begins, latest = times
        for kind in range(2):
            for series in states.series[kind]:
                for k in range(self.m):
                    least, most = self.turns_of(series, k)
                    self.first[series][k] = max(self.first[series][k], begins[kind][least])
                    self.last[series][k] = min(self.last[series][k], latest[kind][most])
        return True

    def turns_of(self, series, k):
        """Of its kind on its rank, at least and at most so many tasks come before it."""
        stages = sorted(self.own_stages(series), reverse=series[0] == "B")
        before = stages.index(series[1])
        all_of_kind = self.m * len(self.problem.stages_of(self.problem.rank[series[1]]))
        return (before + 1) * (k + 1) - 1, all_of_kind - (len(stages) - before) * (self.m - k)


def by_narrowing(reasoning, rank, argument):
    """If all ended by a given time, some rank would have no way through its tasks; and times are whole units."""
    unit = number(argument["unit"], "argument: the unit", 0)
    require(unit > 0, "argument: the unit is 0")
    require(is_count(argument["refuted"]), "argument: what is refuted is no count of units")
    until = argument["refuted"]
    narrowing = Narrowing(reasoning.problem, unit, reasoning.rank)
    require(narrowing.refutes(until), f"argument: nothing shows that not all ends by {shown(until * unit)}")
    return ((until + 1) * unit,
            f"if all ended by {shown(until * unit)}, some rank would have no way through its tasks, and all times are "
            f"multiples of {shown(unit)}")


# --- any placement ---


class AnyPlacement:
    """All placements of one pipeline at once: each stage is on some chunk of some rank, and takes and holds what that chunk does.

    The way of a microbatch passes all chunks of all ranks; a way that passes k ranks more has k messages at least, no two
    between the same ranks, which take no less than the k least links that make no circle. `earlier` other ranks have their
    first stage in front of a rank's own first one, and `behind` others their last one behind its last: each from 0 up, in an
    order of the placement's choice. What the others do meanwhile is counted as the least of so many of them."""

    def __init__(self, problem, of_span):
        require(problem.placement != "bidirectional" and problem.links is not None, "argument: it is about one pipeline, whose problem has `links`")
        self.problem, self.of_span, self.ranks, self.m = problem, of_span, problem.ranks, problem.microbatches
        times = {(kind, rank): [problem.takes[kind, s] for s in problem.stages_of(rank)] for kind in KINDS for rank in range(self.ranks)}
        self.sum = {key: sum(of) for key, of in times.items()}
        self.least = {key: min(of) for key, of in times.items()}
        self.all = {kind: sum(self.sum[kind, rank] for rank in range(self.ranks)) for kind in KINDS}
        self.weight = min(self.least["W", rank] for rank in range(self.ranks))
        self.messages = [Fraction(0)]  # of a way that passes so many ranks more
        part = list(range(self.ranks))
        for takes, a, b in sorted((min(problem.links[a][b], problem.links[b][a]), a, b) for a in range(self.ranks) for b in range(a)):
            if part[a] != part[b]:
                part = [part[b] if of == part[a] else of for of in part]
                self.messages.append(self.messages[-1] + takes)

    def path(self):
        """A microbatch passes all chunks there and back, and a weight gradient follows."""
        return self.all["F"] + self.all["B"] + 2 * self.messages[-1] + self.weight

    # --- a rank's work, with what lies in front of it and behind it ---

    def work(self):
        """The least over all orders of the ranks, of three ways to count. Of the ranks that have n others earlier, or more, the
        one whose last stage comes first has the rest of these behind it, so that some rank has n earlier and all but n + 1
        behind. Or each rank has a number of its own, of those earlier alone or of those behind alone."""
        n_and_rest = max(min(self.shortest(rank, n, self.ranks - 1 - n) for rank in range(self.ranks)) for n in range(self.ranks))
        return max(n_and_rest, self.best_numbers(lambda rank, n: self.shortest(rank, n, 0)), self.best_numbers(lambda rank, n: self.shortest(rank, 0, n)))

    def best_numbers(self, of):
        """The least that any order of the ranks comes to, if `of` grows with the number: the last number goes to the rank that has
        least with it, and so on down."""
        left, most = list(range(self.ranks)), Fraction(0)
        for place in reversed(range(self.ranks)):
            value, rank = min((of(rank, place), rank) for rank in left)
            left.remove(rank)
            most = max(most, value)
        return most

    def shortest(self, rank, earlier, behind):
        """The shortest sequence of the rank's forwards, input halves and weight gradients that may be interrupted: each kind
        begins no earlier than its head, and its tail follows the last of it."""
        there, back = self.messages[earlier], self.messages[behind]
        forward_behind = self.others(self.least, "F", rank, behind) + back  # from its last forward to the last stage
        back_behind = self.others(self.least, "B", rank, behind) + back  # and from there to its first input half
        if self.of_span:  # here `earlier` counts the ranks whose first stages, and so all, lie behind its own first one
            begin, after_b = Fraction(0), self.least["W", rank]
            first_b = self.sum["F", rank] + self.others(self.sum, "F", rank, earlier) + there + back_behind
            after_f = forward_behind + self.sum["B", rank] + self.others(self.sum, "B", rank, earlier) + there + after_b
        else:
            begin = self.others(self.least, "F", rank, earlier) + there
            first_b = self.all["F"] + self.messages[-1] + back_behind
            after_f = forward_behind + self.all["B"] + self.messages[-1] + self.weight
            after_b = self.others(self.least, "B", rank, earlier) + there + self.weight
        first_w = first_b + self.least["B", rank]
        halves_give = any(self.problem.holds["B", s] < 0 for s in self.problem.stages_of(rank))
        given_up = first_w + (0 if halves_give else self.least["W", rank])
        early = self.forwards_that_fit(rank)
        late = self.m * self.sum["F", rank] - early
        jobs = [(begin, early, after_f), (first_b, self.m * self.sum["B", rank], after_b), (first_w, self.m * self.sum["W", rank], Fraction(0))]
        return self.jackson(jobs + ([(max(begin, given_up), late, after_f)] if late > 0 else []))

    def others(self, times, kind, rank, many):
        """The least that so many other ranks take."""
        return sum(sorted(time for (k, of), time in times.items() if k == kind and of != rank)[:many])

    def forwards_that_fit(self, rank):
        """The work of forwards before anything is given up: first those that take most for their memory, the last one in part,
        and whole ones where all hold the same."""
        problem, work = self.problem, Fraction(0)
        stages = problem.stages_of(rank)
        if problem.room is None:
            return self.m * self.sum["F", rank]
        left, holds = problem.room, {problem.holds["F", s] for s in stages}
        if len(holds) == 1 and max(holds) > 0:
            left = math.floor(left / max(holds)) * max(holds)
        for stage in sorted(stages, key=lambda s: (problem.holds["F", s] > 0, -problem.takes["F", s] / (problem.holds["F", s] or 1))):
            each = problem.holds["F", stage]
            fit = min(self.m, left / each) if each > 0 else self.m
            work += fit * problem.takes["F", stage]
            left -= fit * each
        return min(work, self.m * self.sum["F", rank])

    @staticmethod
    def jackson(jobs):
        """For each head, those that begin no earlier and have no shorter a tail: the longest of all such sets is the shortest
        sequence that may be interrupted (Carlier and Pinson)."""
        return max(head + sum(takes for h, takes, t in jobs if h >= head and t >= tail) + tail
                   for head, _, _ in jobs for _, _, tail in jobs if any(h >= head and t >= tail for h, _, t in jobs))

    # --- the memory of all ranks ---

    def memory(self):
        """What stages hold, times how long, summed over all, within the memory of all ranks: the sum is least where stages stand by
        time for memory, the last one first, and where the longest ways have what holds least."""
        problem = self.problem
        if not problem.room:
            return Fraction(0)
        stages = range(len(problem.rank))
        time = {s: problem.takes["F", s] + problem.takes["B", s] for s in stages}
        holds = {s: problem.holds["F", s] for s in stages}
        held, residence = sum(-problem.holds["W", s] * problem.takes["W", s] for s in stages), Fraction(0)
        for stage in sorted(stages, key=lambda s: (holds[s] == 0, time[s] / (holds[s] or 1))):
            residence += time[stage]
            held += holds[stage] * residence
        for k, each in enumerate(sorted(holds.values(), reverse=True)):
            held += each * 2 * self.messages[k // problem.chunks]
        begins, least = Fraction(0), sorted(self.least["F", rank] for rank in range(self.ranks))
        for n in range(0 if self.of_span else self.ranks):
            begins += sum(least[:n]) + self.messages[n]
        return (held * self.m / problem.room + begins) / self.ranks


def by_any_placement(reasoning, rank, argument):
    require(set(argument) == {"by"} and not reasoning.facts, "argument: that of any placement follows from no facts")
    of = AnyPlacement(reasoning.problem, reasoning.rank is not None)
    return max((Fraction(0) if of.of_span else of.path(), "under any placement a microbatch passes all chunks there and back"),
               (of.work(), "under any placement some rank has so much in front of its work and behind it"),
               (of.memory(), "under any placement microbatches hold so much of the memory of all ranks"))


ARGUMENTS = {"machine": by_machine, "memory": by_memory, "L1": by_l1, "L2": by_l2, "narrowing": by_narrowing, "any placement": by_any_placement}


# --- the orders ---


class RankRun:
    """A rank that runs its tasks in their order, each as early as it may."""

    def __init__(self, problem, tasks):
        self.problem, self.tasks = problem, tasks
        self.at = 0  # of its tasks, the next one
        self.place = 0  # of its last weight gradient in its call
        self.begin, self.free = None, Fraction(0)
        self.held, self.most = Fraction(0), Fraction(0)

    def run(self, task, ready):
        """Runs its next task, which may begin then. Returns when it ends."""
        begin = max(self.free, ready)
        self.begin = begin if self.begin is None else self.begin
        self.free = begin + self.time_of(task)
        if task[0] == "B":
            self.hold(self.problem.remakes[task[1]])
        self.hold(self.problem.all_holds[task[:2]])
        self.at += 1
        return self.free

    def time_of(self, task):
        """A weight gradient joins the call of the one before it if that is of its stage and the call has not all it takes."""
        joins = self.at > 0 and task[0] == "W" and self.tasks[self.at - 1][:2] == task[:2]
        self.place = (self.place + 1) % self.problem.fuse_w if joins else 0
        return self.problem.in_call[task[1]][self.place > 0] if task[0] == "W" else self.problem.takes[task[:2]]

    def hold(self, more):
        self.held += more
        self.most = max(self.most, self.held)


def run(problem, orders):
    """The makespan, the span and the most that a rank holds."""
    ranks, ends = [RankRun(problem, tasks) for tasks in tasks_of(problem, orders)], {}
    ready, waiting = list(range(problem.ranks)), {}
    while ready:
        rank = ready.pop()
        of = ranks[rank]
        while of.at < len(of.tasks):
            task = of.tasks[of.at]
            waits = problem.waits_for(task)
            late = [before for before, _ in waits if before not in ends]
            if late:
                waiting.setdefault(late[0], []).append(rank)
                break
            ends[task] = of.run(task, max([Fraction(0), *(ends[before] + lag for before, lag in waits)]))
            ready += waiting.pop(task, [])
    for rank, of in enumerate(ranks):
        require(of.at == len(of.tasks), f"orders: rank {rank} waits for ever at its entry {of.at}")
    return max(of.free for of in ranks), max(of.free - of.begin for of in ranks), max(of.most for of in ranks)


def tasks_of(problem, orders):
    """The tasks of each rank in their order, whose texts leave out microbatches, since those of a series run in order."""
    require(len(orders) == problem.ranks, f"orders: there are {len(orders)}, not {problem.ranks}")
    tasks = []
    for rank, text in enumerate(orders):
        counts = dict.fromkeys(problem.of_rank[rank], 0)
        row = []
        for word in text.split(" "):
            series = (word[:1], int(word[1:])) if word[1:].isdigit() else None
            require(series in counts, f"orders: {word!r} is no task of rank {rank}")
            row.append((*series, counts[series]))
            counts[series] += 1
        for (kind, stage), count in counts.items():
            require(count == problem.microbatches, f"orders: rank {rank} runs {kind}{stage} {count} times, not {problem.microbatches}")
        tasks.append(row)
    return tasks


# --- the certificate ---


def shown_by(given, explain=False):
    """The problem, the bound that the argument shows, and why it is one."""
    require(given["schema"] == 1 and given["objective"] in ("makespan", "span"), "it is no certificate of a bound that this program knows")
    problem, rank = Problem(given["problem"]), given["rank"]
    require(is_count(rank, problem.ranks), f"there is no rank {rank}")
    reasoning = Reasoning(problem, rank if given["objective"] == "span" else None, given["facts"], explain)
    argument = given["argument"]
    require(argument["by"] in ARGUMENTS, f"argument: there is none called {argument['by']!r}")
    return problem, *ARGUMENTS[argument["by"]](reasoning, rank, argument)


def check(given, explain=False):
    """Returns the bound, what the orders come to, and why the bound is one."""
    problem, value, why = shown_by(given, explain)
    bound = number(given["bound"], "bound", 0)
    require(bound <= value * (1 + ROUNDING), f"bound: the argument shows {shown(value)}, not {given['bound']}")
    makespan, span, most = run(problem, given["orders"])
    require_same(given["makespan"], makespan, "makespan")
    require_same(given["span"], span, "span")
    require(problem.limit is None or most <= problem.limit, f"orders: a rank holds {shown(most)}, more than the limit")
    reached = makespan if given["objective"] == "makespan" else span
    if "exhaustive" in given:
        everything = given["exhaustive"]
        require_same(everything["below"], reached, "exhaustive: what nothing is below")
        require(is_count(everything["nodes"]) and everything["nodes"] > 0, "exhaustive: nodes is no count above 0")
        require(set(everything) == {"below", "nodes"}, "exhaustive: it has other fields")
    require(bound <= reached * (1 + ROUNDING), f"bound: it is above the {given['objective']} of the orders, {shown(reached)}")
    return bound, reached, why


def require_same(stated, worked_out, what):
    require(abs(number(stated, what) - worked_out) <= ROUNDING * worked_out, f"{what} is {shown(worked_out)}, not {stated}")


def main():
    files = [argument for argument in sys.argv[1:] if argument != "--explain"]
    if len(files) != 1:
        print("usage: check_bound.py [--explain] FILE", file=sys.stderr)
        return 2
    sys.setrecursionlimit(1_000_000)
    try:
        with open(files[0], encoding="utf-8") as file:
            given = json.load(file)
        bound, reached, why = check(given, explain=len(files) + 1 < len(sys.argv))
    except Wrong as wrong:
        print(f"wrong: {wrong}")
        return 1
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as wrong:
        print(f"wrong: it is no certificate: {wrong!r}")
        return 1
    except OSError as wrong:
        print(f"check_bound.py: {wrong}", file=sys.stderr)
        return 2
    print(f"right: {why}")
    if "exhaustive" in given:
        print(f"not checked: capo searched all orders, with {given['exhaustive']['nodes']} nodes, and says that none is below "
              f"{given['exhaustive']['below']:g}")
    best = reached <= bound * (1 + ROUNDING)
    more = "the best possible" if best else f"at most {float(reached / bound - 1):.2%} above it" if bound else "and the bound says nothing"
    print(f"right: no {given['objective']} is below {shown(bound)}; that of the orders is {shown(reached)}, {more}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
