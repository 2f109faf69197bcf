#!/usr/bin/env python3
"""Shows capo.te.guard() and capo.record() around real captures on one GPU.

    python3 bench/gpu/guarded_capture.py GRAPH_PY_FOLDER

GRAPH_PY_FOLDER holds transformer_engine/pytorch/{graph,utils}.py of a release, unpacked from its wheel;
the library need not be built. Two pipeline stages of one layer each, with delayed weight gradients, are
captured in one process by TransformerEngine's own graph.py, buffers reused as Megatron asks for:

  the wrong order   a weight gradient comes behind a forward that takes its input over (TransformerEngine
                    pull request 2376): without the guard it is captured in silence and its gradients are
                    wrong; under the guard capo.OrderError comes before the first capture
  the right order   passes the guard, is captured and replayed, and its gradients are those of eager
                    execution to the bit; capo.record() notes what was captured and replayed, and that is
                    accepted

Then capo.record() notes a graph that PyTorch alone captures and replays. Stand-ins are those of
te/release.py: the modules that graph.py imports. Fails if any of this does not hold.
"""

import sys
import tempfile

import capo
import torch

from te.release import ModuleBase, graph_module

HALF = torch.bfloat16

RIGHT = [1, 2, -2, -2.5, -1, -1.5, 1, 2, -2, -2.5, -1, -1.5]
WRONG = [1, 2, -2, -1, -1.5, 1, -2.5, 2, -2, -2.5, -1, -1.5]
STAGES, MICROBATCHES, ROWS, COLUMNS = 2, 2, 64, 64


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer, ctx.x = layer, x
        return x @ layer.weight.t()

    @staticmethod
    def backward(ctx, dy):
        ctx.layer.queue.append((ctx.x, dy))
        return dy @ ctx.layer.weight, None


class Linear(ModuleBase):
    """Stands in for TransformerEngine's Linear: its weight gradient reads the static input and gradient themselves."""

    delay_wgrad_compute = fuse_wgrad_accumulation = True
    out_features = COLUMNS

    def __init__(self, number):
        super().__init__()
        draw = torch.Generator("cuda").manual_seed(number)
        self.weight = torch.randn(COLUMNS, COLUMNS, device="cuda", generator=draw).mul_(0.1).to(HALF)
        self.gradient = torch.zeros(COLUMNS, COLUMNS, device="cuda")
        self.queue = []

    def forward(self, x):
        return Product.apply(x, self)

    def backward_dw(self):
        x, dy = self.queue.pop(0)
        self.gradient.add_(torch.mm(dy.t(), x, out_dtype=torch.float32))


Linear.__module__ = "transformer_engine.pytorch.module.linear"  # where the guard looks for the kind


def tensors(seed):
    draw = torch.Generator("cuda").manual_seed(seed)
    return [torch.randn(ROWS, COLUMNS, device="cuda", generator=draw).to(HALF) for _ in range(MICROBATCHES)]


def step(order, stages, callable_of):
    """Runs the order; gives the input gradients and the stages' weight gradients."""
    for stage in stages:
        stage.gradient.zero_()
    inputs, incoming, count, outputs, leaves, gradients = tensors(7), tensors(8), {}, {}, {}, {}
    for entry in order:
        kind, stage = (entry > 0) - (entry < 0), round(abs(entry) - 0.25)
        m = count[entry] = count.get(entry, -1) + 1
        if kind > 0:
            x = inputs[m] if stage == 1 else outputs[1, m].detach()
            leaves[stage, m] = x.detach().requires_grad_()
            outputs[stage, m] = callable_of(stage, m)(leaves[stage, m])
        elif float(entry).is_integer():
            dy = incoming[m] if stage == STAGES else gradients[stage + 1, m]
            torch.autograd.backward(outputs[stage, m], grad_tensors=dy)
            gradients[stage, m] = leaves[stage, m].grad.clone()
        else:
            callable_of(stage, m).backward_dw()
    torch.cuda.synchronize()
    return [gradients[1, m] for m in range(MICROBATCHES)] + [stage.gradient.clone() for stage in stages]


def eager(stages):
    def of(stage, _):
        module = stages[stage - 1]
        run = lambda x: module(x)
        run.backward_dw = module.backward_dw
        return run

    return of


def capture(module, order):
    """Stages, their graphs in a function of stage and microbatch."""
    stages = [Linear(number + 1) for number in range(STAGES)]
    samples = tuple(
        (torch.zeros(ROWS, COLUMNS, device="cuda", dtype=HALF).requires_grad_(),)
        for _ in range(STAGES * MICROBATCHES)
    )
    graphs = module.make_graphed_callables(
        tuple(stages),
        samples,
        num_warmup_iters=1,
        _order=order,
        _num_layers_per_chunk=[1] * STAGES,
        _reuse_graph_input_output_buffers=True,
    )
    return stages, lambda stage, m: graphs[(stage - 1) * MICROBATCHES + m]


def equal(one, other):
    return [bool(torch.equal(a, b)) for a, b in zip(one, other)]


def expected():
    stages = [Linear(number + 1) for number in range(STAGES)]
    return step(RIGHT, stages, eager(stages))


def main(folder):
    module = graph_module(folder)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, graph.py of {folder}")
    right = expected()

    unguarded = equal(step(WRONG, *capture(module, WRONG)), right)
    print("wrong order without the guard: captured in silence; gradients equal to eager:", unguarded)
    assert not all(unguarded)

    before = module.make_graphed_callables
    with capo.te.guard() as guard:
        try:
            capture(module, WRONG)
        except capo.OrderError as stopped:
            print("wrong order under the guard: stopped,", str(stopped).splitlines()[0][:110])
        else:
            raise SystemExit("the wrong order was captured under the guard")
        with capo.record() as recorded:
            stages, callables = capture(module, RIGHT)
            guarded = [equal(step(RIGHT, stages, callables), right) for _ in range(3)]
        print("right order under the guard:", guard.reports[-1].verdict, "- three replays equal to eager:", guarded)
    assert all(map(all, guarded)) and module.make_graphed_callables is before
    print("recorded:", " ".join(recorded.captured), "- steps replayed alike:", len(recorded.steps))
    assert recorded.captured == recorded.replayed and len(recorded.steps) == 3 and recorded.unnamed == 0
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        recorded.write(file.name)
        assert capo.check(file.name, plan="te", modules="linear").accepted

    linear = torch.nn.Linear(COLUMNS, COLUMNS, device="cuda")
    with capo.record() as alone:
        graphed = torch.cuda.make_graphed_callables(linear, (torch.randn(4, COLUMNS, device="cuda", requires_grad=True),))
        for _ in range(2):
            graphed(torch.randn(4, COLUMNS, device="cuda", requires_grad=True)).sum().backward()
    hooks = hasattr(torch.cuda.graphs, "register_graph_replay_start_hook")
    print("PyTorch alone:", alone.steps, "by hooks" if hooks else "by wrapped methods")
    assert alone.captured == ["F1", "B1"] and alone.steps == [["F1", "B1"]] * 2
    print("all of it holds")


if __name__ == "__main__":
    main(sys.argv[1])
