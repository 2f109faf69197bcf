#!/usr/bin/env python3
"""Races grouped products against their peers on this device, as graph replays in shuffled rounds.

    python3 bench/gpu/peers.py libgrouped.so [ROWS[,ROWS] [ROUNDS [LAYERS [PASSES [LIBCUTLASS]]]]]
    python3 bench/gpu/peers.py libgrouped.so 4096,16384,65536 9 0,3,5,7 0,2 libcutlass.so

grouped_call.cu and cutlass_grouped.cu say how the libraries are built. Layers are indices of LAYERS;
passes are 0 forward, 1 dgrad, 2 wgrad added to fp32. Peers with sizes known on the host: a loop of
cublasGemmEx over the groups on one stream and on four, and cublasGemmGroupedBatchedEx ("cublas").
Peers with sizes on the device: torch._grouped_mm (wgrad: and add_), Triton (triton_products.py), and
CUTLASS where its library is given. Every product is first compared with float64 on rows, or columns,
of each group; a peer that is wrong or refuses is named, and not raced. DeepGEMM is raced nowhere.

Figures are TFLOP/s over rows in use. "floor" is the larger of operations at the rate of a dense
8192^3 product of the same rounds and bytes at the rate of a copy, or of fp32 +=, measured at the
start. Needs PyTorch 2.11 or later with CUDA 13. It is no test, and does not fail on an error.
"""

import ctypes
import math
import os
import random
import sys

import torch

from peer_products import DEVICE, DGRAD, FORWARD, WGRAD, Cublas, CublasGrouped, Cutlass
from triton_products import Triton

HALF = torch.bfloat16
LAYERS = [  # name, groups, out, in
    ("Mixtral fc1", 8, 28672, 4096), ("Mixtral fc2", 8, 4096, 14336),
    ("DSv3 fc1", 32, 4096, 7168), ("DSv3 fc2", 32, 7168, 2048),
    ("DSv3 fc1", 8, 4096, 7168), ("DSv3 fc2", 8, 7168, 2048),
    ("Qwen3 fc1", 16, 1536, 2048), ("Qwen3 fc2", 16, 2048, 768),
]
PASSES = ["fwd", "dgrad", "wgrad"]
ON_DEVICE = ["torch", "triton", "cutlass"]  # peers that read sizes there


def balanced(rows, groups):
    return [rows // groups] * groups


def skewed(rows, groups):
    """Sizes by Zipf's law, an eighth of the groups empty."""
    used = groups - groups // 8
    total = sum(1 / i for i in range(1, used + 1))
    sizes = [0] * groups
    for i in range(1, used):
        sizes[i] = int(rows / (i + 1) / total)
    sizes[0] = rows - sum(sizes)
    random.Random(7).shuffle(sizes)
    return sizes


def tables(weights):
    return [torch.tensor([w.data_ptr() for w in each], dtype=torch.int64, device=DEVICE) for each in weights]


class Ours:
    def __init__(self, path):
        self.launch = ctypes.CDLL(os.path.abspath(path)).grouped
        self.launch.argtypes = ([ctypes.c_int] * 4 + [ctypes.c_int64] * 2 + [ctypes.c_void_p] +
                                [ctypes.c_int64] * 2 + [ctypes.c_void_p] * 4)

    def __call__(self, kind, x, y, table, sizes):
        is_weight = kind == WGRAD
        code = self.launch(kind, 0, 2 if is_weight else 0, int(is_weight), x.shape[0], sizes.numel(),
                           sizes.data_ptr(), x.shape[1], y.shape[1], x.data_ptr(), y.data_ptr(),
                           table.data_ptr(), torch.cuda.current_stream().cuda_stream)
        assert code == 0, code


def error_of(kind, run, x, y, w, result, sizes):
    """The relative error of one call, on a few rows or columns of each group."""
    off = scale = first = 0
    columns = torch.randint(0, x.shape[1], (6,), device=DEVICE)
    before = w[:, :, columns].double() if kind == WGRAD else None
    run()
    torch.cuda.synchronize()
    if kind != WGRAD and not torch.isfinite(result[:sum(sizes)]).all():
        return float("nan")
    for group, size in enumerate(sizes):
        rows = slice(first, first + size)
        if kind == WGRAD:
            wanted = before[group] + y[rows].double().T @ x[rows][:, columns].double()
            got = w[group][:, columns]
        elif size > 0:
            some = sorted({first, first + size - 1, first + size // 2, first + size // 3})
            operand, matrix = (x, w[group].double().T) if kind == FORWARD else (y, w[group].double())
            wanted, got = operand[some].double() @ matrix, result[some]
        else:
            continue
        off += (got.double() - wanted).norm().item() ** 2
        scale += wanted.norm().item() ** 2
        first += size
    return math.sqrt(off / scale)


class Race:
    def __init__(self, ours, cutlass, rounds):
        self.ours, self.rounds, self.main = ours, rounds, torch.cuda.Stream()
        self.peers = {"loop1": Cublas(self.main, 1), "loop4": Cublas(self.main, 4),
                      "cublas": CublasGrouped(self.main), "triton": Triton()}
        if cutlass is None:
            print("not raced: cutlass (its library is not given)")
        else:
            self.peers["cutlass"] = cutlass
        self.a, self.b = (torch.randn(8192, 8192, device=DEVICE).to(HALF) for _ in range(2))
        self.c = torch.empty_like(self.a)
        self.copy_rate, self.add_rate = self.rates()

    @staticmethod
    def rates():
        one = torch.empty(1 << 29, dtype=torch.float32, device=DEVICE).normal_()
        other = torch.empty_like(one)
        rates = []
        for work in (lambda: other.copy_(one), lambda: other.add_(1.5)):
            work()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(3):
                work()
            end.record()
            end.synchronize()
            rates.append(2 * 3 * one.numel() * 4 / (begin.elapsed_time(end) * 1e-3))
        return rates

    def captured(self, work, calls):
        with torch.cuda.stream(self.main):
            for call in range(calls):  # makes what a call needs the first time
                work(call)
            self.main.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.main, capture_error_mode="thread_local"):
                for call in range(calls):
                    work(call)
        return graph

    def row(self, layer, rows, spread, kind):
        name, groups, outer, inner = layer
        sizes = (balanced if spread == "bal" else skewed)(rows, groups)
        used, width = sum(1 for size in sizes if size), 4 if kind == WGRAD else 2
        operations = 2 * sum(sizes) * outer * inner
        # Buffers rotate, so that no call finds its own in the cache.
        sets = max(1, min(4, math.ceil(300e6 / (rows * (inner + outer) * 2 + groups * outer * inner * width))))
        calls = max(sets, 4) if operations < 1e12 else sets
        counts = torch.tensor(sizes, dtype=torch.int64, device=DEVICE)
        ends = torch.cumsum(counts, 0).to(torch.int32)
        x = [torch.randn(rows, inner, device=DEVICE).to(HALF) for _ in range(sets)]
        y = [torch.randn(rows, outer, device=DEVICE).to(HALF) for _ in range(sets)]
        if kind == WGRAD:
            w = [torch.randn(groups, outer, inner, device=DEVICE) for _ in range(sets)]
            ours, theirs = w, w
        else:
            w = [(torch.randn(groups, outer, inner, device=DEVICE) / math.sqrt(inner)).to(HALF) for _ in range(sets)]
            ours = [torch.full_like(t, float("nan")) for t in (y if kind == FORWARD else x)]
            theirs = [torch.empty_like(t) for t in ours]
        table = tables(w)

        def run_ours(k):
            k %= sets
            self.ours(kind, ours[k] if kind == DGRAD else x[k], ours[k] if kind == FORWARD else y[k], table[k], counts)

        def run_torch(k):
            k %= sets
            if kind == FORWARD:
                torch._grouped_mm(x[k], w[k].transpose(1, 2), offs=ends)
            elif kind == DGRAD:
                torch._grouped_mm(y[k], w[k], offs=ends)
            else:
                w[k].add_(torch._grouped_mm(y[k].t(), x[k], offs=ends))

        def run_peer(of):
            return lambda k: of(kind, sizes, counts, x[k % sets], y[k % sets], w[k % sets], theirs[k % sets])

        def error(run, into):
            return error_of(kind, lambda: run(0), x[0], y[0], w[0], into[0], sizes)

        off = error(run_ours, ours)
        work = {"capo": run_ours, "torch": run_torch, "dense": lambda _: torch.mm(self.a, self.b.T, out=self.c)}
        for peer, of in self.peers.items():
            with torch.cuda.stream(self.main):
                try:
                    run_peer(of)(0)  # tries tiles the first time, which adds to the result
                    theirs[0].normal_()  # so that sums of trials, or another peer's results, pass for no call's
                    wrong = error(run_peer(of), theirs)
                except Exception as why:
                    wrong = why
            if isinstance(wrong, float) and wrong < 1e-2:
                work[peer] = run_peer(of)
            else:
                print(f"not raced: {peer} ({wrong})", flush=True)
        times = self.times(work, calls)
        dense = 2 * 8192**3 / times.pop("dense")
        memory = used * outer * inner * (2 * width if kind == WGRAD else width) + sum(sizes) * (inner + outer) * 2
        floor = max(operations / dense, memory / (self.add_rate if kind == WGRAD else self.copy_rate))
        mine = times.pop("capo")
        ratio = min(times.values()) / mine
        on_device = min(time for peer, time in times.items() if peer in ON_DEVICE) / mine
        peers = "".join(f" {peer} {operations / time / 1e12:4.0f}" for peer, time in times.items())
        print(f"{name} E{groups} {rows // 1024}k {spread:4} {PASSES[kind]:5} dense {dense / 1e12:4.0f}"
              f" floor {operations / floor / 1e12:4.0f} | capo {operations / mine / 1e12:4.0f}{peers}"
              f" | best/capo {ratio:.2f} device/capo {on_device:.2f} capo/floor {mine / floor:.2f} error {off:.1e}", flush=True)
        return ratio, mine / floor

    def times(self, work, calls):
        """Medians of seconds a call."""
        torch.cuda.synchronize()  # buffers are filled on a stream that self.main does not wait for
        graphs = {name: self.captured(each, 1 if name == "dense" else calls) for name, each in work.items()}
        times = {name: [] for name in work}
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(self.main):
            for turn in range(self.rounds + 1):
                for name in random.sample(list(graphs), len(graphs)):
                    begin.record()
                    graphs[name].replay()
                    end.record()
                    end.synchronize()
                    took = begin.elapsed_time(end) * 1e-3 / (1 if name == "dense" else calls)
                    if turn > 0:
                        times[name].append(took)
        return {name: sorted(all_of)[len(all_of) // 2] for name, all_of in times.items()}


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    given = dict(enumerate(sys.argv))
    rounds, layers = int(given.get(3, 9)), numbers(given.get(4, "0,1,2,3,4,5,6,7"))
    race = Race(Ours(sys.argv[1]), Cutlass(given[6]) if 6 in given else None, rounds)
    print(f"{torch.cuda.get_device_name()}: copy {race.copy_rate / 1e12:.2f} TB/s, += {race.add_rate / 1e12:.2f} TB/s")
    for rows in numbers(given.get(2, "4096,16384")):
        for kind in numbers(given.get(5, "0,1,2")):
            results = []
            for layer in layers:
                for spread in ("bal", "skew"):
                    results.append(race.row(LAYERS[layer], rows, spread, kind))
                    torch.cuda.empty_cache()
            mean = math.exp(sum(math.log(ratio) for ratio, _ in results) / len(results))
            floors = sorted(floor for _, floor in results)
            print(f"== {rows // 1024}k {PASSES[kind]}: geometric mean of best/capo {mean:.3f}, least"
                  f" {min(ratio for ratio, _ in results):.2f}; capo/floor median {floors[len(floors) // 2]:.2f},"
                  f" most {floors[-1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
