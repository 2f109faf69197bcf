#!/usr/bin/env python3
"""Checks a certificate of a plan of memory, without a line of capo's.

    capo check step.order --plan safe --plan-out plan.json && tools/check_certificate.py plan.json

It holds that the graph has no circle, that each use of a buffer is where the graph says, and that no two buffers
share memory but for those of which one is over, on every path, before the other begins; or, of a step that never ends,
that there is the circle. It does not know what the step computes: that a buffer's uses are all there, and what waits for
what, is capo's word. Exit code 0: it holds; 1: the line says what does not.
"""

import bisect
import gc
import json
import sys
from collections import defaultdict


PLANS = ("safe", "te", "mcore-local", "given")


class Wrong(Exception):
    """What the certificate says does not hold."""


def require(holds, what):
    if not holds:
        raise Wrong(what)


def is_count(value, below=None):
    return type(value) is int and value >= 0 and (below is None or value < below)


class Graph:
    """The vertices of a step, and the edges between them: the second waits for the first."""

    def __init__(self, given):
        number = given["vertices"]
        require(is_count(number), "vertices is no count")
        self.number = number
        self.edges = set()
        for edge in given["edges"]:
            if not (len(edge) == 2 and is_count(edge[0], number) and is_count(edge[1], number)):
                raise Wrong(f"edge {edge} names no two vertices")
            self.edges.add((edge[0], edge[1]))


class Steps(Graph):
    """A graph with its streams and an order in which all of it can happen."""

    def __init__(self, given):
        super().__init__(given)
        number, order = self.number, given["order"]
        require(all(is_count(v, number) for v in order), "the order names what is no vertex")
        require(len(order) == number and len(set(order)) == number, "the order does not hold each vertex once")
        self.place = [0] * number
        for k, vertex in enumerate(order):
            self.place[vertex] = k
        for before, after in self.edges:
            if self.place[before] >= self.place[after]:
                raise Wrong(f"the order has vertex {after} before {before}, which it waits for")
        self.at = {}
        for s, stream in enumerate(given["streams"]):
            for k, vertex in enumerate(stream):
                require(is_count(vertex, number) and vertex not in self.at, f"stream {s} holds {vertex}, no vertex or one twice")
                self.at[vertex] = (s, k)
                require(k == 0 or (stream[k - 1], vertex) in self.edges, f"nothing orders {stream[k - 1]} and {vertex} on stream {s}")

    def hops(self, before, after):
        """Whether one vertex is before another on the same stream."""
        a, b = self.at.get(before), self.at.get(after)
        return a is not None and b is not None and a[0] == b[0] and a[1] < b[1]

    def require_path(self, path):
        require(len(path) > 0 and all(is_count(v, self.number) for v in path), f"path {path} names what is no vertex")
        for before, after in zip(path, path[1:]):
            require((before, after) in self.edges or self.hops(before, after), f"path {path} has no step from {before} to {after}")


class Buffer:
    """One buffer: its memory, and its uses as (vertex, work, layer, over)."""

    def __init__(self, k, given, steps, vertex_of_work):
        self.name = f"buffer {k}"
        require(all(is_count(given[key]) for key in ("rank", "offset", "bytes")), f"{self.name} has no place")
        require(given["bytes"] > 0, f"{self.name} has no bytes")
        self.region = (given["rank"], given["region"])
        self.begin, self.end = given["offset"], given["offset"] + given["bytes"]
        self.uses = given["uses"]
        require(len(self.uses) > 0, f"{self.name} is never used")
        for vertex, work, layer, over in self.uses:
            require(is_count(vertex, steps.number) and is_count(work) and is_count(layer), f"{self.name} has a use of nothing")
            require(vertex_of_work.setdefault(work, vertex) == vertex, f"work {work} is at two vertices")
            require(len(over) > 0, f"{self.name} has a use that is never over")
            for end in over:
                require(end == vertex or (vertex, end) in steps.edges, f"{self.name} has a use at {vertex} that is over at {end}")
        self.keys = [(steps.place[vertex], work, layer) for vertex, work, layer, _ in self.uses]
        require(self.keys == sorted(self.keys), f"{self.name} lists its uses out of order")
        self.first = self.uses[0]
        paths = ends_by_target(steps, given["paths"])
        for vertex, _, _, _ in self.uses:
            same = vertex == self.first[0] or steps.hops(self.first[0], vertex)
            require(same or self.first[0] in paths[vertex], f"{self.name} may be used at {vertex} before it is first written")


def ends_by_target(steps, paths):
    """The first vertices of checked paths, by their last one."""
    ends = defaultdict(set)
    for path in paths:
        steps.require_path(path)
        ends[path[-1]].add(path[0])
    return ends


def require_over_before(steps, before, after, paths):
    """Each use of the one buffer is over before the other is first used."""
    vertex, work, layer, _ = after.first
    ends = ends_by_target(steps, paths)[vertex]
    for at, of, ran, over in before.uses:
        if at == vertex:
            # Layers of one piece of work run one after another; another piece may run beside it.
            alone = all(use[1] == work for use in after.uses if use[0] == vertex)
            require(of == work and ran < layer and alone, f"{before.name} and {after.name} share memory and are used together at {at}")
            continue
        ordered = any(end in ends or steps.hops(end, vertex) for end in over)
        require(ordered, f"{before.name} and {after.name} share memory, and nothing orders {at} and {vertex}")


class Memory:
    """Who holds which bytes of one region."""

    def __init__(self):
        self.begins, self.held = [], []  # ascending, and (end, owner) for each

    def take(self, buffer, owner):
        """Returns the owners that lose memory."""
        k = bisect.bisect_left(self.begins, buffer.begin)
        if k > 0 and self.held[k - 1][0] > buffer.begin:
            k -= 1
        last = k
        while last < len(self.begins) and self.begins[last] < buffer.end:
            last += 1
        lost = list(zip(self.begins[k:last], self.held[k:last]))
        begins, held = [buffer.begin], [(buffer.end, owner)]
        if lost and lost[0][0] < buffer.begin:
            begins.insert(0, lost[0][0])
            held.insert(0, (buffer.begin, lost[0][1][1]))
        if lost and lost[-1][1][0] > buffer.end:
            begins.append(buffer.end)
            held.append(lost[-1][1])
        self.begins[k:last], self.held[k:last] = begins, held
        return {of for _, (_, of) in lost}


def check_circle(given):
    """Each of these vertices waits for the one before it, the first for the last, so that none of them ever happens."""
    require(given["schema"] == 1 and "order" not in given, "it is no certificate of a deadlock that this program knows")
    graph, circle = Graph(given), given["circle"]
    require(len(circle) > 0 and len(set(circle)) == len(circle), "the circle holds nothing, or a vertex twice")
    for before, after in zip(circle, circle[1:] + circle[:1]):
        require((before, after) in graph.edges, f"vertex {after} does not wait for {before}")
    return len(circle)


def check(given):
    """The numbers of buffers and of pairs that share memory."""
    require(given["schema"] == 1 and given["plan"] in PLANS, "it is no certificate of a plan that this program knows")
    steps = Steps(given)
    vertex_of_work = {}
    buffers = [Buffer(k, of, steps, vertex_of_work) for k, of in enumerate(given["buffers"])]
    keys = [buffer.keys[0] for buffer in buffers]
    require(keys == sorted(keys), "buffers do not stand in the order of their first uses")
    shared = {}
    for pair in given["shared"]:
        before, after = pair["before"], pair["after"]
        require(is_count(before, len(buffers)) and is_count(after, len(buffers)), f"a pair of {before} and {after} names no two buffers")
        require_over_before(steps, buffers[before], buffers[after], pair["paths"])
        shared[before, after] = True
    memory = defaultdict(Memory)
    for k, buffer in enumerate(buffers):
        for loser in memory[buffer.region].take(buffer, k):
            require((loser, k) in shared, f"{buffer.name} takes memory of buffer {loser}, and no paths tell that it may")
    for region, end in peaks(buffers).items():
        stated = given["bytes"].get(f"{region[0]} {region[1]}")
        require(stated == end, f"{region[1]} of rank {region[0]} needs {end} bytes, not {stated}")
    return len(buffers), len(shared)


def peaks(buffers):
    ends = defaultdict(int)
    for buffer in buffers:
        ends[buffer.region] = max(ends[buffer.region], buffer.end)
    return ends


def main():
    if len(sys.argv) != 2:
        print("usage: check_certificate.py FILE", file=sys.stderr)
        return 2
    gc.disable()  # it looks at millions of lists again and again, and none of them is in a circle
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            given = json.load(file)
        if "circle" in given:
            print(f"right: {check_circle(given)} vertices wait for each other in a circle, so that the step never ends")
            return 0
        buffers, shared = check(given)
    except Wrong as why:
        print(f"wrong: {why}")
        return 1
    except (KeyError, TypeError, ValueError, AttributeError) as why:
        print(f"wrong: it is no certificate: {why!r}")
        return 1
    except OSError as why:
        print(f"check_certificate.py: {why}", file=sys.stderr)
        return 2
    print(f"right: {buffers} buffers, {shared} pairs share memory")
    return 0


if __name__ == "__main__":
    sys.exit(main())
