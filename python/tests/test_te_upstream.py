"""The guard on TransformerEngine's own graph.py of 2.20.2, up to the first graph that it makes.

The file comes out of the wheel, unmodified. Stand-ins: PyTorch, of which it needs names until then, and
TransformerEngine's other modules. What the first torch.cuda.CUDAGraph() raises says that an order got
through all of graph.py's own checks.
"""

import json
import math
import pathlib
import sys
import types

import capo
import pytest

from upstream import source

ORDERS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "te_orders.json"


class Captures(Exception):
    """Capture begins."""


class Tensor:
    shape, dtype, layout, requires_grad = (8, 16), "torch.bfloat16", "strided", True

    def stride(self):
        return (16, 1)


class Module:
    training = True
    _backward_hooks = _backward_pre_hooks = _forward_hooks = _forward_pre_hooks = ()

    def __init__(self, delays):
        self.delay_wgrad_compute = delays

    def __call__(self, x):
        return x

    def modules(self):
        return [self]

    def parameters(self):
        return []

    buffers = parameters


def stand_in(monkeypatch, name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    module.__path__ = []
    monkeypatch.setitem(sys.modules, name, module)
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    return module


@pytest.fixture
def graph(monkeypatch):
    """TransformerEngine's module of that name."""
    text = source("transformer-engine==2.20.2", "transformer_engine/pytorch/graph.py")

    def begin():
        raise Captures

    nothing = type("Nothing", (), {})
    state = type("State", (), {"set_skip_fp8_weight_update_tensor": staticmethod(lambda _: None)})
    no = lambda *_, **__: False
    torch = stand_in(
        monkeypatch,
        "torch",
        Tensor=Tensor,
        nn=types.SimpleNamespace(Module=Module),
        is_autocast_enabled=no,
        is_autocast_cache_enabled=no,
        strided="strided",
    )
    stand_in(monkeypatch, "torch.utils")
    stand_in(monkeypatch, "torch.utils._pytree", tree_flatten=lambda tree: (list(tree), None), tree_unflatten=no)
    stand_in(monkeypatch, "torch._C", _graph_pool_handle=no, _distributed_c10d=types.SimpleNamespace(ProcessGroup=nothing))
    torch.cuda = types.SimpleNamespace(CUDAGraph=begin, get_rng_state=no)
    top = "transformer_engine"
    for name in (top, f"{top}.common", f"{top}.pytorch"):
        stand_in(monkeypatch, name)
    stand_in(monkeypatch, f"{top}.common.recipe", DelayedScaling=nothing, Recipe=nothing)
    stand_in(monkeypatch, f"{top}.pytorch.constants", dist_group_type=object)
    stand_in(
        monkeypatch, f"{top}.pytorch.quantization", autocast=no, FP8GlobalStateManager=state, get_default_fp8_recipe=no
    )
    stand_in(monkeypatch, f"{top}.pytorch.distributed", get_all_rng_states=dict, graph_safe_rng_available=no)
    stand_in(monkeypatch, f"{top}.pytorch.module")
    stand_in(monkeypatch, f"{top}.pytorch.module.base", TransformerEngineBaseModule=nothing)
    stand_in(monkeypatch, f"{top}.pytorch.ops", Sequential=nothing)
    stand_in(monkeypatch, f"{top}.pytorch.ops.op", BasicOperation=nothing)
    stand_in(monkeypatch, f"{top}.pytorch.ops.fuser", OperationFuser=nothing)
    stand_in(monkeypatch, f"{top}.pytorch.utils", make_weak_ref=no)
    module = stand_in(monkeypatch, f"{top}.pytorch.graph")
    module.__package__ = f"{top}.pytorch"
    exec(compile(text, "graph.py", "exec"), module.__dict__)
    monkeypatch.delenv("CAPO_GUARD", raising=False)
    return module


def call(graph, row):
    """What comes of the call that a row of te_orders.json describes: "stopped", "refused", "captures"."""
    order = [float(entry) if isinstance(entry, str) else entry for entry in row["order"]]
    given, chunks = row["num_layers_per_chunk"], int(max((abs(entry) for entry in order if math.isfinite(entry)), default=1))
    layers = given if isinstance(given, list) else [given or 1] * chunks
    needs = row["need_wgrad"]
    modules = tuple(
        Module(chunk < len(needs) and needs[chunk]) for chunk, count in enumerate(layers) for _ in range(count)
    )
    microbatches = sum(1 for entry in order if entry > 0) // max(chunks, 1)
    samples = [(Tensor(),) for _ in range(len(modules) * microbatches)]
    try:
        graph.make_graphed_callables(modules, samples, _order=order, _num_layers_per_chunk=given)
    except Captures:
        return "captures"
    except capo.OrderError:
        return "stopped"
    except Exception:  # whatever graph.py raises
        return "refused"
    return "returned"


@pytest.mark.filterwarnings("ignore::capo.te.CaptureWarning")
def test_the_guard_on_the_release(graph):
    """Wrong orders that TransformerEngine would capture are stopped, and every sound one that it takes passes."""
    stopped = passed = 0
    for row in json.loads(ORDERS.read_text()):
        with capo.te.guard():
            came = call(graph, row)
        if row["te_accepts"] and not row["truly_sound"]:
            assert came == "stopped", row
            stopped += 1
        elif row["te_accepts"]:
            assert came == "captures", row
            passed += 1
        else:
            assert came in ("stopped", "refused", "captures"), row
    assert stopped >= 10 and passed >= 20


def test_a_failed_capture_leaves_nothing_behind(graph):
    call_of_class = Module.__call__
    with capo.te.guard():
        for _ in range(2):
            assert call(graph, {"order": [1, -1], "num_layers_per_chunk": [1], "need_wgrad": [False]}) == "captures"
    assert Module.__call__ is call_of_class
    assert not graph.is_graph_capturing()
    assert call(graph, {"order": [1, -1], "num_layers_per_chunk": [1], "need_wgrad": [False]}) == "captures"
    assert graph.is_graph_capturing(), "without the guard TransformerEngine believes that it still captures"
    Module.__call__ = call_of_class
