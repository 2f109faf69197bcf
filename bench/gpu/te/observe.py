#!/usr/bin/env python3
"""What a release of TransformerEngine does with capture orders, observed on one GPU.

    python3 bench/gpu/te/observe.py CHECKOUT tests/data/te_gpu_truth.json OUT.json

CHECKOUT holds the release's graph.py, utils.py, module/{_common,base,grouped_linear}.py under
transformer_engine/pytorch, unpacked from its wheel. Every row of the file is captured by that graph.py
through make_graphed_callables, with the layers of layers.py, and what happens is written in the same form;
what the release does otherwise than the file says is printed, a line for each row, and is no failure.

  rejected   the kind, the exception, its first line and the line of graph.py; what a failed capture
             leaves behind is repaired, so that all rows run in one process
  accepted   the graphs are replayed two steps in the order of capture, with new random data for each
             microbatch. `main_grad` is zeroed before and read after each weight gradient, and what it
             holds tells which input and which grad output went into it. Victims are [chunk from 0,
             microbatch from 0], those of both steps
  drawn      more orders, sound ones with an entry moved, doubled or turned, captured only: the file's rows
             have no second backward of one graph, where releases differ
  positions  after which entry a first layer's grad input, which Megatron sends, was first changed

One layer a chunk wherever weight gradients are delayed, as graph.py asks; no chunk feeds another.
Needs PyTorch 2.11 or later.
"""

import collections
import gc
import json
import math
import random
import sys
import traceback

import torch

from layers import EXPERTS, HALF, kept_by, make_layer_class, normed, product_of
from release import ModuleBase, graph_module

FEATURES = ROWS = 32
STEPS = 2


class Shape:
    """How an order's entries are numbered, by graph.py's own arithmetic."""

    def __init__(self, order, layers):
        whole = [e for e in order if math.isfinite(e) and math.ceil(e) == e]
        self.chunks = max([int(e) for e in whole], default=1) or 1
        counts = layers if isinstance(layers, list) else [1 if layers is None else layers] * max(self.chunks, 0)
        self.layers = [max(int(count), 0) for count in counts]
        self.microbatches = max(len(whole) // self.chunks // 2, 0)
        self.first = [sum(self.layers[:c]) * self.microbatches for c in range(len(self.layers))]

    def graphs(self, chunk, microbatch):
        begin = self.first[chunk] + microbatch * self.layers[chunk]
        return range(begin, begin + self.layers[chunk])


class Residual(ModuleBase):
    """x + b(relu(a(x))), both with delayed weight gradients."""

    def __init__(self, make, number, delays):
        super().__init__()
        self.a, self.b = (make("linear", FEATURES, delays, 2 * number + i) for i in range(2))

    need_backward_dw = lambda self: False  # its layers are visited themselves

    def forward(self, x):
        return x + self.b(torch.relu(self.a(x)))


class Run:
    """One row: its modules, its graphs, and what they compute."""

    def __init__(self, release, make, row, residual=False, features=FEATURES):
        self.release, self.row, self.features = release, row, features
        self.order = [float(e) if isinstance(e, str) else e for e in row["order"]]
        self.layers = row.get("layers", [1] * len(row.get("need_wgrad", [])))
        self.shape = Shape(self.order, self.layers)
        self.kind = row.get("module", "linear")
        needs, dummy = row["need_wgrad"], row.get("dummy_weight_grad", False)
        delays = [c < len(needs) and needs[c] for c, count in enumerate(self.shape.layers) for _ in range(count)]
        self.delays = [c < len(needs) and needs[c] for c in range(len(self.shape.layers))]
        self.modules = [Residual(make, i, each) if residual else make(self.kind, features, each, i, dummy)
                        for i, each in enumerate(delays)]
        self.rows = row.get("input_rows", [row.get("rows", ROWS)] * max(len(self.shape.layers), 1))

    def sample(self, chunk):
        return (torch.zeros(self.rows[chunk], self.features, device="cuda", dtype=HALF, requires_grad=True),)

    def capture(self):
        shape = self.shape
        self.samples = [self.sample(c) for c in range(len(shape.layers))
                        for _ in range(shape.microbatches * shape.layers[c])]
        self.graphs = self.release.make_graphed_callables(
            tuple(self.modules), self.samples, num_warmup_iters=self.row.get("warmup", 1), _order=self.order,
            _num_layers_per_chunk=self.layers, _reuse_graph_input_output_buffers=self.row.get("reuse", True))

    def draw(self, seed):
        """Input and grad output of each chunk and microbatch, small integers."""
        draw = torch.Generator("cuda").manual_seed(seed)
        def one(chunk):
            return torch.randint(-3, 4, (self.rows[chunk], self.features), device="cuda", generator=draw).to(HALF)
        self.data = {(c, m): (one(c), one(c)) for c in range(len(self.shape.layers))
                     for m in range(self.shape.microbatches)}

    def replay(self, after_backward=lambda *_: None, after_entry=lambda _: None, after_weight=lambda *_: None):
        """One step in the order of capture. An entry beyond its chunk's graphs is the next chunk's, as for graph.py."""
        seen = collections.Counter()
        running = {}
        cells = list(self.data)
        for at, entry in enumerate(self.order):
            chunk = abs(math.ceil(entry)) - 1
            if math.ceil(entry) != entry:
                graph = self.shape.graphs(chunk, seen[-chunk - 1] - 1)[0]
                self.zero()
                self.graphs[graph].backward_dw()
                after_weight(chunk, cells[graph])
            else:
                graphs = self.shape.graphs(chunk, seen[entry])
                seen[entry] += 1
                where = chunk, seen[entry] - 1
                cell = cells[graphs[0]] if len(graphs) == 1 else where
                if entry > 0:
                    x = leaf = self.data[cell][0].clone().requires_grad_()
                    for graph in graphs:
                        x = self.graphs[graph](x)
                    running[cell] = leaf, x
                else:
                    leaf, out = running.pop(cell)
                    out_seen = out.detach().clone()
                    self.zero()
                    torch.autograd.backward(out, grad_tensors=self.data[cell][1])
                    after_backward(at, chunk, cell, leaf.grad, out_seen)
                    if not self.delays[chunk]:
                        after_weight(chunk, cell)
            after_entry(at)

    def zero(self):
        for module in self.modules:
            for part in module.modules():
                if hasattr(part, "main_grad"):
                    part.main_grad.zero_()


def kind_of(error, release):
    """The kind as capo names it, and the line of graph.py that the error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename.endswith("pytorch/graph.py")]
    last, name = frames[-1], type(error).__name__
    line = own[-1].lineno if own else None
    if last.filename.endswith("_common.py"):
        return f"store.{name}", line
    if own and last is own[-1]:
        with open(last.filename) as file:
            raised = file.read().splitlines()[line - 1].lstrip().startswith("raise ")
        if raised:
            return f"TE.{name}", line
    return ("torch." if isinstance(error, RuntimeError) else "py.") + name, line


def repair(release, kept):
    """Undoes what a failed capture leaves behind (docs/gpu.md names it)."""
    gc.enable()
    release.set_capture_end()
    torch.cuda.set_stream(torch.cuda.default_stream())
    for owner, call in kept.items():
        if owner.__dict__.get("__call__") is not call:
            del owner.__call__
    torch.cuda.synchronize()


def products(run, kind):
    """Each weight gradient that some grad output and some input of the step make: by grad output, by input."""
    kept = [kept_by(kind, *run.data[cell]) for cell in run.data]
    x, dy = (torch.stack([each[i].float() for each in kept]) for i in range(2))
    if kind != "grouped_linear":
        return torch.einsum("ira,jrb->ijab", dy, x)
    x, dy = (t.view(len(kept), EXPERTS, -1, run.features) for t in (x, dy))
    return torch.einsum("iera,jerb->ijeab", dy, x).flatten(2, 3)


class Victims:
    """Which weight gradients are wrong, and which operand made them so."""

    def __init__(self, run):
        self.run, self.inputs, self.outputs, self.wrong, self.unread = run, set(), set(), set(), set()
        self.forwards, self.dgrads = set(), set()

    def begin(self):
        self.cells = list(self.run.data)
        self.table = products(self.run, self.run.kind) if len(set(self.run.rows)) == 1 else None

    def backward(self, _, chunk, cell, grad, out):
        run = self.run
        if run.shape.layers[chunk] != 1:
            return
        module = run.modules[sum(run.shape.layers[:cell[0]])]
        x, dy = run.data[cell]
        scale = normed if run.kind == "layernorm_linear" else lambda t: t
        if not torch.equal(out, scale(x) @ module.weight.t()):
            self.forwards.add(cell)
        if not torch.equal(grad, scale(dy @ module.weight)):
            self.dgrads.add(cell)

    def weight(self, chunk, cell):
        run = self.run
        if run.shape.layers[chunk] != 1:
            return
        got = run.modules[sum(run.shape.layers[:cell[0]])].main_grad
        if torch.equal(got, product_of(run.kind, *kept_by(run.kind, *run.data[cell]))):
            return
        self.wrong.add(cell)
        own = self.cells.index(cell)
        found = None if self.table is None else (self.table == got).flatten(2).all(2).nonzero().tolist()
        if not found:
            self.unread.add(cell)
            return
        dy, x = found[0]
        if x != own:
            self.inputs.add(cell)
        if dy != own:
            self.outputs.add(cell)

    def fields(self):
        lists = {name: sorted(map(list, cells)) for name, cells in (
            ("static_input_victims", self.inputs), ("grad_output_victims", self.outputs), ("wrong_wgrads", self.wrong),
            ("wrong_forwards", self.forwards), ("wrong_dgrads", self.dgrads), ("of_no_operands_of_the_step", self.unread))}
        always = ("static_input_victims", "grad_output_victims", "wrong_wgrads")
        return {name: cells for name, cells in lists.items() if cells or name in always}


class Observer:
    def __init__(self, checkout):
        self.release, self.make = graph_module(checkout), make_layer_class(checkout)
        self.kept = {owner: owner.__dict__.get("__call__") for owner in (self.make, Residual)}

    def captured(self, run):
        """None, or what was raised."""
        try:
            run.capture()
        except Exception as error:  # whatever graph.py, Python or PyTorch raise
            kind, line = kind_of(error, self.release)
            out = {"accepted": False, "kind": kind, "exception": type(error).__name__,
                   "message": (str(error).splitlines() or [""])[0], "te_line": line}
            repair(self.release, self.kept)
            return out
        return None

    def row(self, row):
        run = Run(self.release, self.make, row)
        refused = self.captured(run)
        if refused:
            return refused
        victims = Victims(run)
        for step in range(STEPS):
            run.draw(1000 + step)
            victims.begin()
            try:
                run.replay(after_backward=victims.backward, after_weight=victims.weight)
            except (KeyError, IndexError) as error:  # the order asks for what its own entries do not make
                return {"accepted": True, "kind": None, "not_replayed": f"{type(error).__name__}: {error}"}
        return {"accepted": True, "kind": None, **victims.fields()}

    def buffers(self, row):
        run = Run(self.release, self.make, {"reuse": True, **row})
        assert self.captured(run) is None, row
        return {"static_input_buffers": len({args[0].data_ptr() for args in run.samples}), "graphs": len(run.samples)}

    def signatures(self, row):
        out = {}
        for kind in ("linear", "layernorm_linear"):
            run = Run(self.release, self.make, {"reuse": True, **row, "module": kind})
            assert self.captured(run) is None, row
            victims = Victims(run)
            run.draw(1000)
            victims.begin()
            run.replay(after_weight=victims.weight)
            out[f"wrong_wgrads_{kind}"] = sorted(map(list, victims.wrong))
        return out

    def residual(self, row):
        run = Run(self.release, self.make, {"reuse": True, **row}, residual=True)
        assert self.captured(run) is None, row
        wrong = {"a": set(), "b": set()}

        def weight(chunk, cell):
            x, dy = run.data[cell]
            module = run.modules[chunk]
            inner = torch.relu(x @ module.a.weight.t())
            into_a = torch.where(inner > 0, dy @ module.b.weight, torch.zeros_like(dy))
            for name, part, of_x, of_dy in (("a", module.a, x, into_a), ("b", module.b, inner, dy)):
                if not torch.equal(part.main_grad, product_of("linear", of_x, of_dy)):
                    wrong[name].add(cell)

        run.draw(1000)
        run.replay(after_weight=weight)
        return {"first_linear_victims": sorted(map(list, wrong["a"])), "last_linear_victims": sorted(map(list, wrong["b"]))}

    def positions(self, row, order):
        layers = row["layers_per_model_chunk"]
        chunks = sum(layers)
        run = Run(self.release, self.make, {**row, "order": order, "layers": [1] * chunks, "need_wgrad": [True] * chunks},
                  features=row["features"])
        assert self.captured(run) is None, row
        firsts = {sum(layers[:i]) for i in range(len(layers))}
        sent, watched = [], []

        def backward(at, chunk, cell, grad, _):
            if chunk in firsts:
                sent.append({"layer": chunk + 1, "microbatch": cell[1], "produced": at, "overwritten": None})
                watched.append((sent[-1], grad, grad.clone()))

        def entry(at):
            for each in list(watched):
                if not torch.equal(each[1], each[2]):
                    each[0]["overwritten"] = at
                    watched.remove(each)

        run.draw(1000)
        run.replay(after_backward=backward, after_entry=entry)
        for each, after in zip(sent, sent[1:] + [{"produced": None}]):
            each["next_model_chunk_end"] = after["produced"]
        return {"first_layer_grad_inputs": sent}


def main(checkout, known, out):
    with open(known) as file:
        data = json.load(file)
    observer = Observer(checkout)
    named = {row["source"]: row["order"] for row in data["rows"]}
    data["drawn"] = data.get("drawn") or drawn()
    parts = {
        "rows": observer.row,
        "drawn": observer.row,
        "static_buffers": lambda row: observer.buffers({"order": named[row["source"]], **needs_of(data, row)}),
        "two_signatures": lambda row: observer.signatures({**row, **needs_of(data, row)}),
        "two_linears": lambda row: observer.residual({**row, **needs_of(data, row)}),
        "grad_input_overwrites": lambda row: observer.positions(row, named[row["source"]]),
    }
    result = {"meta": f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {checkout}"}
    for part, observe in parts.items():
        result[part], differ = [], 0
        for number, row in enumerate(data[part]):
            seen = observe(row)
            result[part].append({**{key: row[key] for key in KEYS if key in row}, **seen})
            told = "accepted" in row or part not in ("rows", "drawn")
            told = told and {key: (row.get(key), seen[key]) for key in TOLD if key in seen and seen[key] != known_of(row, key)}
            if told:
                differ += 1
                print(f"{part} {number} {row['source']} {row.get('order', '')}: {told}", flush=True)
            if number % 50 == 49:
                torch.cuda.empty_cache()
        known_before = part != "drawn" or "accepted" in data[part][0]
        print(f"{part}: {len(data[part])} rows, {differ if known_before else 'nothing known to'} differ", flush=True)
    with open(out, "w") as file:
        json.dump(result, file)


KEYS = ("source", "order", "layers", "need_wgrad", "module", "reuse", "warmup", "dummy_weight_grad", "input_rows",
        "layers_per_model_chunk", "rows", "features")
TOLD = ("accepted", "kind", "static_input_victims", "grad_output_victims", "wrong_wgrads", "static_input_buffers",
        "wrong_wgrads_linear", "wrong_wgrads_layernorm_linear", "first_linear_victims", "last_linear_victims",
        "first_layer_grad_inputs", "wrong_forwards", "wrong_dgrads")


def known_of(row, key):
    """Lists of what is wrong are left out where they are empty."""
    return row.get(key, [] if key.startswith("wrong_") else None)


def drawn(count=600, seed=20261126):
    """Orders of at most three chunks and three microbatches, of which most are wrong."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        chunks, microbatches, delayed = draw.randint(1, 3), draw.randint(1, 3), draw.random() < 0.5
        order = [c for c in range(1, chunks + 1) for _ in range(microbatches)]
        order += [-c for c in range(1, chunks + 1) for _ in range(microbatches)]
        draw.shuffle(order)
        order.sort(key=lambda entry: (entry < 0) if draw.random() < 0.7 else draw.random())
        if delayed:
            for at in reversed([i for i, entry in enumerate(order) if entry < 0]):
                order.insert(draw.randint(at + 1, len(order)), order[at] - 0.5)
        for _ in range(draw.randint(0, 2)):
            at = draw.randrange(len(order))
            order[at] = draw.choice([-order[at], draw.choice(order), -draw.randint(1, chunks)])
        rows.append({"source": f"drawn#{number}", "order": order, "layers": [1] * chunks, "need_wgrad": [delayed] * chunks,
                     "module": "linear", "reuse": draw.random() < 0.5, "warmup": 1})
    return rows


def needs_of(data, row):
    like = next(each for each in data["rows"] if each["source"] == row["source"])
    return {"need_wgrad": like["need_wgrad"], "layers": like["layers"]}


if __name__ == "__main__":
    main(*sys.argv[1:])
