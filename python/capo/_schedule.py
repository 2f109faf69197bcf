"""Schedules: read from every form, written to every form, made by name."""

from capo import _capo
from capo._order import taken


class Schedule:
    """The orders of all ranks, read once.

    >>> import capo
    >>> schedule = capo.Schedule([1, 1, -1, -1])
    >>> schedule.lists()
    [[1, 1, -1, -1]]
    >>> print(schedule.to_order(), end="")  # doctest: +ELLIPSIS
    capo 1
    ...
    """

    __slots__ = ("_held",)

    def __init__(self, order, *, num_layers_per_chunk=None, delayed=None, topology=None):
        given, name = taken(order)
        self._held = _capo.schedule(given, name, num_layers_per_chunk, delayed, topology)

    @classmethod
    def _of(cls, held):
        schedule = cls.__new__(cls)
        schedule._held = held
        return schedule

    @property
    def ranks(self):
        """The number of ranks."""
        return self._held.ranks

    @property
    def chunks(self):
        """The number of chunks of each rank."""
        return self._held.chunks

    @property
    def topology(self):
        """How chunks follow each other: "independent", "chain", "loop", "v", ..."""
        return self._held.topology

    def lists(self):
        """The list of each rank as TransformerEngine takes it; a ValueError if it cannot say it."""
        return self._held.lists()

    def to_order(self):
        """The text of an ``.order`` file."""
        return self._held.text("order")

    def to_csv(self):
        """PyTorch's table; a ValueError if it cannot say the schedule."""
        return self._held.text("csv")

    def to_te(self):
        """The text of a TE list; a ValueError if it cannot say the schedule."""
        return self._held.text("te")

    def to_json(self):
        """capo's own JSON."""
        return self._held.text("json")

    def graph(self, **declared):
        """The task graph; what is declared is that of :func:`capo.graph`."""
        from capo._wired import graph

        return graph(self, **declared)

    def plan(self, **declared):
        """Where buffers lie; what is declared is that of :func:`capo.plan`."""
        from capo._wired import plan

        return plan(self, **declared)

    def draw(self, **options):
        """The schedule as a picture; options are those of :func:`capo.draw`."""
        from capo._draw import draw

        return draw(self, **options)

    def _repr_svg_(self):
        return self.draw().svg

    def __eq__(self, other):
        if not isinstance(other, Schedule):
            return NotImplemented
        return self._held.same_as(other._held)

    __hash__ = None

    def __str__(self):
        return self.to_order()

    def __repr__(self):
        return f"<capo.Schedule: {self.ranks} ranks, {self.topology}>"


def generate(name, *, ranks=1, microbatches=1, chunks=None, group=None, memory_limit=None):
    """A published schedule by its name; ``capo.schedule_names()`` lists them.

    >>> import capo
    >>> capo.check(capo.generate("1f1b", ranks=4, microbatches=8)).verdict
    'accepted'
    """
    return Schedule._of(_capo.generate(name, ranks, microbatches, chunks, group, memory_limit))


def schedule_names():
    """The names of published schedules; PyTorch's own tables are ``torch:CLASS`` beside them."""
    return _capo.schedule_names()
