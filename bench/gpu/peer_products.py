"""The peers of grouped products that peers.py races, but for Triton's: cuBLAS in a loop and grouped, and CUTLASS.

Each is called as peer(kind, sizes, counts, x, y, w, result), where `sizes` are the host's and
`counts` the device's. DGRAD and FORWARD write `result`, WGRAD adds to it.
"""

import ctypes
import glob
import math
import os

import nvidia
import torch

DEVICE = "cuda"
FORWARD, DGRAD, WGRAD = range(3)


def cublas():
    found = glob.glob(os.path.join(list(nvidia.__path__)[0], "**", "libcublas.so*"), recursive=True)
    return ctypes.CDLL(found[0])


def operands(kind, x, y, w, result):
    """cuBLAS's arguments of a product: turns, (m, n, k) with None for the rows, and (tensor, step) of A, B, C."""
    inner, outer = x.shape[1], y.shape[1]
    if kind == FORWARD:
        return (1, 0), (outer, None, inner), (w, inner), (x, inner), (result, outer)
    if kind == DGRAD:
        return (0, 0), (inner, None, outer), (w, inner), (y, outer), (result, inner)
    return (0, 1), (inner, outer, None), (x, inner), (y, outer), (result, inner)


def address(tensor, group, first):
    """A group's own part of a tensor by groups, or its rows of one by rows."""
    if tensor.dim() == 3:
        return tensor[group].data_ptr()
    return tensor.data_ptr() + first * tensor.shape[1] * tensor.element_size()


class Cublas:
    """A loop of cublasGemmEx, one handle a stream, 64 MiB of workspace each."""

    WORKSPACE = 64 << 20

    def __init__(self, main, count):
        self.library = cublas()
        self.main = main
        self.streams = [main] if count == 1 else [torch.cuda.Stream() for _ in range(count)]
        self.handles, self.workspaces = [], []
        self.one, self.zero = ctypes.c_float(1), ctypes.c_float(0)
        for stream in self.streams:
            handle = ctypes.c_void_p()
            workspace = torch.empty(self.WORKSPACE, dtype=torch.uint8, device=DEVICE)
            assert self.library.cublasCreate_v2(ctypes.byref(handle)) == 0
            assert self.library.cublasSetStream_v2(handle, ctypes.c_void_p(stream.cuda_stream)) == 0
            assert self.library.cublasSetWorkspace_v2(handle, ctypes.c_void_p(workspace.data_ptr()),
                                                      ctypes.c_size_t(self.WORKSPACE)) == 0
            self.handles.append(handle)
            self.workspaces.append(workspace)

    def multiply(self, handle, turns, mnk, a, a_step, b, b_step, c, c_step, adds):
        code = self.library.cublasGemmEx(
            handle, *turns, *mnk, ctypes.byref(self.one), ctypes.c_void_p(a), 14, a_step, ctypes.c_void_p(b), 14,
            b_step, ctypes.byref(self.one if adds else self.zero), ctypes.c_void_p(c), 0 if adds else 14, c_step, 68, -1)
        assert code == 0, code

    def __call__(self, kind, sizes, counts, x, y, w, result):
        if len(self.streams) > 1:
            begin = torch.cuda.Event()
            begin.record(self.main)
            for stream in self.streams:
                stream.wait_event(begin)
        turns, mnk, *parts = operands(kind, x, y, w, result)
        first = 0
        for group, size in enumerate(sizes):
            if size == 0:
                continue
            (a, a_step), (b, b_step), (c, c_step) = ((address(of, group, first), step) for of, step in parts)
            self.multiply(self.handles[group % len(self.handles)], turns, [size if n is None else n for n in mnk],
                          a, a_step, b, b_step, c, c_step, kind == WGRAD)
            first += size
        if len(self.streams) > 1:
            for stream in self.streams:
                end = torch.cuda.Event()
                end.record(stream)
                self.main.wait_event(end)


class CublasGrouped:
    """cublasGemmGroupedBatchedEx: one call, sizes known on the host, addresses on the device."""

    def __init__(self, main):
        self.library, self.handle = cublas(), ctypes.c_void_p()
        self.workspace = torch.empty(64 << 20, dtype=torch.uint8, device=DEVICE)
        assert self.library.cublasCreate_v2(ctypes.byref(self.handle)) == 0
        assert self.library.cublasSetStream_v2(self.handle, ctypes.c_void_p(main.cuda_stream)) == 0
        assert self.library.cublasSetWorkspace_v2(self.handle, ctypes.c_void_p(self.workspace.data_ptr()),
                                                  ctypes.c_size_t(64 << 20)) == 0
        self.made = {}

    def arguments(self, kind, sizes, x, y, w, result):
        """What the call reads, which has to live as long as a graph that holds it."""
        turns, mnk, *parts = operands(kind, x, y, w, result)
        used, firsts, first = [], [], 0
        for group, size in enumerate(sizes):
            if size:
                used.append(group)
                firsts.append(first)
            first += size
        count = len(used)
        ints = lambda values: (ctypes.c_int * count)(*values)
        floats = lambda value: (ctypes.c_float * count)(*[value] * count)
        tables = [torch.tensor([address(of, g, at) for g, at in zip(used, firsts)], dtype=torch.int64, device=DEVICE)
                  for of, _ in parts]
        shape = [ints([sizes[g] if n is None else n for g in used]) for n in mnk]
        steps = [ints([step] * count) for _, step in parts]
        return ([ints([turn] * count) for turn in turns] + shape + [floats(1), tables[0], steps[0], tables[1], steps[1],
                floats(1 if kind == WGRAD else 0), tables[2], steps[2], ints([1] * count), count])

    def __call__(self, kind, sizes, counts, x, y, w, result):
        key = (kind, tuple(sizes), x.shape, y.shape, x.data_ptr(), y.data_ptr(), w.data_ptr(), result.data_ptr())
        if key not in self.made:
            self.made[key] = self.arguments(kind, sizes, x, y, w, result)
        (turn_a, turn_b, m, n, k, alpha, a, a_step, b, b_step, beta, c, c_step, ones, count) = self.made[key]
        pointer = lambda table: ctypes.c_void_p(table.data_ptr())
        code = self.library.cublasGemmGroupedBatchedEx(
            self.handle, turn_a, turn_b, m, n, k, alpha, pointer(a), 14, a_step, pointer(b), 14, b_step, beta,
            pointer(c), 0 if kind == WGRAD else 14, c_step, count, ones, 68)
        assert code == 0, f"cublasGemmGroupedBatchedEx returns {code}"


class Cutlass:
    """CUTLASS's grouped products (cutlass_grouped.cu): the first call of a layer finds the fastest of their choices."""

    REPEATS = 4

    def __init__(self, path):
        self.library = ctypes.CDLL(os.path.abspath(path))
        pointer, number, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
        self.library.cutlass_workspace.argtypes = [size, number]
        self.library.cutlass_workspace.restype = size
        self.library.cutlass_multiply.argtypes = ([number, number, size, pointer, size, size] + [pointer] * 4 +
                                                 [number, pointer, pointer])
        self.processors = torch.cuda.get_device_properties(0).multi_processor_count
        self.workspaces = {}  # by the number of groups; calls of one stream follow each other
        self.chosen = {}

    def workspace(self, groups):
        if groups not in self.workspaces:
            bytes_of = self.library.cutlass_workspace(groups, self.processors)
            self.workspaces[groups] = torch.empty(bytes_of, dtype=torch.uint8, device=DEVICE)
        return self.workspaces[groups]

    def launch(self, choice, kind, counts, x, y, w, result):
        code = self.library.cutlass_multiply(
            kind, choice, counts.numel(), counts.data_ptr(), x.shape[1], y.shape[1], x.data_ptr(), y.data_ptr(),
            w.data_ptr(), result.data_ptr(), self.processors, self.workspace(counts.numel()).data_ptr(),
            torch.cuda.current_stream().cuda_stream)
        if code != 0:
            raise RuntimeError(f"choice {choice} of CUTLASS's returns {code}")

    def seconds(self, choice, *arguments):
        """The time of a call, as the least of three replays of a graph of several; infinite if it is refused."""
        try:
            self.launch(choice, *arguments)  # loads the kernel, which a capture must not do
        except RuntimeError as refused:
            print(refused, flush=True)
            return math.inf
        stream, graph = torch.cuda.current_stream(), torch.cuda.CUDAGraph()
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            for _ in range(self.REPEATS):
                self.launch(choice, *arguments)
        times = []
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(4):
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e-3 / self.REPEATS)
        return min(times[1:])

    def __call__(self, kind, sizes, counts, x, y, w, result):
        arguments = (kind, counts, x, y, w, result)
        key = (kind, counts.numel(), x.shape, y.shape)
        if key not in self.chosen:
            choices = range(self.library.cutlass_choices())
            self.chosen[key] = min(choices, key=lambda choice: self.seconds(choice, *arguments))
            print(f"cutlass takes choice {self.chosen[key]} of {len(choices)} for pass {kind} of"
                  f" {counts.numel()} groups, {x.shape[0]} rows, {x.shape[1]} in, {y.shape[1]} out", flush=True)
        self.launch(self.chosen[key], *arguments)  # raises where every choice is refused
