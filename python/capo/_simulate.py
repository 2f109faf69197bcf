"""capo.simulate: when each task runs, and what the step costs."""

from capo import _capo
from capo._order import taken

#: The names of kinds, by the number that ``Timeline.kind`` has for each.
KINDS = tuple(_capo.kind_names())


class Timeline:
    """A simulated step. Columns are memoryviews, which NumPy reads without a copy.

    >>> import capo
    >>> step = capo.simulate(capo.generate("1f1b", ranks=2, microbatches=2), cost={"f": 1, "b": 2})
    >>> step.makespan, len(step.ranks), len(step.begin) == len(step.end)
    (12.0, 2, True)
    """

    __slots__ = ("_step",)

    def __init__(self, step):
        self._step = step

    @property
    def makespan(self):
        """When the last task is over; the first begins at 0."""
        return self._step.makespan

    @property
    def span(self):
        """The longest of the ranks' times from first to last computation: the papers' cost."""
        return self._step.span

    @property
    def bubble_rate(self):
        """The part of the span in which the busiest rank does not compute."""
        return self._step.bubble_rate

    @property
    def peak(self):
        """The most that a rank holds, in the unit of ``mem``."""
        return self._step.peak

    @property
    def ranks(self):
        """Of each rank ``busy``, ``bubble``, ``exposed``, ``first`` and ``last``."""
        return self._step.ranks

    @property
    def begin(self):
        """When each task begins."""
        return self._step.begin

    @property
    def end(self):
        """When each task ends."""
        return self._step.end

    @property
    def rank(self):
        """The rank of each task."""
        return self._step.rank

    @property
    def microbatch(self):
        """The microbatch of each task; -1: none."""
        return self._step.microbatch

    @property
    def stage(self):
        """The stage of each task; -1: none."""
        return self._step.stage

    @property
    def kind(self):
        """The kind of each task, an index of ``capo.KINDS``."""
        return self._step.kind

    def label(self, task):
        """The task as reports name it, such as ``F1.0``."""
        return self._step.label(task)

    def grid(self, width=100):
        """The timeline as text."""
        return self._step.grid(width)

    def to_json(self):
        """The figures as ``capo simulate --format json`` prints them."""
        return self._step.json()

    def to_trace(self):
        """A Chrome trace, which Perfetto opens."""
        return self._step.trace()

    def to_pandas(self):
        """A DataFrame of the columns, if pandas is installed."""
        import pandas

        columns = ("rank", "kind", "stage", "microbatch", "begin", "end")
        frame = pandas.DataFrame({name: getattr(self, name) for name in columns})
        frame["kind"] = pandas.Categorical.from_codes(frame["kind"], KINDS)
        return frame

    def __len__(self):
        return len(self._step.begin)

    def __str__(self):
        return self._step.text()

    def __repr__(self):
        return f"<capo.Timeline: makespan {self.makespan:g}, {len(self)} tasks>"


def _settings(given):
    """A text as the command line takes it, or a dict of keys and numbers."""
    if given is None or isinstance(given, str):
        return given or ""
    return ",".join(f"{key}={float(value)!r}" for key, value in given.items())


def simulate(
    schedule,
    *,
    cost=None,
    mem=None,
    num_layers_per_chunk=None,
    delayed=None,
    modules=None,
    topology=None,
    comm=None,
):
    """Predict when each task of an order runs.

    ``cost`` is a dict such as ``{"f": 12, "b": 13, "w": 9, "comm": 1}`` or the text of ``--cost``:
    times of one microbatch on one rank, whose chunks share them. ``mem`` says in the same way what a
    microbatch takes and gives up, ``{"f": 1, "b": -0.5, "w": -0.5}``. An order that is rejected and cannot
    run to its end raises ``capo.OrderError``.
    """
    given, name = taken(schedule)
    return Timeline(
        _capo.simulate(
            given,
            name,
            num_layers_per_chunk,
            delayed,
            modules,
            topology,
            comm,
            _settings(cost),
            _settings(mem),
        )
    )
