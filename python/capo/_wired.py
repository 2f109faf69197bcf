"""capo.graph and capo.plan: what waits for what, and what lies where, as arrays."""

from capo import _capo
from capo._order import taken

#: The names of kinds, by the numbers that ``Graph.edge_kind``, ``Plan.kind`` and ``Plan.region`` have for each.
EDGE_KINDS = tuple(_capo.edge_kind_names())
BUFFER_KINDS = tuple(_capo.buffer_kind_names())
REGIONS = tuple(_capo.region_names())


class _Columns:
    """Columns of a value of the module, as memoryviews that NumPy reads without a copy."""

    __slots__ = ("_held",)

    def __init__(self, held):
        self._held = held

    def __len__(self):
        return len(self._held.rank)


class Graph(_Columns):
    """The task graph that a verdict is about.

    A transfer or collective has two vertices, its start and its end, and another task has one; a
    collective has one more where its members meet. The schedule finishes exactly if the edges have no cycle.

    >>> import capo
    >>> graph = capo.graph([1, -1])
    >>> [capo.KINDS[kind] for kind in graph.kind], list(zip(graph.before, graph.after))
    (['F', 'B'], [(0, 1), (0, 1)])
    >>> [capo.EDGE_KINDS[kind] for kind in graph.edge_kind]
    ['stream', 'data']
    """

    __slots__ = ()

    @property
    def rank(self):
        """The rank of each task."""
        return self._held.rank

    @property
    def stage(self):
        """The stage of each task."""
        return self._held.stage

    @property
    def microbatch(self):
        """The microbatch of each task; -1: none."""
        return self._held.microbatch

    @property
    def kind(self):
        """The kind of each task, an index of ``capo.KINDS``."""
        return self._held.kind

    @property
    def entry(self):
        """The place of each task in its rank's order, or that of the entry it was added for; -1: none."""
        return self._held.entry

    @property
    def stream(self):
        """The stream of each task, by a number of its own for each stream of each rank."""
        return self._held.stream

    @property
    def start(self):
        """The first vertex of each task."""
        return self._held.start

    @property
    def end(self):
        """The last vertex of each task."""
        return self._held.end

    @property
    def before(self):
        """The vertex that each edge leaves."""
        return self._held.before

    @property
    def after(self):
        """The vertex that waits for it."""
        return self._held.after

    @property
    def edge_kind(self):
        """The kind of each edge, an index of ``capo.EDGE_KINDS``."""
        return self._held.edge_kind

    @property
    def vertices(self):
        """The number of vertices."""
        return self._held.vertices

    @property
    def streams(self):
        """The number of streams."""
        return self._held.streams

    def to_dot(self):
        """The graph for Graphviz, as ``capo graph`` writes it; a RuntimeError if it is too large to draw."""
        return self._held.dot()

    def __repr__(self):
        return f"<capo.Graph: {len(self)} tasks, {len(self.before)} edges>"


class Plan(_Columns):
    """Where each buffer of a step lies and when it is used.

    ``birth`` and ``death`` are the places in the rank's order of a buffer's first and last use; two buffers share
    memory if they are of one rank and region and their bytes from ``offset`` on meet. Receives are posted into
    buffers of their own; ``peaks`` are of the others.

    >>> import capo
    >>> plan = capo.plan([1, 1, -1, -1], modules="linear", plan="te")
    >>> plan.peaks, plan.sized
    ([6], False)
    >>> [(capo.BUFFER_KINDS[plan.kind[b]], plan.birth[b], plan.death[b]) for b in range(len(plan))][0]
    ('static input', 0, 2)
    """

    __slots__ = ()

    @property
    def name(self):
        """ "te", "safe" or "mcore-local"."""
        return self._held.kind_of_plan

    @property
    def sized(self):
        """Whether sizes are bytes; else every buffer is one unit."""
        return self._held.sized

    @property
    def peaks(self):
        """The memory of each rank's buffers."""
        return self._held.peaks

    @property
    def lower_bounds(self):
        """The memory of each rank below which no plan without hazards goes."""
        return self._held.lower_bounds

    @property
    def rank(self):
        """The rank of each buffer."""
        return self._held.rank

    @property
    def chunk(self):
        """The chunk of each buffer, from 1."""
        return self._held.chunk

    @property
    def layer(self):
        """The layer of each buffer in its chunk, from 0; that of a receive is 0."""
        return self._held.layer

    @property
    def microbatch(self):
        """The microbatch of each buffer."""
        return self._held.microbatch

    @property
    def kind(self):
        """The kind of each buffer, an index of ``capo.BUFFER_KINDS``."""
        return self._held.kind

    @property
    def region(self):
        """The memory that each buffer lies in, an index of ``capo.REGIONS``."""
        return self._held.region

    @property
    def offset(self):
        """Where each buffer begins in its region."""
        return self._held.offset

    @property
    def bytes(self):
        """The size of each buffer."""
        return self._held.bytes

    @property
    def birth(self):
        """The place of each buffer's first use."""
        return self._held.birth

    @property
    def death(self):
        """The place of each buffer's last use."""
        return self._held.death

    def to_pandas(self):
        """A DataFrame of the columns, if pandas is installed."""
        import pandas

        columns = ("rank", "chunk", "layer", "microbatch", "kind", "region", "offset", "bytes", "birth", "death")
        frame = pandas.DataFrame({name: getattr(self, name) for name in columns})
        frame["kind"] = pandas.Categorical.from_codes(frame["kind"], BUFFER_KINDS)
        frame["region"] = pandas.Categorical.from_codes(frame["region"], REGIONS)
        return frame

    def __repr__(self):
        return f"<capo.Plan: {self.name}, {len(self)} buffers>"


def graph(
    order, *, num_layers_per_chunk=None, delayed=None, modules=None, plan=None, topology=None, comm=None,
    te_version=None,
):
    """The task graph of an order, with its transfers if ranks communicate.

    What is declared is as for ``capo.check``. An order with errors of its own has none, and raises
    ``capo.OrderError``.
    """
    given, name = taken(order)
    return Graph(_capo.graph(given, name, num_layers_per_chunk, delayed, modules, plan, topology, comm, te_version))


def plan(
    order, *, num_layers_per_chunk=None, delayed=None, modules=None, plan="safe", topology=None, comm=None,
    te_version=None,
):
    """The plan of an order's buffers: capo's own, or TransformerEngine's with ``plan="te"``.

    What is declared is as for ``capo.check``. An order with errors before its buffers has none, and raises
    ``capo.OrderError``. One that is wrong for its buffers has a plan, so that one sees why.
    """
    given, name = taken(order)
    return Plan(_capo.plan(given, name, num_layers_per_chunk, delayed, modules, plan, topology, comm, te_version))
