"""Functions of other packages, found where loaded modules hold them, and replaced for a while."""

import sys

NAME = "make_graphed_callables"
_PACKAGES = ("transformer_engine", "megatron", "torch")


def _modules(*packages):
    for name, module in list(sys.modules.items()):
        if module is not None and name.split(".")[0] in packages:
            yield module


def loaded_functions(*, guarded):
    """TransformerEngine's functions of that name in loaded modules, each once; ``guarded``: also a guard's."""
    functions = []
    for module in _modules("transformer_engine"):
        function = vars(module).get(NAME)
        if not callable(function) or function in functions or (hasattr(function, "_capo") and not guarded):
            continue
        functions.append(function)
    return functions


def holding(function):
    """The loaded modules that hold the function under its name."""
    return [module for module in _modules(*_PACKAGES) if vars(module).get(NAME) is function]


class Replacements:
    """Attributes that are other values until ``undo``."""

    def __init__(self):
        self._undo = []

    def add(self, undo):
        """Call ``undo`` when all is undone."""
        self._undo.append(undo)

    def set(self, holder, name, value):
        own = name in vars(holder)
        before = getattr(holder, name)
        setattr(holder, name, value)
        self.add(lambda: setattr(holder, name, before) if own else delattr(holder, name))

    def undo(self):
        """The last replacement is undone first."""
        while self._undo:
            self._undo.pop()()
