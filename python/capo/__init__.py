"""Proves the capture order of a pipeline right, or shows what breaks, before anything touches a GPU.

>>> import capo
>>> capo.check([1, 1, -1, -1]).verdict
'accepted'
>>> report = capo.check([1, 2, -1, -1], profiles=("sound", "te"))
>>> report.verdict, report.diagnostics[0].rule, report.profiles["te"].accepts
('rejected', 'S15', True)

``print(report)`` shows what ``capo check`` prints, and ``report.raise_for_errors()`` raises it.
"""

from capo._capo import __version__
from capo._check import check, explain, minimise
from capo._compare import Row, Table, compare, sweep
from capo._draw import Picture, draw
from capo._record import RecordError, record
from capo._report import Diagnostic, OrderError, Profile, Report, Span, Suppressed
from capo._run import RunReport, run
from capo._schedule import Schedule, generate, schedule_names
from capo._simulate import KINDS, Timeline, simulate
from capo._wired import BUFFER_KINDS, EDGE_KINDS, REGIONS, Graph, Plan, graph, plan

_SUBMODULES = ("megatron", "strategies", "te", "torch")


def __getattr__(name):
    """Submodules are loaded when they are asked for: some are programs, and strategies needs hypothesis."""
    if name not in _SUBMODULES:
        raise AttributeError(f"module 'capo' has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"capo.{name}")


__all__ = [
    "BUFFER_KINDS",
    "EDGE_KINDS",
    "KINDS",
    "REGIONS",
    "Diagnostic",
    "Graph",
    "OrderError",
    "Picture",
    "Plan",
    "Profile",
    "RecordError",
    "Report",
    "Row",
    "RunReport",
    "Schedule",
    "Span",
    "Suppressed",
    "Table",
    "Timeline",
    "__version__",
    "check",
    "compare",
    "draw",
    "explain",
    "generate",
    "graph",
    "megatron",
    "minimise",
    "plan",
    "record",
    "run",
    "schedule_names",
    "simulate",
    "sweep",
    "te",
    "torch",
]
