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
from capo._check import check
from capo._report import Diagnostic, OrderError, Profile, Report, Span
from capo._schedule import Schedule, generate, schedule_names
from capo._simulate import KINDS, Timeline, simulate
from capo import megatron, te, torch


def __getattr__(name):
    """capo.strategies is loaded when it is asked for, since it needs hypothesis."""
    if name != "strategies":
        raise AttributeError(f"module 'capo' has no attribute {name!r}")
    from importlib import import_module

    return import_module("capo.strategies")


__all__ = [
    "KINDS",
    "Diagnostic",
    "OrderError",
    "Profile",
    "Report",
    "Schedule",
    "Span",
    "Timeline",
    "__version__",
    "check",
    "generate",
    "megatron",
    "schedule_names",
    "simulate",
    "te",
    "torch",
]
