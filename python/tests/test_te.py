"""capo.te.guard, around a stand-in for TransformerEngine's function."""

import sys
import types
import warnings

import capo
import pytest


class Layer:
    def __init__(self, delays=False):
        self.delay_wgrad_compute = delays


@pytest.fixture
def engine(monkeypatch):
    """Modules that hold one function, as TransformerEngine's package and its graph.py do."""
    calls = []

    def make_graphed_callables(modules, sample_args, **named):
        calls.append(named.get("_order"))
        return modules

    inner = types.ModuleType("transformer_engine.pytorch.graph")
    outer = types.ModuleType("transformer_engine.pytorch")
    inner.make_graphed_callables = outer.make_graphed_callables = make_graphed_callables
    for module in (inner, outer):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    outer.calls = calls
    monkeypatch.delenv("CAPO_GUARD", raising=False)
    return outer


def test_a_sound_order_passes(engine):
    with capo.te.guard() as guard:
        engine.make_graphed_callables((Layer(),), ((), ()), _order=[1, 1, -1, -1])
    assert engine.calls == [[1, 1, -1, -1]]
    assert [report.verdict for report in guard.reports] == ["accepted"]


def test_a_wrong_order_never_reaches_capture(engine):
    with capo.te.guard(), pytest.raises(capo.OrderError, match="S15"):
        engine.make_graphed_callables((Layer(), Layer()), ((), ()), _order=[1, 2, -1, -1])
    assert engine.calls == []


def test_the_function_is_itself_again(engine):
    before = engine.make_graphed_callables
    with capo.te.guard():
        assert engine.make_graphed_callables is not before
        assert sys.modules["transformer_engine.pytorch.graph"].make_graphed_callables is not before
    assert engine.make_graphed_callables is before
    assert sys.modules["transformer_engine.pytorch.graph"].make_graphed_callables is before


def test_warn_captures_all_the_same(engine, monkeypatch):
    monkeypatch.setenv("CAPO_GUARD", "warn")
    with capo.te.guard(), pytest.warns(capo.te.CaptureWarning, match="S15"):
        engine.make_graphed_callables((Layer(), Layer()), ((), ()), _order=[1, 2, -1, -1])
    assert engine.calls == [[1, 2, -1, -1]]


def test_off_judges_nothing(engine, monkeypatch):
    monkeypatch.setenv("CAPO_GUARD", "off")
    with capo.te.guard() as guard:
        engine.make_graphed_callables((Layer(),), ((),), _order=[1, 2, -1, -1])
    assert engine.calls and guard.reports == []


def test_modules_say_what_they_delay(engine):
    with capo.te.guard() as guard, pytest.raises(capo.OrderError):
        engine.make_graphed_callables(
            (Layer(delays=True),), ((),), _order=[1, -1], _num_layers_per_chunk=[1]
        )
    assert "weight gradient" in str(guard.reports[0])


def test_a_call_without_an_order_is_left_alone(engine):
    with capo.te.guard() as guard:
        engine.make_graphed_callables((Layer(),), ((),))
    assert engine.calls == [None] and guard.reports == []


def test_a_decorator(engine):
    @capo.te.guard()
    def train():
        engine.make_graphed_callables((Layer(), Layer()), ((), ()), _order=[1, 2, -1, -1])

    with pytest.raises(capo.OrderError):
        train()


def test_nothing_to_guard(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "transformer_engine"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(RuntimeError, match="no module of transformer_engine is loaded"):
        capo.te.guard().__enter__()


class Sample:
    """A tensor as the guard looks at one."""

    def __init__(self, *shape, dtype="torch.bfloat16", requires_grad=True, strides=None):
        self.shape, self.dtype, self.requires_grad = shape, dtype, requires_grad
        self._strides = strides

    def stride(self):
        return self._strides or (self.shape[-1] * self.shape[-2], self.shape[-1], 1)[-len(self.shape) :]


def linear(delays, columns):
    kind = type("Linear", (), {"__module__": "transformer_engine.pytorch.module.linear"})
    module = kind()
    module.delay_wgrad_compute, module.out_features, module.fuse_wgrad_accumulation = delays, columns, True
    return module


def test_kinds_shapes_and_types_are_read_off_the_call(engine):
    """Two layers whose inputs differ in shape share no static input, so the second cannot hurt the first."""
    order = [1, -1, 2, -1.5, -2, -2.5]
    modules = (linear(True, 32), linear(True, 32))

    def rules(*samples):
        named = {"_order": order, "_num_layers_per_chunk": [1, 1], "_reuse_graph_input_output_buffers": True}
        with capo.te.guard(mode="warn") as guard, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            engine.make_graphed_callables(modules, samples, **named)
        return [finding.rule for finding in guard.reports[0].diagnostics if finding.severity == "error"]

    assert rules((Sample(8, 16),), (Sample(8, 16),)) == ["B01"]
    assert rules((Sample(8, 16),), (Sample(8, 32),)) == []


def recipe(name, **members):
    kind = type(name, (), {"__module__": "transformer_engine.common.recipe"} | members)
    return kind()


def rules_of(engine, modules, **named):
    """Rules of the errors of two microbatches whose first W comes after the second F."""
    named |= {"_order": [1, -1, 1, -1.5, -1, -1.5], "_num_layers_per_chunk": [1], "_reuse_graph_input_output_buffers": True}
    with capo.te.guard(mode="warn") as guard, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine.make_graphed_callables(modules, ((Sample(128, 128),), (Sample(128, 128),)), **named)
    return {finding.rule for finding in guard.reports[0].diagnostics if finding.severity == "error"}


def test_modules_that_quantize_read_copies(engine):
    """By the names of the arguments before TransformerEngine 2.8 and after, for all callables or for each."""
    modules = (linear(True, 128),)
    assert "B01" in rules_of(engine, modules) and "B01" in rules_of(engine, modules, enabled=False)
    for named in (
        {"fp8_enabled": True, "fp8_recipe": recipe("DelayedScaling")},
        {"fp8_enabled": (True,), "fp8_recipe": recipe("Float8CurrentScaling")},
        {"enabled": (True,), "recipe": recipe("MXFP8BlockScaling")},
        {"enabled": True, "recipe": recipe("Float8BlockScaling", backward_override=None)},
        {"enabled": True, "recipe": recipe("NVFP4BlockScaling")},
        {"enabled": True, "recipe": recipe("CustomRecipe")},
        {"enabled": True},
    ):
        assert rules_of(engine, modules, **named) == set(), named
    kept = recipe("MXFP8BlockScaling", backward_override="high_precision")
    for named in ({"enabled": (False,), "recipe": recipe("MXFP8BlockScaling")}, {"enabled": True, "recipe": kept}):
        assert "B01" in rules_of(engine, modules, **named), named


def test_a_bias_of_a_delayed_product_is_read_off_the_module(engine):
    def of(**members):
        module = linear(True, 128)
        vars(module).update(members)
        return rules_of(engine, (module,))

    assert "G02" in of(apply_bias=True)
    assert "G02" not in of(apply_bias=False) | of(apply_bias=True, gemm_bias_unfused_add=True) | of()


def test_what_hangs_on_a_kind_that_nobody_can_read_is_warned_of(engine):
    named = {"_order": [1, -1, 1, -1.5, -1, -1.5], "_num_layers_per_chunk": [1], "_reuse_graph_input_output_buffers": True}
    with capo.te.guard() as guard, pytest.warns(capo.te.CaptureWarning, match="B01"):
        engine.make_graphed_callables((Layer(True),), ((Sample(8, 16),), (Sample(8, 16),)), **named)
    assert guard.reports[0].accepted and engine.calls == [named["_order"]]


def test_a_pool_that_is_handed_in_is_warned_of(engine):
    pool, named = (0, 1), {"_order": [1, -1], "_num_layers_per_chunk": [1]}
    with capo.te.guard():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            engine.make_graphed_callables((Layer(),), (), **named)
        with pytest.warns(capo.te.CaptureWarning, match="graphs of others there are not judged"):
            engine.make_graphed_callables((Layer(),), (), **named, pool=pool)
        with pytest.warns(capo.te.CaptureWarning, match="call 3 .* captures into the pool of call 2"):
            engine.make_graphed_callables((Layer(),), (), **named, pool=pool)
        with pytest.warns(capo.te.CaptureWarning, match="of others"):
            engine.make_graphed_callables((Layer(),), (), **named, pool=(0, 2))


def test_a_capture_that_fails_leaves_nothing_in_its_pool(engine):
    def captures(modules, sample_args, **named):
        if modules[0].delay_wgrad_compute:
            raise RuntimeError("out of memory")

    module = types.SimpleNamespace(make_graphed_callables=captures)
    named = {"_order": [1, -1], "_num_layers_per_chunk": [1], "pool": (0, 1)}
    with capo.te.guard(module):
        with pytest.raises(RuntimeError), pytest.warns(capo.te.CaptureWarning):
            module.make_graphed_callables((Layer(True),), (), **{**named, "_order": [1, -1, -1.5]})
        with pytest.warns(capo.te.CaptureWarning, match="graphs of others there are not judged"):
            module.make_graphed_callables((Layer(),), (), **named)


def test_what_is_read_is_model_json():
    from capo._te_modules import model_of

    odd = (Sample(4, 2, 16, dtype="torch.float16", requires_grad=False, strides=(1, 4, 8)),)
    model = model_of([linear(True, 32), Layer()], [(Sample(8, 16),), odd], [1, 1], 1)
    assert model == {
        "layers": [[["layer0"], ["layer1"]]],
        "modules": {
            "layer0": {
                "kind": "linear",
                "dtype": "bf16",
                "flags": {"delay_wgrad": True, "fuse_wgrad_accumulation": True},
                "shape": {"tokens": 8, "hidden": 16, "ffn": 32},
            },
            "layer1": {
                "dtype": "fp16",
                "flags": {"input_requires_grad": False, "contiguous_input": False},
                "shape": {"tokens": 8, "hidden": 16},
            },
        },
    }
    assert model_of([Layer()], [], [1], 1) is None, "counts that do not fit are left to TransformerEngine"


def test_hooks_that_are_there_before_the_capture_are_told():
    from capo._te_modules import model_of

    with_hooks, without = Layer(), Layer()
    with_hooks._forward_hooks, with_hooks._backward_hooks = {}, {1: print}
    without._forward_hooks, without._forward_pre_hooks = {}, {}
    model = model_of([with_hooks, without], [(Sample(8, 16),)] * 2, [1, 1], 1)
    assert [module["flags"] for module in model["modules"].values()] == [{"hooks": True}, {}]
