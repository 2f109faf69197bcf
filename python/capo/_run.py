"""capo.run: a step executed on the processor, and every gradient compared with eager execution."""

import json
from functools import cached_property

from capo import _capo
from capo._order import taken


class RunReport:
    """What a run found. ``bit_equal``: every gradient of every replay is that of eager execution;
    ``within_bounds``: eager execution is within its bound of float64.

    >>> import capo
    >>> report = capo.run([1, 1, -1, -1.5, -1, -1.5], modules="linear")
    >>> report.bit_equal, report.within_bounds, report.ok
    (True, True, True)
    """

    def __init__(self, ran):
        self._ran = ran
        self.accepted = ran.accepted
        self.bit_equal = ran.bit_equal
        self.within_bounds = ran.within_bounds

    @property
    def ok(self):
        """Whether the order was accepted and all came out, as exit code 0 of ``capo run`` says."""
        return self.accepted and self.bit_equal and self.within_bounds

    @cached_property
    def _told(self):
        return json.loads(self._ran.json)

    @property
    def victims(self):
        """Chunk and microbatch of memory that was read too late, as it was seen."""
        return self._told["victims"]

    @property
    def gradients(self):
        """Each parameter's gradient: name, elements, whether it is equal, errors and bounds."""
        return self._told["parameters"]

    def to_json(self):
        """The report as ``capo run --format json`` prints it."""
        return self._ran.json

    def __str__(self):
        return self._ran.text

    def __repr__(self):
        return f"<capo.RunReport: bit_equal={self.bit_equal}, within_bounds={self.within_bounds}>"


def run(
    order,
    *,
    num_layers_per_chunk=None,
    delayed=None,
    modules=None,
    plan=None,
    topology=None,
    comm=None,
    replays=3,
    seed=1,
    sizes="random",
    unchecked=False,
    te_version=None,
):
    """Run the step on the processor, eagerly and as the plan lays it out, and compare the gradients.

    What is declared is as for ``capo.check``; sizes that nobody declares are small. ``plan`` is
    ``"safe"`` if None. An order that is rejected raises ``capo.OrderError``, or is run all the
    same with ``unchecked``, if it is rejected for its buffers, so that one sees who is hurt. With a
    GPU the program does it: ``capo run --device cuda``.
    """
    given, name = taken(order)
    return RunReport(
        _capo.run(
            given, name, num_layers_per_chunk, delayed, modules, plan, topology, comm, replays, seed, sizes, unchecked,
            te_version,
        )
    )
