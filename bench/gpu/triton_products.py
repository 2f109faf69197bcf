"""Grouped products in Triton, as somebody would write them there: persistent, with sizes on the device and
operands by the copy engine. triton.autotune takes the fastest of a few tiles for each layer.

Weights of all groups lie one after another, and tiles of 128 and 256 divide their sizes.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

FORWARD, DGRAD, WGRAD = range(3)


def set_blocks(arguments):
    """Gives the descriptors the blocks of the configuration that is tried."""
    rows, columns, slices = (arguments[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    if arguments["KIND"] == WGRAD:
        arguments["a"].block_shape = [slices, rows]
        arguments["b"].block_shape = [slices, columns]
    else:
        arguments["a"].block_shape = [rows, slices]
        arguments["b"].block_shape = [columns, slices] if arguments["KIND"] == FORWARD else [slices, columns]


def tiles(shapes):
    return [triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_stages=stages, num_warps=warps,
                          pre_hook=set_blocks) for m, n, k, stages, warps in shapes]


@triton.autotune(tiles([(128, 256, 64, 3, 8), (128, 256, 64, 4, 8), (128, 128, 64, 4, 8), (64, 256, 64, 4, 8)]),
                 key=["rows", "groups", "n", "k", "KIND"])
@triton.jit
def by_rows(a, b, to, counts, rows, groups, n, k, KIND: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            BLOCK_K: tl.constexpr):
    """Each row of `a` times its group's matrix: of forward (n, k), of dgrad (k, n)."""
    across = tl.cdiv(n, BLOCK_N)
    tile = tl.program_id(0)
    before, first = 0, 0
    for group in range(groups):
        size = tl.load(counts + group).to(tl.int32)
        down = tl.cdiv(size, BLOCK_M)
        while tile < before + down * across:
            row = (tile - before) % down * BLOCK_M
            column = (tile - before) // down * BLOCK_N
            sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for at in range(0, k, BLOCK_K):
                left = a.load([first + row, at])
                if KIND == 0:
                    sums = tl.dot(left, b.load([group * n + column, at]).T, sums)
                else:
                    sums = tl.dot(left, b.load([group * k + at, column]), sums)
            down_at = row + tl.arange(0, BLOCK_M)
            across_at = column + tl.arange(0, BLOCK_N)
            place = to + (first + down_at[:, None]).to(tl.int64) * n + across_at[None, :]
            tl.store(place, sums.to(to.dtype.element_ty), mask=(down_at < size)[:, None] & (across_at < n)[None, :])
            tile += tl.num_programs(0)
        before += down * across
        first += size


@triton.autotune(tiles([(128, 256, 64, 3, 8), (128, 128, 64, 4, 8), (128, 128, 64, 3, 4), (128, 256, 32, 4, 8)]),
                 key=["rows", "groups", "n", "k"])
@triton.jit
def by_weights(a, b, to, counts, rows, groups, n, k, KIND: tl.constexpr, BLOCK_M: tl.constexpr,
               BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Adds a^T b of each group's rows to its fp32 matrix (n, k)."""
    across = tl.cdiv(k, BLOCK_N)
    per_group = tl.cdiv(n, BLOCK_M) * across
    tile = tl.program_id(0)
    first = 0
    for group in range(groups):
        size = tl.load(counts + group).to(tl.int32)
        while tile < (group + 1) * per_group:
            row = (tile - group * per_group) // across * BLOCK_M
            column = (tile - group * per_group) % across * BLOCK_N
            sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            whole = size // BLOCK_K * BLOCK_K
            for at in range(0, whole, BLOCK_K):
                sums = tl.dot(a.load([first + at, row]).T, b.load([first + at, column]), sums)
            if whole < size:
                live = (whole + tl.arange(0, BLOCK_K) < size)[:, None]
                left = tl.where(live, a.load([first + whole, row]), 0.0)
                right = tl.where(live, b.load([first + whole, column]), 0.0)
                sums = tl.dot(left.T, right, sums)
            down_at = row + tl.arange(0, BLOCK_M)
            across_at = column + tl.arange(0, BLOCK_N)
            place = to + (group * n + down_at[:, None]).to(tl.int64) * k + across_at[None, :]
            inside = (down_at < n)[:, None] & (across_at < k)[None, :]
            tl.store(place, tl.load(place, mask=inside) + sums, mask=inside)
            tile += tl.num_programs(0)
        first += size


def descriptor(tensor):
    flat = tensor.reshape(-1, tensor.shape[-1])
    return TensorDescriptor(flat, list(flat.shape), list(flat.stride()), [64, 64])


class Triton:
    def __init__(self):
        self.programs = torch.cuda.get_device_properties(0).multi_processor_count
        self.made = {}  # descriptors by the tensor's place

    def of(self, tensor):
        key = (tensor.data_ptr(), tuple(tensor.shape))
        if key not in self.made:
            self.made[key] = descriptor(tensor)
        return self.made[key]

    def __call__(self, kind, sizes, counts, x, y, w, result):
        rows, inner, outer = x.shape[0], x.shape[1], y.shape[1]
        if kind == WGRAD:
            by_weights[(self.programs,)](self.of(y), self.of(x), result, counts, rows, len(sizes), outer, inner, kind)
            return
        a, n, k = (x, outer, inner) if kind == FORWARD else (y, inner, outer)
        by_rows[(self.programs,)](self.of(a), self.of(w), result, counts, rows, len(sizes), n, k, kind)
