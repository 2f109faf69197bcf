"""A release of TransformerEngine on a machine where it is not installed.

    module = graph_module(CHECKOUT)      # its graph.py, unmodified, ready to capture
    store, = texts(CHECKOUT, "transformer_engine/pytorch/module/_common.py", ["WeightGradStore"], {...})

CHECKOUT is a checkout, or a wheel that was unpacked; the compiled library is not needed. graph.py runs
as it stands, and single classes and functions of other files are taken out by syntax tree, since those
files import the library. What graph.py imports is a stand-in that answers "no FP8, nothing distributed".
Needs PyTorch.
"""

import ast
import contextlib
import sys
import types
import typing

import numpy
import torch


class ModuleBase(torch.nn.Module):
    """Stands in for TransformerEngineBaseModule."""

    def need_backward_dw(self):
        return True

    def _trigger_wgrad_accumulation_and_reduce_hooks(self):
        pass


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    module.__path__ = []
    sys.modules[name] = module


def name_of(node):
    return getattr(node, "name", None) or getattr(getattr(node, "targets", [None])[0], "id", None)


def texts(checkout, path, names, scope):
    """What the file defines under these names, "Class.method" for a method; they see the scope and each other."""
    with open(f"{checkout}/{path}") as file:
        body = ast.parse(file.read()).body
    found = {name_of(node): node for node in body}
    parts = []
    for name in names:
        owner, _, method = name.partition(".")
        parts.append(next(node for node in found[owner].body if name_of(node) == method) if method else found[owner])
    exec(compile(ast.Module(parts, []), path, "exec"), scope)
    return [scope[name.rpartition(".")[2]] for name in names]


def weak_ref(checkout):
    """make_weak_ref's own text, taken out of a module that needs the compiled library."""
    scope = {"torch": torch, "np": numpy, **{each: getattr(typing, each) for each in ("Sequence", "Union")}}
    names = ["_torch_dtype_to_np_typestr_dict", "_WeakRefTensor", "make_weak_ref"]
    return texts(checkout, "transformer_engine/pytorch/utils.py", names, scope)[-1]


def graph_module(checkout):
    """The checkout's graph.py as a loaded module, with stand-ins for what it imports."""
    nothing = type("Nothing", (), {})
    state = type("State", (), {name: staticmethod(lambda *_, **__: False) for name in (
        "is_first_fp8_module", "is_fp8_enabled", "set_skip_fp8_weight_update_tensor")})
    top = "transformer_engine"
    attention = f"{top}.pytorch.attention"
    for name in (top, f"{top}.common", f"{top}.pytorch", f"{top}.pytorch.module", attention, f"{attention}.linear_attention"):
        stand_in(name)
    stand_in(f"{attention}.linear_attention.base", LinearAttentionBase=nothing)
    stand_in(f"{top}.common.recipe", DelayedScaling=nothing, Recipe=nothing)
    stand_in(f"{top}.pytorch.constants", dist_group_type=object)
    stand_in(f"{top}.pytorch.quantization", FP8GlobalStateManager=state, get_default_fp8_recipe=nothing,
         autocast=lambda **_: contextlib.nullcontext())
    stand_in(f"{top}.pytorch.distributed", get_all_rng_states=dict, graph_safe_rng_available=lambda: False)
    stand_in(f"{top}.pytorch.module.base", TransformerEngineBaseModule=ModuleBase)
    stand_in(f"{top}.pytorch.ops", Sequential=nothing)
    stand_in(f"{top}.pytorch.ops.op", BasicOperation=nothing)
    stand_in(f"{top}.pytorch.ops.fuser", OperationFuser=nothing)
    stand_in(f"{top}.pytorch.utils", make_weak_ref=weak_ref(checkout))
    path = f"{checkout}/transformer_engine/pytorch/graph.py"
    module = types.ModuleType(f"{top}.pytorch.graph")
    module.__package__ = f"{top}.pytorch"
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), module.__dict__)
    sys.modules[module.__name__] = module
    return module
