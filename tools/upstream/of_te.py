"""TransformerEngine's graph.py: which capture orders it takes, what it raises of others, and whose static inputs are one.

graph.py runs as it stands on what pretended.py makes of PyTorch. What graphs compute, bench/gpu/te/observe.py sees on a device.
"""

import functools
import math
import traceback

import pretended
from extract import scope_of
from questions import Question

PACKAGE = "transformer-engine"
FILES = {"graph.py": "transformer_engine/pytorch/graph.py"}
VECTORS = ["te_gpu_2.20.json", "te_hazards.json"]
MODELLED = ["_make_graphed_callables", "make_graphed_callables", "_none_grad_context_wrapper", "_graph_context_wrapper",
            "_canonicalize_capture_time_hooks", "_run_capture_time_hooks"]


class Release:
    def __init__(self, texts):
        self.lines = texts["graph.py"].splitlines()
        self.make = scope_of(texts, "graph.py", pretended.members())["make_graphed_callables"]

    def capture(self, row):
        """The samples that are left of those that were given: graphs whose static input is one have one."""
        order = [float(entry) if isinstance(entry, str) else entry for entry in row["order"]]
        whole = [entry for entry in order if math.isfinite(entry) and math.ceil(entry) == entry]
        chunks = max([int(entry) for entry in whole], default=1) or 1
        layers, needs = row.get("layers", [1] * len(row["need_wgrad"])), row["need_wgrad"]
        counts = layers if isinstance(layers, list) else [1 if layers is None else layers] * max(chunks, 0)
        counts = [max(int(count), 0) for count in counts]
        microbatches = max(len(whole) // chunks // 2, 0)
        layer = pretended.layer_class()
        modules = tuple(layer(row.get("module", "linear"), chunk < len(needs) and needs[chunk])
                        for chunk, count in enumerate(counts) for _ in range(count))
        samples = [(pretended.Tensor((32, 32)),) for count in counts for _ in range(microbatches * count)]
        self.make(modules, samples, num_warmup_iters=row.get("warmup", 1), _order=order, _num_layers_per_chunk=layers,
                  _reuse_graph_input_output_buffers=row.get("reuse", True))
        return samples

    def kind(self, row):
        """None, or the kind of what is raised, as tests/data names it."""
        try:
            self.capture(row)
        except Exception as raised:  # whatever graph.py, Python or what stands in for PyTorch raises
            return self.kind_of(raised)
        return None

    def kind_of(self, raised):
        last, name = traceback.extract_tb(raised.__traceback__)[-1], type(raised).__name__
        if last.name == "pop" and last.filename.endswith("pretended.py"):
            return f"store.{name}"
        if last.filename == "graph.py" and self.lines[last.lineno - 1].lstrip().startswith("raise "):
            return f"TE.{name}"
        return ("torch." if isinstance(raised, RuntimeError) else "py.") + name

    def static_inputs(self, row):
        return len({id(sample[0]) for sample in self.capture(row)})


def questions(texts, vectors):
    release = Release(texts)
    seen = vectors["te_gpu_2.20.json"]
    for area, name in (("capture orders", "rows"), ("drawn capture orders", "drawn")):
        for row in seen[name]:
            yield Question(area, f"{row['source']} {row['order']}", row["kind"], functools.partial(release.kind, row))
    for of, row in zip(seen["static_buffers"], vectors["te_hazards.json"]["rows"]):
        asked = row | {"layers": [1] * row["chunks"], "need_wgrad": [True] * row["chunks"]}
        yield Question("static inputs", of["source"], of["static_input_buffers"], functools.partial(release.static_inputs, asked))
