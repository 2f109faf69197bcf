"""capo.compare and capo.sweep: the same simulation of several orders."""

import itertools
import os
from collections.abc import Mapping

from capo._schedule import generate, schedule_names
from capo._simulate import simulate


class Row:
    """One order of a comparison, or one point of a sweep; ``microbatches`` is None where the order says."""

    __slots__ = ("microbatches", "name", "ranks", "timeline")

    def __init__(self, name, ranks, microbatches, timeline):
        self.name = name
        self.ranks = ranks
        self.microbatches = microbatches
        self.timeline = timeline

    def __repr__(self):
        return f"Row({self.name}, makespan={self.makespan:g}, peak={self.peak:g})"

    @property
    def makespan(self):
        return self.timeline.makespan

    @property
    def bubble_rate(self):
        return self.timeline.bubble_rate

    @property
    def peak(self):
        return self.timeline.peak


class Table(list):
    """Rows, as a list and as text; ``to_pandas`` is a DataFrame. The best is that of all rows, or with
    ``by_counts`` that of the rows with the same counts of ranks and microbatches."""

    _COLUMNS = ("name", "ranks", "microbatches", "makespan", "bubble_rate", "peak")

    def __init__(self, rows=(), *, by_counts=False):
        super().__init__(rows)
        self._by_counts = by_counts

    def _beside(self, row):
        return (row.ranks, row.microbatches) if self._by_counts else None

    def __str__(self):
        lines = [("schedule", "ranks", "microbatches", "makespan", "over best", "bubbles", "peak")]
        best = {}
        for row in self:
            best[self._beside(row)] = min(row.makespan, best.get(self._beside(row), row.makespan))
        for row in self:
            least = best[self._beside(row)]
            over = f"{row.makespan / least - 1:+.1%}" if least > 0 else ""
            many = "" if row.microbatches is None else str(row.microbatches)
            figures = (f"{row.makespan:g}", over, f"{row.bubble_rate:.1%}", f"{row.peak:g}")
            lines.append((row.name, str(row.ranks), many, *figures))
        widths = [max(map(len, column)) for column in zip(*lines)]
        text = ("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines)
        return "\n".join(text)

    def to_pandas(self):
        """A DataFrame of the figures, if pandas is installed."""
        import pandas

        return pandas.DataFrame({name: [getattr(row, name) for row in self] for name in self._COLUMNS})


def _named(orders):
    if isinstance(orders, Mapping):
        return list(orders.items())
    return [(order if isinstance(order, str) else f"order {at}", order) for at, order in enumerate(orders, 1)]


def compare(orders, *, ranks=None, microbatches=None, cost=None, mem=None, **declared):
    """Simulate several orders under the same costs.

    ``orders`` maps names to orders, or lists orders; with ``ranks`` and ``microbatches`` a name that
    no file has is a published schedule. Costs are of a rank's share of the model, so that schedules
    with more chunks on a rank are no dearer for it. ``declared`` is handed on to ``capo.simulate``.

    >>> import capo
    >>> table = capo.compare(["1f1b", "zbv"], ranks=4, microbatches=8, cost={"f": 10, "b": 12, "w": 8})
    >>> [row.name for row in sorted(table, key=lambda row: row.makespan)]
    ['zbv', '1f1b']
    """
    if (ranks is None) != (microbatches is None):
        raise ValueError("compare: ranks and microbatches are given together, for published schedules")
    rows = Table()
    for name, order in _named(orders):
        named = isinstance(order, str) and not os.path.exists(order)
        published = ranks is not None and named
        if ranks is None and named and order in schedule_names():
            raise ValueError(f"compare: {order} is a published schedule: say ranks and microbatches")
        made = generate(order, ranks=ranks, microbatches=microbatches) if published else order
        timeline = simulate(made, cost=cost, mem=mem, **declared)
        rows.append(Row(name, len(timeline.ranks), microbatches if published else None, timeline))
    return rows


def sweep(names, *, ranks, microbatches, cost=None, mem=None):
    """Simulate published schedules for every count of ranks and microbatches.

    ``names`` is one name or several, and so are the counts. A schedule that there is not for some
    counts is left out of them; if there is none for any, the reason is raised.

    >>> import capo
    >>> [row.makespan for row in capo.sweep("gpipe", ranks=2, microbatches=(2, 4), cost={"f": 1, "b": 2})]
    [12.0, 20.0]
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    each = [(count,) if isinstance(count, int) else tuple(count) for count in (ranks, microbatches)]
    rows, why = Table(by_counts=True), None
    for name, some, many in itertools.product(names, *each):
        try:
            schedule = generate(name, ranks=some, microbatches=many)
        except ValueError as reason:
            why = reason
            continue
        rows.append(Row(name, some, many, simulate(schedule, cost=cost, mem=mem)))
    if not rows and why is not None:
        raise why
    return rows
