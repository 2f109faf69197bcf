"""Megatron-Core: a rank's microbatches, its schedule table, the capture order of chunks, and of layers where they overlap."""

import functools

from extract import scope_of
from questions import Question

PACKAGE = "megatron-core"
FILES = {"schedules.py": "megatron/core/pipeline_parallel/schedules.py", "cuda_graphs.py": "megatron/core/transformer/cuda_graphs.py"}
VECTORS = ["megatron_orders.json"]
MODELLED = ["get_pp_rank_microbatches", "get_schedule_table", "convert_schedule_table_to_order",
            "get_overlap_moe_expert_parallel_comm_order", "TECudaGraphHelper._get_sample_arguments",
            "TECudaGraphHelper._get_cuda_graph_input_data"]


class Ranks:
    """A P2PCommunicator's words on the pipeline."""

    def __init__(self, ranks, rank, chunks):
        self.ranks, self.at, self.virtual_pipeline_model_parallel_size = ranks, rank, chunks
        self.pp_group = self

    def size(self):
        return self.ranks

    def rank(self):
        return self.at


class Release:
    """One release's functions, called as its capture code calls them."""

    def __init__(self, texts):
        self.functions = scope_of(texts, "cuda_graphs.py") | scope_of(texts, "schedules.py")

    def microbatches(self, of, overlap):
        ranks = Ranks(of["pp"], of["rank"], of["vp"])
        return self.functions["get_pp_rank_microbatches"](
            of["num_microbatches"], len(of["layers_per_chunk"]), of["group_size"], overlap_moe_expert_parallel_comm=overlap,
            p2p_communicator=ranks)

    def counts(self, of):
        """Whatever overlaps, as the runtime asks, and the warm-up as the capture asks."""
        return [*self.microbatches(of, of["overlap"]), self.microbatches(of, False)[2]]

    def table(self, of):
        chunks = of["num_model_chunks"] if "num_model_chunks" in of else len(of["layers_per_chunk"])
        return [list(pair) for pair in self.functions["get_schedule_table"](of["num_microbatches"], chunks, of["group_size"])]

    def converted(self, of):
        return self.functions["convert_schedule_table_to_order"](of["num_warmup"], of["num_model_chunks"], of["schedule_table"])

    def chunk_order(self, of):
        return self.converted({"num_warmup": self.microbatches(of, False)[2], "num_model_chunks": len(of["layers_per_chunk"]),
                               "schedule_table": self.table(of)})

    def layer_order(self, of, chunk_order):
        """The order of layers, and the chunk and layer of each forward in one list."""
        order, places = self.functions["get_overlap_moe_expert_parallel_comm_order"](
            chunk_order, of["layers_per_chunk"], of["wgrad"])
        return [order, [number for place in places if place is not None for number in place]]


def questions(texts, vectors):
    release = Release(texts)
    for row in vectors["megatron_orders.json"]["rows"]:
        of, raises = row["inputs"], row["raises"]
        def asked(area, stored, ask, *arguments):
            return Question(area, row["id"], stored, functools.partial(ask, of, *arguments))
        if row["kind"] == "schedule" and not raises:
            yield asked("microbatches of a rank", [row[key] for key in (
                "total_num_microbatches", "are_all_microbatches_in_warmup", "num_warmup", "num_remaining", "num_warmup_capture")], release.counts)
            yield asked("orders of chunks", row["chunk_order"], release.chunk_order)
        if row["kind"] == "convert_direct":
            yield asked("orders of chunks", raises or row["chunk_order"], release.converted)
        if row["kind"] == "table_direct":
            yield asked("schedule tables", row["schedule_table"], release.table)
        if row["layer_order"] or row["kind"] == "overlap_direct":
            stored = raises or [row["layer_order"], row["forward_places"]]
            yield asked("orders of layers", stored, release.layer_order, of.get("chunk_order", row["chunk_order"]))
        if row["kind"] == "schedule" and raises:
            yield asked("orders of chunks", raises, release.chunk_order)
