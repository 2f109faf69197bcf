"""Layers whose delayed weight gradients keep what TransformerEngine's modules keep.

    linear            reads the input and the grad output themselves
    grouped_linear    the same, four experts; its backward_dw is silent where nothing waits
    layernorm_linear  reads its own norm's output, and the grad output itself
    copying           reads e4m3 copies of both

Store and `backward_dw` are the release's own text. Tensors hold small integers, so that every product
is exact and a weight gradient tells which input and which grad output it was made of. Every weight
gradient goes into `main_grad`, fp32, as one product; the weight itself has none, or a dummy.
"""

import contextlib
import queue
import warnings

import torch

from release import ModuleBase, texts

HALF = torch.bfloat16
EXPERTS = 4
KINDS = ["linear", "grouped_linear", "layernorm_linear", "copying"]


def normed(x):
    return x * 2


def product_of(kind, x, dy):
    """The weight gradient that the layer makes of what it kept."""
    x, dy = x.to(HALF), dy.to(HALF)
    if kind != "grouped_linear":
        return torch.mm(dy.t(), x, out_dtype=torch.float32)
    parts = zip(dy.chunk(EXPERTS), x.chunk(EXPERTS))
    return torch.cat([torch.mm(each.t(), rows, out_dtype=torch.float32) for each, rows in parts])


def kept_by(kind, x, dy):
    """What lies in the store until the weight gradient is computed."""
    if kind == "copying":
        return x.to(torch.float8_e4m3fn), dy.to(torch.float8_e4m3fn)
    return normed(x) if kind == "layernorm_linear" else x, dy


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, layer):
        ctx.layer = layer
        ctx.x = normed(x) if layer.kind == "layernorm_linear" else x
        return ctx.x @ weight.t()

    @staticmethod
    def backward(ctx, dy):
        layer = ctx.layer
        dx = dy @ layer.weight
        if layer.kind == "layernorm_linear":
            dx = normed(dx)
        layer.keep(ctx.x, dy)
        ctx.x = None
        return dx, layer.dummy, None


def make_layer_class(checkout):
    common, module = (f"transformer_engine/pytorch/module/{name}.py" for name in ("_common", "base"))
    grouped = "transformer_engine/pytorch/module/grouped_linear.py"
    store, = texts(checkout, common, ["WeightGradStore"], {"torch": torch, "queue": queue, "warnings": warnings})
    scope = {"get_nvtx_range_context": lambda _: contextlib.nullcontext(), "torch": torch}
    need, base = texts(checkout, module, ["TransformerEngineBaseModule.need_backward_dw",
                                          "TransformerEngineBaseModule.backward_dw"], dict(scope))
    of_grouped, = texts(checkout, grouped, ["GroupedLinear.backward_dw"], dict(scope))

    class Layer(ModuleBase):
        fuse_wgrad_accumulation, use_bias, use_grouped_tensor, single_grouped_weight = True, False, False, False
        num_gemms = EXPERTS
        need_backward_dw = need

        def __init__(self, kind, features, delays, number, dummy=False):
            super().__init__()
            draw = torch.Generator("cuda").manual_seed(number)
            self.kind = kind
            self.weight = torch.nn.Parameter(
                torch.randint(-1, 2, (features, features), device="cuda", generator=draw).to(HALF))
            experts = EXPERTS if kind == "grouped_linear" else 1
            self.main_grad = torch.zeros(experts * features, features, device="cuda")
            self.dummy = torch.zeros_like(self.weight) if dummy else None
            self.wgrad_store = store(delays)

        def forward(self, x):
            return Product.apply(x, self.weight, self)

        def keep(self, x, dy):
            if self.kind == "copying":
                x, dy = x.to(torch.float8_e4m3fn), dy.to(torch.float8_e4m3fn)
            if self.wgrad_store.delay_wgrad_compute():
                self.wgrad_store.put([x, dy, None], self.weight_gradient)
            else:
                self.weight_gradient(x, dy, None)

        def weight_gradient(self, x, dy, _):
            self.main_grad.add_(product_of(self.kind, x, dy))
            return (None, [], None) if self.kind == "grouped_linear" else (None, None)

        def _get_weight_tensors(self):
            return [self.weight]

        def backward_dw(self):
            (of_grouped if self.kind == "grouped_linear" else base)(self)

    return Layer
