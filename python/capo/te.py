"""A guard around TransformerEngine's capture: an order is judged before anything is captured.

    with capo.te.guard():
        train()                      # make_graphed_callables judges each order that it is given

No line of the guarded code changes: inside the guard ``make_graphed_callables`` is another function
wherever a loaded module of transformer_engine or megatron holds it, and afterwards it is itself
again. TransformerEngine need not be installed, and is not imported.
"""

import functools
import os
import sys
import warnings

from capo._check import check

_NAME = "make_graphed_callables"
_PACKAGES = ("transformer_engine", "megatron")


class CaptureWarning(UserWarning):
    """An order was captured although it was not accepted: CAPO_GUARD=warn asked for that."""


def _parts(module):
    """The module and its submodules, if it can list them."""
    listed = getattr(module, "modules", None)
    return list(listed()) if callable(listed) else [module]


def _delays(module):
    """Whether a module or one of its parts makes its weight gradient apart."""
    for part in _parts(module):
        if getattr(part, "delay_wgrad_compute", False):
            return True
        store = getattr(part, "wgrad_store", None)
        delays = getattr(store, "delay_wgrad_compute", None)
        if callable(delays) and delays():
            return True
    return False


def _chunk_of_each(callables, layers, chunks):
    """The chunk, from 1, of each callable."""
    if layers is None or isinstance(layers, int):
        each = layers if layers is not None else max(len(callables) // max(chunks, 1), 1)
        counts = [each] * chunks
    else:
        counts = list(layers)
    return [chunk for chunk, count in enumerate(counts, 1) for _ in range(int(count))]


def _delayed(modules, order, layers):
    """The chunks whose modules make weight gradients apart; None if no module tells."""
    callables = list(modules) if isinstance(modules, (tuple, list)) else [modules]
    chunks = max((int(entry) for entry in order if entry == entry and entry > 0), default=0)
    of = _chunk_of_each(callables, layers, chunks)
    delaying = {chunk for chunk, module in zip(of, callables) if _delays(module)}
    return sorted(delaying) or None


def judge(modules, order, num_layers_per_chunk=None, reuse=False, **declared):
    """The report on a call of make_graphed_callables, out of its own arguments.

    ``declared`` is handed on to ``capo.check``.
    """
    declared.setdefault("delayed", _delayed(modules, order, num_layers_per_chunk))
    declared.setdefault("plan", "te" if reuse else None)
    declared.setdefault("profiles", ("sound", "te"))
    return check(order, num_layers_per_chunk=num_layers_per_chunk, **declared)


def _holders(function):
    """The loaded modules of the packages that hold the function under its name."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in _PACKAGES and getattr(module, _NAME, None) is function:
            yield module


def _found():
    """The functions of that name in loaded modules of transformer_engine, each once."""
    functions = []
    for name, module in list(sys.modules.items()):
        if not name.split(".")[0] == "transformer_engine":
            continue
        function = getattr(module, _NAME, None)
        if callable(function) and function not in functions and not hasattr(function, "_capo"):
            functions.append(function)
    return functions


class guard:
    """A context manager and decorator: while it holds, captures of orders are judged first.

    An order that is not accepted raises ``capo.OrderError`` before TransformerEngine is called, or,
    if the environment says ``CAPO_GUARD=warn``, warns and goes on; ``CAPO_GUARD=off`` judges
    nothing. ``module`` is a module that holds ``make_graphed_callables``, if it is none of
    TransformerEngine's that is loaded; further arguments are those of ``capo.check``. ``reports``
    has the report of each call.
    """

    def __init__(self, module=None, *, mode=None, **declared):
        self._module = module
        self._mode = mode
        self._declared = declared
        self._replaced = []
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
                self._judge(modules, order, named)
            return function(modules, sample_args, *rest, **named)

        guarded._capo = self
        return guarded

    def _judge(self, modules, order, named):
        report = judge(
            modules,
            order,
            named.get("_num_layers_per_chunk"),
            bool(named.get("_reuse_graph_input_output_buffers")),
            **self._declared,
        )
        self.reports.append(report)
        if report.accepted:
            return
        if self._asked() == "warn":
            warnings.warn(str(report), CaptureWarning, stacklevel=4)
        else:
            report.raise_for_errors()

    def __enter__(self):
        functions = _found() if self._module is None else [getattr(self._module, _NAME)]
        if not functions:
            raise RuntimeError(
                "no module of transformer_engine is loaded: import transformer_engine.pytorch "
                "before the guard, or name the module that holds make_graphed_callables"
            )
        for function in functions:
            guarded = self.wrap(function)
            holders = list(_holders(function))
            if self._module is not None and self._module not in holders:
                holders.append(self._module)
            for holder in holders:
                self._replaced.append((holder, function))
                setattr(holder, _NAME, guarded)
        return self

    def __exit__(self, *_):
        while self._replaced:
            holder, function = self._replaced.pop()
            setattr(holder, _NAME, function)
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
