#!/usr/bin/env python3
"""Shows E01 of Megatron-LM's layer-wise graphs on two GPUs: a gradient that is overwritten while it is sent.

    python3 bench/gpu/send_window.py TRANSFORMER_ENGINE [TOKENS [TRIALS [MS[,MS]]]]

TRANSFORMER_ENGINE is a checkout; it need not be built. Rank 1 replays its part of

    capo generate megatron --pp 2 --vp 2 --microbatches 4 --layers 2,2 --rank all --overlap --delayed-wgrad --format order

and sends the grad input of each model chunk's first layer to rank 0, which posts each receive MS after
the one before it is done, for every MS listed. Three ways: `single` waits for a send in `post_backward` of the next model
chunk, as Megatron does with single calls; `batch` waits at once; `held` waits late and keeps the memory
until the next model chunk's first backward is captured. What arrives is compared, bit by bit, with the
gradients of the same layers run without graphs.

Real: TransformerEngine's graph.py and make_weak_ref, unmodified, buffers reused as Megatron asks for;
PyTorch's allocator and graphs; isend and irecv of NCCL between two GPUs. Stand-ins: the modules that
graph.py imports; the layers (norm, product, squares, product, residual; two delayed weight gradients into
fp32); Megatron's schedule, whose waits and sends are placed by hand; rank 0, which computes nothing.
Needs PyTorch 2.11 or later and two GPUs. It is no test, and does not fail on a wrong gradient.
"""

import contextlib
import os
import queue
import sys
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from te.release import ModuleBase, graph_module

ORDER = """F1 F2 F1 F2 F3 F4 F3 B4 W4 F4 B3 W3 F1 B4 W4 F2 B3 W3 F1 B2 W2 F2 B1 W1 F3 B2 W2 F4 B1 W1 F3
           B4 W4 F4 B3 W3 B4 W4 B3 W3 B2 W2 B1 W1 B2 W2 B1 W1""".split()
LAYERS, MICROBATCHES = 4, 4
FIRST_OF_CHUNK = {1, 3}
HIDDEN, INNER = 7168, 7168
HALF = torch.bfloat16
WAYS = ["single", "batch", "held"]


class Notes:
    """Who lay where: (task, what, address, bytes), in the order of capture."""

    def __init__(self):
        self.on, self.task, self.rows = False, "", []

    def add(self, what, tensor):
        if self.on:
            self.rows.append((self.task, what, tensor.data_ptr(), tensor.numel() * tensor.element_size()))
        return tensor


NOTES = Notes()
HELD = []  # storages of sent grad inputs that are not let go yet


class Block(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        see = NOTES.add
        wide = see("temporary", x.float())
        scale = torch.rsqrt(see("temporary", wide.square()).mean(1, keepdim=True) + 1e-5)
        normed = see("kept", wide.mul_(scale).to(HALF))
        inner = see("kept", normed @ layer.first.t())
        squared = see("kept", inner * inner)
        ctx.layer, ctx.kept = layer, (scale, normed, inner, squared)
        return see("output", torch.addmm(x, squared, layer.second.t()))

    @staticmethod
    def backward(ctx, dy):
        see, layer, (scale, normed, inner, squared) = NOTES.add, ctx.layer, ctx.kept
        ctx.kept = None
        d_inner = see("kept", dy @ layer.second).mul_(inner).mul_(2)
        d_normed = see("temporary", d_inner @ layer.first)
        mean = see("temporary", d_normed * normed).sum(1, keepdim=True, dtype=torch.float32) / HIDDEN
        wide = see("temporary", normed * mean).neg_().add_(d_normed).mul_(scale)
        dx = see("grad input", wide.to(HALF)).add_(dy)
        layer.queue.put((squared, dy, layer.second_grad))
        layer.queue.put((normed, d_inner, layer.first_grad))
        layer.hold(dx)
        return dx, None


class Layer(ModuleBase):
    def __init__(self, number, held):
        super().__init__()
        draw = torch.Generator("cuda").manual_seed(number)
        self.number, self.held, self.queue = number, held, queue.Queue()
        self.first = torch.randn(INNER, HIDDEN, device="cuda", generator=draw).mul_(0.01).to(HALF)
        self.second = torch.randn(HIDDEN, INNER, device="cuda", generator=draw).mul_(0.01).to(HALF)
        self.first_grad = torch.zeros(INNER, HIDDEN, device="cuda")
        self.second_grad = torch.zeros(HIDDEN, INNER, device="cuda")

    def forward(self, x):
        return Block.apply(x, self)

    def hold(self, dx):
        """Lets the last chunk's storage go once this chunk's is there."""
        if self.held and self.number in FIRST_OF_CHUNK:
            HELD[:] = [dx.untyped_storage()]

    def backward_dw(self):
        for _ in range(2):
            x, dy, grad = self.queue.get_nowait()
            grad.add_(NOTES.add("scratch", torch.mm(dy.t(), x, out_dtype=torch.float32)))


def drawn(tokens, seed):
    draw = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(tokens, HIDDEN, device="cuda", generator=draw).to(HALF)


class Step:
    """One pass over ORDER. `forward(layer, microbatch)` gives what computes, with `backward_dw`."""

    def __init__(self, tokens, forward):
        self.forward = forward
        last = {layer + 1 for layer in FIRST_OF_CHUNK}
        self.received = {(l, m): drawn(tokens, 100 + 10 * l + m) for l in FIRST_OF_CHUNK for m in range(MICROBATCHES)}
        self.gradients = {(l, m): drawn(tokens, 500 + 10 * l + m) for l in last for m in range(MICROBATCHES)}

    def run(self, after_backward):
        count, inputs, outputs, grads = {}, {}, {}, {}
        for entry in ORDER:
            kind, layer = entry[0], int(entry[1:])
            m = count[entry] = count.get(entry, -1) + 1
            at = layer, m
            if kind == "F":
                x = self.received[at] if layer in FIRST_OF_CHUNK else outputs[layer - 1, m].detach()
                inputs[at] = x.detach().requires_grad_()
                outputs[at] = self.forward(layer, m)(inputs[at])
            elif kind == "B":
                dy = grads.pop((layer + 1, m)) if layer in FIRST_OF_CHUNK else self.gradients[at]
                torch.autograd.backward(outputs.pop(at), grad_tensors=dy)
                grads[at] = inputs.pop(at).grad
                if layer in FIRST_OF_CHUNK:
                    after_backward(at, grads.pop(at))
            else:
                self.forward(layer, m).backward_dw()


def te_order():
    sign = {"F": lambda n: n, "B": lambda n: -n, "W": lambda n: -n - 0.5}
    return [sign[entry[0]](int(entry[1:])) for entry in ORDER]


def captured(make, layers, tokens):
    """The graphs, and NOTES.rows of their capture, each row named by its entry of ORDER."""
    samples = tuple((torch.zeros(tokens, HIDDEN, device="cuda", dtype=HALF).requires_grad_(),)
                    for _ in range(LAYERS * MICROBATCHES))
    names = iter([f"{e}.{ORDER[:i].count(e)}" for i, e in enumerate(ORDER)])

    @contextlib.contextmanager
    def named(*args, **kwargs):  # every entry captures one graph, in order
        NOTES.task = next(names)
        with plain(*args, **kwargs):
            yield

    def begin():
        HELD.clear()
        NOTES.on, NOTES.rows[:] = True, []

    plain, torch.cuda.graph = torch.cuda.graph, named
    try:
        graphs = make(tuple(layers), samples, num_warmup_iters=1, _order=te_order(),
                      _num_layers_per_chunk=[1] * LAYERS, _reuse_graph_input_output_buffers=True,
                      post_warmup_hook=begin)
    finally:
        torch.cuda.graph, NOTES.on = plain, False
    HELD.clear()
    return graphs, list(NOTES.rows)


def takers(rows):
    """For each sent grad input, what is captured onto its memory before the next chunk's backward ends."""
    sent = [i for i, (task, what, *_) in enumerate(rows) if what == "grad input" and int(task[1]) in FIRST_OF_CHUNK]
    for i, end in zip(sent, sent[1:] + [len(rows)]):
        task, _, address, size = rows[i]
        over = [r for r in rows[i + 1:end + 1] if r[2] < address + size and address < r[2] + r[3]]
        yield task, address, size, over


def eager(layers):
    """Layers without graphs; a weight gradient runs as late as its graph would."""
    def forward(layer, _):
        module = layers[layer - 1]
        run = lambda x: module(x)
        run.backward_dw = module.backward_dw
        return run
    return forward


def sender(checkout, tokens, trials, delays):
    make = graph_module(checkout).make_graphed_callables
    layers = [Layer(n + 1, False) for n in range(LAYERS)]
    expected = []
    step = Step(tokens, eager(layers))
    step.run(lambda at, grad: expected.append((at, grad.clone())))
    for _, grad in expected:
        dist.send(grad, 0)
    names = [f"B{l}.{m}" for (l, m), _ in expected]
    dist.broadcast_object_list([names], src=1)
    del expected
    for way in WAYS:
        for layer in layers:
            layer.held = way == "held"
        graphs, rows = captured(make, layers, tokens)
        if way != "batch":
            print(f"{way}: captured onto a sent grad input before the next model chunk's backward is over")
            for task, address, size, over in takers(rows):
                text = ", ".join(f"{t} {w} {a:#x} {b >> 20} MiB" for t, w, a, b in over)
                print(f"  {task} grad input {address:#x} {size >> 20} MiB: {text or 'nothing'}", flush=True)
        step.forward = lambda layer, m: graphs[(layer - 1) * MICROBATCHES + m]
        for _ in delays:
            for _ in range(trials):
                one_step(step, way)
        step.forward = None
        for graph in graphs:
            graph.reset()
        del graphs
        torch.cuda.empty_cache()


def one_step(step, way):
    pending = []

    def post_backward(_, grad):
        while pending:
            pending.pop().wait()
        pending.append(dist.isend(grad, 0))
        if way == "batch":
            pending.pop().wait()

    dist.barrier()
    step.run(post_backward)
    while pending:
        pending.pop().wait()
    torch.cuda.synchronize()


def cycles_of(milliseconds):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(1000)
    begin.record()
    torch.cuda._sleep(10_000_000)
    end.record()
    end.synchronize()
    return int(milliseconds * 10_000_000 / begin.elapsed_time(end))


def receiver(tokens, trials, delays):
    count = len(FIRST_OF_CHUNK) * MICROBATCHES
    expected = [torch.empty(tokens, HIDDEN, device="cuda", dtype=HALF) for _ in range(count)]
    arrived = [torch.empty_like(each) for each in expected]
    for each in expected:
        dist.recv(each, 1)
    box = [None]
    dist.broadcast_object_list(box, src=1)
    for way in WAYS:
        for delay in delays:
            wrong, steps, cycles, elements = [0] * count, 0, cycles_of(delay), 0
            for _ in range(trials):
                dist.barrier()
                for buffer in arrived:
                    if delay:
                        torch.cuda._sleep(cycles)
                    dist.irecv(buffer, 1).wait()
                torch.cuda.synchronize()
                bad = [int((a.view(torch.int16) != e.view(torch.int16)).sum()) for a, e in zip(arrived, expected)]
                wrong = [w + (b > 0) for w, b in zip(wrong, bad)]
                steps += any(bad)
                elements += sum(bad)
            which = " ".join(f"{n}:{w}" for n, w in zip(box[0], wrong) if w)
            print(f"{way:6} receiver late by {delay:3} ms: {steps} of {trials} steps wrong, "
                  f"{sum(wrong)} of {trials * count} gradients, {elements} elements [{which}]", flush=True)


def rank(index, checkout, tokens, trials, delays):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    warnings.simplefilter("ignore")
    torch.cuda.set_device(index)
    dist.init_process_group("nccl", rank=index, world_size=2)
    dist.barrier()
    if index == 0:
        receiver(tokens, trials, delays)
    else:
        sender(checkout, tokens, trials, delays)
    dist.destroy_process_group()


def main():
    checkout = sys.argv[1]
    tokens, trials = [int(a) for a in sys.argv[2:4]] + [4096, 10][max(len(sys.argv) - 2, 0):]
    delays = [int(a) for a in (sys.argv[4] if len(sys.argv) > 4 else "0,50").split(",")]
    print(f"{torch.cuda.get_device_name()} x2, PyTorch {torch.__version__}, NCCL "
          f"{'.'.join(map(str, torch.cuda.nccl.version()))}, {tokens} x {HIDDEN} bf16")
    mp.spawn(rank, (checkout, tokens, trials, delays), nprocs=2)


if __name__ == "__main__":
    main()
