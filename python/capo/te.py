"""A guard around TransformerEngine's capture: an order is judged before anything is captured::

    with capo.te.guard():
        train()                      # make_graphed_callables judges each order that it is given

No line of the guarded code changes: inside the guard ``make_graphed_callables`` is another function
wherever a loaded module of transformer_engine or megatron holds it, and afterwards it is itself
again. TransformerEngine need not be installed, and is not imported.
"""

import functools
import gc
import os
import sys
import warnings

from capo._check import check
from capo._hook import NAME, Replacements, holding, loaded_functions
from capo._te_modules import delays, layers_of, model_of, recipes_of


class CaptureWarning(UserWarning):
    """An order is captured that has a finding: one that hangs on what nobody could read off the call, or
    an error where CAPO_GUARD=warn asked for no more than a warning."""


def _is_numbers(order):
    return all(isinstance(entry, (int, float)) or hasattr(entry, "__float__") for entry in order)


def judge(modules, order, num_layers_per_chunk=None, reuse=False, sample_args=(), recipes=(), **declared):
    """The report on a call of make_graphed_callables, out of its own arguments.

    Modules are read for their kinds and flags, sample arguments for shapes and types
    (``_te_modules``); ``recipes`` are members of model.json of each, as ``recipes_of`` reads them off
    the call, and ``declared`` is handed on to ``capo.check`` and overrules what was read.
    """
    callables = list(modules) if isinstance(modules, (tuple, list)) else [modules]
    if _is_numbers(order):
        layers = layers_of(order, num_layers_per_chunk, len(callables))
        microbatches = sum(entry > 0 for entry in order) // max(len(layers), 1)
        of = [chunk for chunk, count in enumerate(layers, 1) for _ in range(count)]
        delaying = sorted({chunk for chunk, module in zip(of, callables) if delays(module)})
        declared.setdefault("delayed", delaying or None)
        declared.setdefault("modules", model_of(callables, sample_args, layers, microbatches, recipes))
    declared.setdefault("plan", "te" if reuse else None)
    declared.setdefault("weight_stream", False)  # replays are launched where their caller stands
    declared.setdefault("profiles", ("sound", "te"))
    return check(order, num_layers_per_chunk=num_layers_per_chunk, **declared)


class _Left:
    """What TransformerEngine changes for the time of a capture, and leaves so if the capture fails."""

    def __init__(self, modules, function):
        listed = modules if isinstance(modules, (tuple, list)) else (modules,)
        self._calls = {type(each): vars(type(each)).get("__call__") for each in listed}
        self._collects = gc.isenabled()
        self._graph = sys.modules.get(function.__module__)

    def restore(self):
        for owner, call in self._calls.items():
            if call is not None:
                owner.__call__ = call
            elif "__call__" in vars(owner):
                del owner.__call__
        if self._collects:
            gc.enable()
        ended = getattr(self._graph, "set_capture_end", None)
        if callable(ended):
            ended()


class guard:
    """A context manager and decorator: while it holds, captures of orders are judged first.

    An order that is not accepted raises ``capo.OrderError`` before TransformerEngine is called, or,
    if the environment says ``CAPO_GUARD=warn``, warns and goes on; ``CAPO_GUARD=off`` judges
    nothing. One that would be wrong if the modules were of a certain kind, which nobody can read, warns, and so does a ``pool`` that is handed in. Kinds, shapes, types and delayed weight gradients are read off the call. A capture that
    fails leaves the classes, the garbage collector and the mark of a capture as they were. ``module`` is a module that holds ``make_graphed_callables``, if it is none of
    TransformerEngine's that is loaded; further arguments are those of ``capo.check``. ``reports``
    has the report of each call.
    """

    def __init__(self, module=None, *, mode=None, **declared):
        self._module = module
        self._mode = mode
        self._declared = declared
        self._replacements = Replacements()
        self._pools = {}  # the first call that captured into each pool that was handed in, from 1
        self.reports = []

    def _asked(self):
        mode = self._mode or os.environ.get("CAPO_GUARD") or "raise"
        if mode not in ("raise", "warn", "off"):
            raise ValueError(f"CAPO_GUARD: {mode!r} is none; there are raise, warn and off")
        return mode

    def wrap(self, function):
        """The function with a judgement before it."""

        @functools.wraps(function)
        def guarded(modules, sample_args, *rest, **named):
            order = named.get("_order")
            if order is not None and self._asked() != "off":
                self._judge(modules, sample_args, order, named)
                self._warn_of_pool(named.get("pool"))
            left = _Left(modules, function)
            try:
                captured = function(modules, sample_args, *rest, **named)
            except BaseException:
                left.restore()
                raise
            if order is not None and named.get("pool") is not None:
                self._pools.setdefault(named["pool"], len(self.reports))
            return captured

        guarded._capo = self
        return guarded

    def _judge(self, modules, sample_args, order, named):
        report = judge(
            modules,
            order,
            named.get("_num_layers_per_chunk"),
            bool(named.get("_reuse_graph_input_output_buffers")),
            sample_args,
            recipes_of(named, len(modules) if isinstance(modules, (tuple, list)) else 1),
            **self._declared,
        )
        self.reports.append(report)
        if self._asked() == "raise":
            report.raise_for_errors()
        if report.diagnostics:
            warnings.warn(str(report), CaptureWarning, stacklevel=4)

    def _warn_of_pool(self, pool):
        """One call's graphs are judged among themselves, and a pool that is handed in may hold those of others."""
        if pool is None:
            return
        call = len(self.reports)
        first = self._pools.get(pool, call)
        words = "graphs are captured into a pool that was handed in: graphs of others there are not judged"
        if first != call:
            words = (
                f"call {call} of make_graphed_callables captures into the pool of call {first}: they share memory, so that "
                "a step which replays graphs of both has to replay them in the order of capture, all of the earlier call first"
            )
        warnings.warn(words, CaptureWarning, stacklevel=3)

    def __enter__(self):
        functions = loaded_functions(guarded=False) if self._module is None else [getattr(self._module, NAME)]
        if not functions:
            raise RuntimeError(
                "no module of transformer_engine is loaded: import transformer_engine.pytorch "
                "before the guard, or name the module that holds make_graphed_callables"
            )
        for function in functions:
            guarded = self.wrap(function)
            holders = holding(function)
            if self._module is not None and self._module not in holders:
                holders.append(self._module)
            for holder in holders:
                self._replacements.set(holder, NAME, guarded)
        return self

    def __exit__(self, *_):
        self._replacements.undo()
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def run(*arguments, **named):
            with self:
                return function(*arguments, **named)

        return run


def main(arguments):
    """python -m capo.te script.py ...: run a script under the guard."""
    import runpy

    if not arguments:
        print("usage: python -m capo.te SCRIPT [ARGUMENTS]", file=sys.stderr)
        return 2
    try:
        import transformer_engine.pytorch  # noqa: F401 the script's own dependency
    except ImportError as missing:
        print(f"capo.te: the guard needs transformer_engine: {missing}", file=sys.stderr)
        return 5
    sys.argv = list(arguments)
    with guard():
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
