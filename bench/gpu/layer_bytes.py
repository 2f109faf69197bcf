#!/usr/bin/env python3
"""Holds the bytes that capo derives for a layer against what PyTorch asks its allocator for.

    python3 bench/gpu/layer_bytes.py CAPO [CASE...]      on a device with CUDA, all cases by default
    python3 bench/gpu/layer_bytes.py CAPO tiny --cpu     saved tensors by autograd's hooks, no device

Each case is a configuration, changed so that one rank is a whole model (tensor_parallel 1); ranks that
share experts are played by this one, which holds its share of them and gets as many rows as balanced
routing sends it. For each kind of module of a case three figures are compared with `capo model --format
json`, and have to agree within 1 %:

    listed   requested_bytes of the tensors that capo lists, allocated one by one
    weights  requested_bytes of the parameters of the layer below
    forward  requested_bytes that stay after its forward: what autograd saves, and the output

The layer is written as Megatron-LM's is with TransformerEngine: norms, rotary embedding, attention and
SwiGLU are functions that save what the fused kernels save, products are F.linear or a grouped product.
Every backward here works from what was saved, so that what is counted is enough; on --cpu gradients are
compared with autograd's own of the same formulas. requested_bytes are what tensors ask for: an allocator
rounds each up to its blocks, which allocated_bytes shows beside.
"""

import json
import math
import subprocess
import sys

import torch
import torch.nn.functional as F

CASES = {
    "tiny": ("tiny", {}),
    "dense-8b": ("llama3-70b", {"hidden": 4096, "heads": 32, "ffn": 14336, "tensor_parallel": 1, "sequence": 4096}),
    "dense-70b": ("llama3-70b", {"tensor_parallel": 1, "sequence": 2048, "micro_batch": 2}),
    "mixtral": ("mixtral-8x7b", {}),
    "qwen3": ("qwen3-235b", {}),
    "deepseek": ("deepseek-v3", {"sequence": 2048, "recipe": "none"}),
}
MOST = 0.01


class RmsNorm(torch.autograd.Function):
    """Saves its input and the inverse deviation of each row."""

    @staticmethod
    def forward(ctx, x, weight):
        inverse = torch.rsqrt(x.float().pow(2).mean(-1) + 1e-6)
        ctx.save_for_backward(x, weight, inverse)
        return (x.float() * inverse[..., None]).to(x.dtype) * weight

    @staticmethod
    def backward(ctx, dy):
        x, weight, inverse = ctx.saved_tensors
        normed = x.float() * inverse[..., None]
        dweight = (dy.float() * normed).flatten(0, -2).sum(0)
        dn = dy.float() * weight.float()
        dx = inverse[..., None] * (dn - normed * (dn * normed).mean(-1, keepdim=True))
        return dx.to(x.dtype), dweight.to(weight.dtype)


class Rotary(torch.autograd.Function):
    """q, k and v in tensors of their own, the last columns of q and k turned; saves nothing but constants."""

    @staticmethod
    def turn(x, size, sign):
        angles = torch.arange(x.shape[1], device=x.device)[:, None] * 10000 ** (
            -torch.arange(0, size, 2, device=x.device) / size)
        cos, sin = angles.cos()[:, None], sign * angles.sin()[:, None]
        still, a, b = x[..., :-size].float(), x[..., -size:-size // 2].float(), x[..., -size // 2:].float()
        return torch.cat([still, a * cos - b * sin, a * sin + b * cos], -1).to(x.dtype)

    @staticmethod
    def forward(ctx, q, k, v, size):
        ctx.size = size
        return Rotary.turn(q, size, 1), Rotary.turn(k, size, 1), v.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx, dq, dk, dv):
        return Rotary.turn(dq, ctx.size, -1), Rotary.turn(dk, ctx.size, -1), dv, None


class CoreAttention(torch.autograd.Function):
    """Causal attention that saves q, k, v, its output and a logsumexp for each query and head."""

    @staticmethod
    def scores(q, k, head, kv_head):
        s = q[:, :, head].float() @ k[:, :, kv_head].float().transpose(1, 2) / math.sqrt(q.shape[-1])
        return s.masked_fill_(torch.ones(s.shape[1:], dtype=torch.bool, device=s.device).triu_(1), -math.inf)

    @staticmethod
    def forward(ctx, q, k, v):
        out = torch.empty(*q.shape[:3], v.shape[-1], dtype=q.dtype, device=q.device)
        logs = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
        for head in range(q.shape[2]):
            kv_head = head * k.shape[2] // q.shape[2]
            s = CoreAttention.scores(q, k, head, kv_head)
            logs[:, :, head] = s.logsumexp(-1)
            out[:, :, head] = ((s - logs[:, :, head, None]).exp_() @ v[:, :, kv_head].float()).to(q.dtype)
        ctx.save_for_backward(q, k, v, out, logs)
        return out

    @staticmethod
    def backward(ctx, dout):
        q, k, v, out, logs = ctx.saved_tensors
        dq, dk, dv = (torch.zeros(x.shape, device=x.device) for x in (q, k, v))
        for head in range(q.shape[2]):
            kv_head = head * k.shape[2] // q.shape[2]
            p = (CoreAttention.scores(q, k, head, kv_head) - logs[:, :, head, None]).exp_()
            do = dout[:, :, head].float()
            dv[:, :, kv_head] += p.transpose(1, 2) @ do
            row = (do * out[:, :, head].float()).sum(-1, keepdim=True)
            ds = p * (do @ v[:, :, kv_head].float().transpose(1, 2) - row) / math.sqrt(q.shape[-1])
            dq[:, :, head] = ds @ k[:, :, kv_head].float()
            dk[:, :, kv_head] += ds.transpose(1, 2) @ q[:, :, head].float()
        return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)


class SwiGlu(torch.autograd.Function):
    """silu(gate) * up, of experts times the share of each row; saves its input and the shares."""

    @staticmethod
    def forward(ctx, x, shares):
        ctx.save_for_backward(x, shares)
        gate, up = x.chunk(2, -1)
        y = F.silu(gate.float()) * up.float()
        return (y if shares is None else y * shares[:, None]).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        x, shares = ctx.saved_tensors
        gate, up = (half.float() for half in x.chunk(2, -1))
        dy, sigmoid = dy.float(), torch.sigmoid(gate)
        dshares = None if shares is None else (dy * gate * sigmoid * up).sum(-1)
        if shares is not None:
            dy = dy * shares[:, None]
        dgate = dy * up * sigmoid * (1 + gate * (1 - sigmoid))
        return torch.cat([dgate, dy * gate * sigmoid], -1).to(x.dtype), dshares


class Grouped(torch.autograd.Function):
    """A product for each group of rows; saves its input."""

    @staticmethod
    def forward(ctx, x, weight, sizes):
        ctx.save_for_backward(x, weight)
        ctx.sizes = sizes
        out = torch.empty(x.shape[0], weight.shape[1], dtype=x.dtype, device=x.device)
        for rows, w, to in zip(x.split(sizes), weight, out.split(sizes)):
            torch.mm(rows, w.t(), out=to)
        return out

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dx, dw = torch.empty_like(x), torch.empty_like(weight)
        for rows, d, w, to, dto in zip(x.split(ctx.sizes), dy.split(ctx.sizes), weight, dx.split(ctx.sizes), dw):
            torch.mm(d, w, out=to)
            torch.mm(d.t(), rows, out=dto)
        return dx, dw, None


class Layer(torch.nn.Module):
    """A module of a configuration, by the parameters that capo lists for it."""

    def __init__(self, of, module, device):
        super().__init__()
        self.of, self.kind, self.mlp = of, module["kind"], module["mlp"]
        self.w = torch.nn.ParameterList()
        self.names, seen = {}, {}
        for tensor in module["tensors"]:
            if tensor["use"] != "parameter":
                continue
            seen[tensor["name"]] = self.names[tensor["name"]] = len(self.w)
            shape = tensor["shape"]
            weight = torch.ones(shape, dtype=torch.bfloat16, device=device) if len(shape) == 1 else \
                torch.randn(shape, dtype=torch.bfloat16, device=device).mul_(shape[-1] ** -0.5)
            self.w.append(torch.nn.Parameter(weight))
        self.batch = of["micro_batch"]

    def weight(self, name):
        return self.w[self.names[name]]

    def linear(self, x, name):
        return F.linear(x, self.weight(name))

    def heads(self, x, size):
        return x.view(self.batch, -1, x.shape[-1] // size, size)

    def forward(self, x):
        if self.kind == "grouped-mlp":
            return self.experts(x.clone(), x.shape[0])
        if self.kind == "transformer-layer":
            x = x + self.attention(RmsNorm.apply(x, self.weight("attention norm")))
        normed = RmsNorm.apply(x, self.weight("mlp norm"))
        made = self.moe(normed) if self.mlp == "experts" else self.gated(normed, "fc1", "fc2")
        return made if self.kind == "layernorm-mlp" else x + made

    def attention(self, x):
        q, k, v, turned = self.latent(x) if "latent" in self.of else self.grouped_queries(x)
        out = CoreAttention.apply(*Rotary.apply(q, k, v, turned))
        return self.linear(out.reshape(x.shape[0], -1), "projection")

    def grouped_queries(self, x):
        heads, kv = self.of["heads"], self.of.get("kv_heads", self.of["heads"])
        size = self.of.get("head_size", self.of["hidden"] // heads)
        q, k, v = self.linear(x, "qkv").split([heads * size, kv * size, kv * size], -1)
        if self.of.get("qk_norm"):
            # TransformerEngine's norms copy what is not contiguous, so that qkv is free again.
            q = RmsNorm.apply(q.contiguous().view(-1, heads, size), self.weight("q norm"))
            k = RmsNorm.apply(k.contiguous().view(-1, kv, size), self.weight("k norm"))
        return q.reshape(self.batch, -1, heads, size), k.reshape(self.batch, -1, kv, size), \
            v.reshape(self.batch, -1, kv, size), size

    def latent(self, x):
        of, heads = self.of["latent"], self.of["heads"]
        nope, rope = of["nope_size"], of["rope_size"]
        q = RmsNorm.apply(self.linear(x, "q down"), self.weight("q norm"))
        q = self.heads(self.linear(q, "q up"), nope + rope)
        kv = self.linear(x, "kv down")
        latent, turned = kv[:, :of["kv_rank"]].contiguous(), kv[:, of["kv_rank"]:]
        kv = self.linear(RmsNorm.apply(latent, self.weight("kv norm")), "kv up")
        k, v = self.heads(kv, nope + of["value_size"]).split([nope, of["value_size"]], -1)
        turned = turned.view(self.batch, -1, 1, rope).expand(-1, -1, heads, -1)
        return q, torch.cat([k, turned], -1), v, rope

    def gated(self, x, first, second):
        return self.linear(SwiGlu.apply(self.linear(x, first), None), second)

    def moe(self, x):
        scores = torch.sigmoid(self.linear(x, "router").float())
        shares, chosen = scores.topk(self.of["top_k"], -1)
        shares = shares / shares.sum(-1, keepdim=True)
        order = chosen.flatten().argsort(stable=True)
        token = order // self.of["top_k"]
        made = self.experts(Dispatch.apply(x, token), len(token), shares.flatten()[order])
        combined = Combine.apply(made, token, len(x))
        return combined if "shared fc1" not in self.names else combined + self.gated(x, "shared fc1", "shared fc2")

    def experts(self, rows, count, shares=None):
        here = self.weight("experts' fc1").shape[0]
        sizes = [count // here + (i < count % here) for i in range(here)]
        if shares is None:
            shares = torch.ones(count, dtype=torch.float32, device=rows.device, requires_grad=True)
        made = SwiGlu.apply(Grouped.apply(rows, self.weight("experts' fc1"), sizes), shares)
        return Grouped.apply(made, self.weight("experts' fc2"), sizes)


class Dispatch(torch.autograd.Function):
    """The rows of a tensor in another order, with repeats; saves the order."""

    @staticmethod
    def forward(ctx, x, order):
        ctx.save_for_backward(order)
        ctx.rows = x.shape[0]
        return x[order]

    @staticmethod
    def backward(ctx, dy):
        (order,) = ctx.saved_tensors
        dx = torch.zeros(ctx.rows, dy.shape[1], dtype=torch.float32, device=dy.device)
        return dx.index_add_(0, order, dy.float()).to(dy.dtype), None


class Combine(torch.autograd.Function):
    """The sum of the rows of each token; saves the order."""

    @staticmethod
    def forward(ctx, x, order, rows):
        ctx.save_for_backward(order)
        made = torch.zeros(rows, x.shape[1], dtype=torch.float32, device=x.device)
        return made.index_add_(0, order, x.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        (order,) = ctx.saved_tensors
        return dy[order], None, None


def ask(capo, *words):
    return json.loads(subprocess.run([capo, "model", *words], check=True, capture_output=True, text=True).stdout)


def kinds_of(of):
    if "experts" not in of:
        return ["layernorm-mlp", "transformer-layer"]
    return ["grouped-mlp", "moe-layer", "transformer-layer"]


def requested(key="requested_bytes"):
    torch.cuda.synchronize()
    return torch.cuda.memory_stats()[f"{key}.all.current"]


def listed(module):
    """requested_bytes of all that capo lists, allocated one by one."""
    before = requested()
    tensors = [torch.empty(tensor["bytes"], dtype=torch.uint8, device="cuda") for tensor in module["tensors"]]
    asked = requested() - before
    del tensors
    return asked


def input_of(module, device):
    shape = next(tensor["shape"] for tensor in module["tensors"] if tensor["use"] == "input")
    return torch.randn(shape, dtype=torch.bfloat16, device=device, requires_grad=True)


def measure_cuda(of, module):
    before, blocks = requested(), requested("allocated_bytes")
    layer = Layer(of, module, "cuda")
    weights = requested() - before
    x = input_of(module, "cuda")
    before, blocks = requested(), requested("allocated_bytes")
    out = layer(x)
    kept, in_blocks = requested() - before, requested("allocated_bytes") - blocks
    out.backward(torch.ones_like(out))
    assert all(w.grad is not None and w.grad.isfinite().all() for w in layer.w), "a gradient is missing"
    return weights, kept, in_blocks


def measure_cpu(of, module):
    """Bytes of the storages that autograd saves and that are neither parameters nor the input."""
    layer = Layer(of, module, "cpu")
    x = input_of(module, "cpu")
    own = {t.untyped_storage().data_ptr() for t in [x, *layer.w]}
    saved = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = layer(x)
    out.backward(torch.ones_like(out))
    assert all(w.grad is not None and w.grad.isfinite().all() for w in layer.w), "a gradient is missing"
    saved.pop(out.untyped_storage().data_ptr(), None)
    weights = sum(w.numel() * w.element_size() for w in layer.w)
    return weights, sum(size for size, _ in saved.values()) + out.untyped_storage().nbytes()


def near(name, capo, torch_bytes, most=MOST):
    part = torch_bytes / capo - 1 if capo else float(torch_bytes != 0)
    print(f"  {name:<9} capo {capo:>14,}  PyTorch {torch_bytes:>14,}  {part:+.3%}")
    return abs(part) <= most


def compare(capo, case, cpu):
    name, changes = CASES[case]
    sets = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    of = ask(capo, name, *sets)["configuration"]
    good = True
    for kind in kinds_of(of):
        for module in ask(capo, name, *sets, "--kind", kind, "--format", "json")["modules"]:
            told = module["bytes"]
            print(f"{case}: {module['name']} ({kind}, {module['mlp']})")
            kept = told["activations"] + told["output"]
            if cpu:
                weights, made = measure_cpu(of, module)
            else:
                good &= near("listed", sum(tensor["bytes"] for tensor in module["tensors"]), listed(module))
                weights, made, blocks = measure_cuda(of, module)
                print(f"  allocated in blocks {blocks:,} bytes")
            good &= near("weights", told["weight"], weights)
            good &= near("forward", kept, made, 0.02 if case == "tiny" else MOST)
            if not cpu:
                torch.cuda.empty_cache()
    return good


def check_functions():
    """The gradients of the functions above against autograd's own of the same formulas."""
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 8, heads, 16, dtype=torch.float64, requires_grad=True) for heads in (4, 2, 2))
    ours = CoreAttention.apply(q.float(), k.float(), v.float())
    wide_k, wide_v = (x.float().repeat_interleave(2, 2).transpose(1, 2) for x in (k, v))
    plain = F.scaled_dot_product_attention(q.float().transpose(1, 2), wide_k, wide_v, is_causal=True).transpose(1, 2)
    x = torch.randn(8, 16, requires_grad=True)
    shares, weight = torch.rand(8, requires_grad=True), torch.rand(16, requires_grad=True)
    pairs = [
        ("attention", ours, plain, (q, k, v)),
        ("norm", RmsNorm.apply(x, weight), F.rms_norm(x, (16,), weight, 1e-6), (x, weight)),
        ("SwiGLU", SwiGlu.apply(x, shares), F.silu(x[:, :8]) * x[:, 8:] * shares[:, None], (x, shares)),
    ]
    for name, a, b, inputs in pairs:
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, msg=f"{name} differs")
        d = torch.randn_like(a)
        for ga, gb in zip(torch.autograd.grad(a, inputs, d), torch.autograd.grad(b, inputs, d)):
            torch.testing.assert_close(ga, gb, rtol=1e-4, atol=1e-5, msg=f"gradients of {name} differ")


def make_workspaces():
    """Lets cuBLAS take its workspace (32 MiB on Hopper), which is no layer's, before anything is counted."""
    for dtype in (torch.bfloat16, torch.float32):
        square = torch.ones(256, 256, dtype=dtype, device="cuda", requires_grad=True)
        (square @ square).sum().backward()
    torch.cuda.synchronize()


def main():
    words = [word for word in sys.argv[1:] if word != "--cpu"]
    cpu = len(words) < len(sys.argv) - 1
    if not words:
        sys.exit(__doc__)
    check_functions()
    print(f"PyTorch {torch.__version__}, {'CPU' if cpu else torch.cuda.get_device_name()}")
    if not cpu:
        make_workspaces()
    cases = words[1:] or [case for case in CASES if case != "tiny"]
    results = [compare(words[0], case, cpu) for case in cases]
    sys.exit(0 if all(results) else "a figure differs by more than it may")


if __name__ == "__main__":
    main()
