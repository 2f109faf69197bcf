"""capo.megatron.check, on arguments in every form, and held against Megatron-LM's own functions."""

import ast
import collections
import functools
import itertools
import json
import pathlib
import subprocess
import sys
import types

import capo
import program
import pytest

from upstream import source

ROWS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "megatron_orders.json"

FLAGS = """--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 --num-layers 16
    --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 512 --hidden-size 1024 --num-attention-heads 8
    --seq-length 2048 --micro-batch-size 1 --global-batch-size 64 --world-size 16 --expert-model-parallel-size 2
    --overlap-moe-expert-parallel-comm --delay-wgrad-compute --cuda-graph-impl transformer_engine --bf16
    --swiglu --disable-bias-linear --lr 1e-4 --train-iters 10""".split()


def namespace(**changed):
    given = {
        "pipeline_model_parallel_size": 4,
        "virtual_pipeline_model_parallel_size": 2,
        "num_layers": 16,
        "num_microbatches": 16,
        "hidden_size": 1024,
        "seq_length": 2048,
        "micro_batch_size": 1,
        "num_attention_heads": 8,
        "bf16": True,
        "swiglu": True,
    }
    return types.SimpleNamespace(**(given | changed))


def test_flags_of_a_training_command():
    found = capo.megatron.check(FLAGS)
    job = found.job
    assert (job.pp, job.vp, job.microbatches, job.layers) == (4, 2, 16, [2, 2])
    assert (job.overlap, job.delayed_wgrad, job.calls, job.graphs) == (True, True, "overlap", "transformer_engine")
    assert found.verdict == "rejected" and "E01" in {finding.rule for finding in found.report.diagnostics}
    assert found.report.bytes is not None, "sizes follow from the flags"


def test_the_cure_of_the_production_case_is_a_flag():
    assert capo.megatron.check([*FLAGS, "--no-overlap-p2p-communication"]).accepted
    assert capo.megatron.check(FLAGS, plan="safe").accepted


def test_a_namespace_a_config_and_a_mapping_say_the_same():
    forms = [namespace(), vars(namespace()), namespace(num_experts=None)]
    texts = {capo.megatron.check(form).schedule.to_order() for form in forms}
    assert len(texts) == 1
    config = namespace(num_moe_experts=8, moe_router_topk=2, moe_ffn_hidden_size=512)
    assert capo.megatron.check(config).job.modules["configuration"]["experts"] == 8


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"num_layers": 15}, "num_layers 15 is no multiple of 4 ranks x 2 chunks"),
        ({"num_microbatches": None}, "global_batch_size and micro_batch_size"),
        ({"num_microbatches": None, "global_batch_size": 8}, "data_parallel_size or world_size"),
        ({"num_microbatches": None, "global_batch_size": 8, "world_size": 6}, "world_size 6 is no multiple of 4"),
        ({"num_microbatches": 2.5}, "num_microbatches: 2.5 is no whole number"),
        ({"decoder_first_pipeline_num_layers": 3}, "decoder_first_pipeline_num_layers"),
        ({"pipeline_model_parallel_size": 0}, "pipeline_model_parallel_size: 0"),
    ],
)
def test_arguments_that_say_too_little(changed, words):
    with pytest.raises(capo.megatron.ArgumentError, match=words):
        capo.megatron.check(namespace(**changed))


def test_what_megatron_refuses_is_rejected_with_its_reason():
    found = capo.megatron.check(namespace(num_microbatches=5))
    assert found.refusal and found.verdict == "rejected" and found.refusal in str(found)
    assert "accept" not in str(found), "of an order that never runs"
    with pytest.raises(ValueError, match="refuses"):
        found.raise_for_errors()


EXPERTS = {"num_experts": 8, "cuda_graph_impl": "transformer_engine"}
PADDED = {"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True}
OVERLAP = {"overlap_moe_expert_parallel_comm": True}


@pytest.mark.parametrize(
    "changed, words",
    [
        (EXPERTS | PADDED | {"cuda_graph_modules": ["moe", "moe_router"]}, "must not contain both moe and moe_router"),
        (EXPERTS | {"cuda_graph_modules": ["attn", "moe_preprocess"]}, "only supported with moe_router cuda graph"),
        ({"cuda_graph_impl": "local", "cuda_graph_modules": "moe_router"}, "only supported for MoE"),
        (EXPERTS | {"cuda_graph_modules": ["mlp"]}, "only supported for dense layers"),
        (EXPERTS | {"cuda_graph_modules": ["moe"]}, "only supported with drop-padding MoE"),
        (EXPERTS | {"cuda_graph_modules": ["moe_router", "moe_preprocess"], "moe_token_dispatcher_type": "alltoall",
                    "moe_router_padding_for_fp8": True}, "DtoH copies and synchronizations"),
        (EXPERTS | {"recompute_granularity": "full"}, "full recompute is only supported with full iteration"),
        (EXPERTS | {"cuda_graph_modules": ["moe_router"], "recompute_granularity": "selective", "recompute_modules": ["moe"]},
         "moe recompute is not supported with moe_router"),
        (EXPERTS | PADDED | OVERLAP | {"cuda_graph_modules": ["moe"]}, "scope on moe and mlp is not supported"),
        (OVERLAP | {"expert_model_parallel_size": 1}, "only supported with expert model parallelism"),
        (OVERLAP | {"moe_token_dispatcher_type": "allgather"}, "alltoall/flex token dispatcher"),
        (OVERLAP | {"recompute_granularity": "full"}, "disable full recomputation"),
        (OVERLAP | {"recompute_granularity": "selective", "recompute_modules": ["moe"]}, "disable moe in recompute_modules"),
        (OVERLAP | {"moe_shared_expert_overlap": True}, "disable moe_shared_expert_overlap"),
        (OVERLAP | {"mtp_num_layers": 2}, "MTP supports at most one layer"),
        ({"overlap_p2p_comm_warmup_flush": True, "overlap_p2p_comm": False}, "in warmup and flush is only compatible"),
        ({"overlap_p2p_comm_warmup_flush": True, "virtual_pipeline_model_parallel_size": None}, "in warmup and flush"),
        ({"delay_wgrad_compute": True}, "must be enabled when enabling delay_wgrad_compute"),
        ({"cuda_graph_impl": "some"}, "cuda_graph_impl: some is none of"),
        ({"cuda_graph_modules": ["attn", "router"]}, "there is no router; there are attn, mlp"),
    ],
)
def test_graphs_that_megatron_does_not_capture(changed, words):
    found = capo.megatron.check(namespace(**changed))
    assert found.verdict == "rejected" and words in found.refusal and words in str(found)


@pytest.mark.parametrize(
    "changed",
    [
        EXPERTS | {"cuda_graph_modules": ["attn", "moe_router", "moe_preprocess"]},
        EXPERTS | PADDED | {"cuda_graph_modules": ["attn", "moe"]},
        EXPERTS | {"cuda_graph_modules": ["mlp"], "moe_layer_freq": [0, 1] * 8},
        EXPERTS | OVERLAP | {"cuda_graph_modules": ["attn", "moe_router"]},
        OVERLAP | {"moe_token_dispatcher_type": "flex", "expert_model_parallel_size": 8, "mtp_num_layers": 1},
        {"overlap_p2p_comm_warmup_flush": True},
        EXPERTS | {"cuda_graph_impl": "local", "cuda_graph_modules": ["moe_preprocess"]},
        {"cuda_graph_impl": "full_iteration", "recompute_granularity": "full"},
        {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": "full"},
    ],
)
def test_graphs_that_megatron_captures(changed):
    assert capo.megatron.check(namespace(**changed)).job.refusal is None


def test_the_scope_of_earlier_versions():
    def job(*flags, **changed):
        return capo.megatron.job_of(list(flags) if flags else namespace(**changed))

    parts = job(*FLAGS, "--cuda-graph-scope", "attn", "moe_router", "moe_preprocess")
    assert any("attn, moe_router, moe_preprocess" in note for note in parts.notes)
    assert "only supported with drop-padding" in job(*FLAGS, "--cuda-graph-scope", "attn", "moe").refusal
    flags = [flag for flag in FLAGS if flag not in ("--cuda-graph-impl", "transformer_engine")]
    assert job(*flags, "--external-cuda-graph").graphs == "transformer_engine"
    assert job(*flags, "--enable-cuda-graph").graphs == "local"
    whole = job(cuda_graph_impl="local", cuda_graph_modules=[], cuda_graph_scope=["full_iteration"])
    assert (whole.graphs, whole.refusal) == ("full_iteration", None)


def test_local_graphs_are_judged_by_their_own_plan():
    found = capo.megatron.check(namespace(cuda_graph_impl="local"))
    assert (found.job.plan, found.job.notes) == ("mcore-local", [])
    assert found.accepted and "plan mcore-local" in str(found) and found.report.bytes is not None
    for changed in ({"overlap_moe_expert_parallel_comm": True}, {"cuda_graph_modules": ["attn"]}):
        job = capo.megatron.job_of(namespace(cuda_graph_impl="local", **changed))
        assert job.plan is None and any("no plan is judged" in note for note in job.notes)


def test_a_bias_loses_its_gradient_where_weight_gradients_are_delayed():
    plain = [*FLAGS, "--no-overlap-p2p-communication"]
    biased = [flag for flag in plain if flag != "--disable-bias-linear"]
    for flags in (biased, [*plain, "--add-qkv-bias"]):
        assert {finding.rule for finding in capo.megatron.check(flags).report.diagnostics} == {"G02"}
        notes = capo.megatron.job_of([*flags, "--cuda-graph-modules", "attn"]).notes
        assert any("graphs lose their gradients" in note for note in notes)
    assert not any("bias" in note for note in capo.megatron.job_of([*plain, "--cuda-graph-modules", "attn"]).notes)
    assert capo.megatron.check([flag for flag in biased if flag != "--delay-wgrad-compute"]).accepted


LATENT = """--pipeline-model-parallel-size 4 --num-layers 8 --num-microbatches 8 --cuda-graph-impl transformer_engine
    --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128
    --seq-length 4096
    --micro-batch-size 1 --kv-channels 128 --qk-layernorm
    --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 --swiglu
    --expert-model-parallel-size 64 --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --bf16"""


def test_latent_attention_and_what_experts_are_padded_to_give_bytes():
    published = json.loads(program.run("model", "deepseek-v3").stdout)["configuration"]
    job = capo.megatron.job_of(LATENT)
    ours = {"layers", "dense_layers", "vocabulary", "recipe", "weight_cache", "recompute", "tensor_parallel", "context_parallel"}
    given = {name: size for name, size in published.items() if name not in ours}
    derived = {name: size for name, size in job.modules["configuration"].items() if name not in ours}
    assert derived == given and not job.notes
    plain = LATENT.replace("--multi-latent-attention", "")
    assert capo.megatron.job_of(plain).modules["configuration"]["qk_norm"] is True
    grouped = plain + " --num-query-groups 4 --tensor-model-parallel-size 8 --sequence-parallel"
    assert capo.megatron.check(grouped).job.modules["configuration"]["kv_heads"] == 8
    padded = LATENT + " --moe-expert-capacity-factor 1.5 --moe-pad-expert-input-to-capacity"
    assert capo.megatron.job_of(padded).modules["configuration"]["capacity_factor"] == 1.5
    assert capo.megatron.check(padded).report.bytes != capo.megatron.check(LATENT).report.bytes


@pytest.mark.parametrize(
    "changed, words, derived",
    [
        ({"swiglu": None}, "bytes are those of gated MLPs", True),
        ({"tensor_model_parallel_size": 2}, "sequence_parallel is not given", True),
        ({"recompute_granularity": "selective", "recompute_modules": ["moe_act"]}, "without the recomputation of moe_act", True),
        ({"mtp_num_layers": 1}, "those of the decoder's last layer", True),
        ({"multi_latent_attention": True}, "multi_latent_attention without q_lora_rank: bytes are not derived", False),
        ({"fp8": "e4m3", "fp8_recipe": "custom"}, "fp8_recipe custom is none of", False),
        ({"num_experts": 8, "moe_ffn_hidden_size": 512, "moe_shared_expert_intermediate_size": 700}, "is no multiple of", False),
    ],
)
def test_bytes_of_something_else_are_told(changed, words, derived):
    found = capo.megatron.check(namespace(cuda_graph_impl="transformer_engine", **changed))
    assert any(words in note for note in found.job.notes), found.job.notes
    assert (found.report.bytes is not None) == derived


def test_a_flag_that_is_misspelt_is_named():
    found = capo.megatron.check([*FLAGS, "--overlap-p2p-communication-warmup-flus", "--norm-epsilon", "1e-6"])
    assert found.job.notes == [
        "--overlap-p2p-communication-warmup-flus is not read: is --overlap-p2p-communication-warmup-flush meant?"
    ]
    assert "note: --overlap" in str(found)


def test_a_flag_that_is_cut_short_and_a_key_that_is_misspelt_are_named():
    short = capo.megatron.check(["--pipeline-model-parallel", "4", "--num-layers", "8", "--num-microbatches", "8"])
    assert short.job.notes == ["--pipeline-model-parallel is not read: is --pipeline-model-parallel-size meant?"]
    keys = {"pipeline_model_paralel_size": 4, "num_layers": 8, "num_microbatches": 8}
    assert capo.megatron.check(keys).job.notes == [
        "pipeline_model_paralel_size is not read: is pipeline_model_parallel_size meant?"
    ]
    names = dict.fromkeys(["overlap_p2p_comm", "num_moe_experts", "rampup_batch_size", "train", "pipeline_model_parallel_rank"])
    assert capo.megatron.check(vars(namespace()) | names).job.notes == []


def test_a_command_is_one_text_as_well():
    line = "--pipeline-model-parallel-size 4 --num-layers '8' --num-microbatches 8"
    assert capo.megatron.check(line).job.asked() == capo.megatron.check(line.replace("'", "").split()).job.asked()


def test_a_container_holds_the_model_and_the_run():
    """Megatron-Bridge's, and the mapping of its YAML."""
    whole = vars(namespace(virtual_pipeline_model_parallel_size=2, num_microbatches=None, overlap_moe_expert_parallel_comm=False))
    parts = {
        "model": {name: value for name, value in whole.items() if name != "micro_batch_size"},
        "train": {"global_batch_size": 64, "micro_batch_size": 1},
        "comm_overlap": {"overlap_moe_expert_parallel_comm": True, "delay_wgrad_compute": None},
    }
    container = types.SimpleNamespace(
        **{name: types.SimpleNamespace(**part) for name, part in parts.items()}, data_parallel_size=4
    )
    for given in (parts | {"data_parallel_size": 4}, container):
        job = capo.megatron.job_of(given)
        assert (job.pp, job.vp, job.microbatches, job.overlap, job.notes) == (4, 2, 16, True, [])
    assert capo.megatron.job_of(namespace(model="gpt", train=True)).pp == 4


def test_a_batch_that_grows_is_told_of():
    found = capo.megatron.check([*FLAGS, "--no-overlap-p2p-communication", "--rampup-batch-size", "16", "16", "1000"])
    assert found.accepted and [note for note in found.job.notes if note.startswith("rampup_batch_size")]


def test_a_recipe_is_a_mapping_of_flags():
    recipe = {"--pipeline-model-parallel-size": 4, "--num-layers": 8, "--num-microbatches": 8, "--bf16": True, "--fp16": False,
              "--cuda-graph-impl": "transformer_engine", "--cuda-graph-modules": "attn moe_router", "--num-experts": 8,
              "--recompute-modules": ["moe_act", "layernorm"], "--pipeline-model-parallel-layout": "'Et|t*3|t*3|tL'"}
    job = capo.megatron.job_of(recipe)
    assert (job.pp, job.microbatches, job.layers) == (4, 8, [[1], [3], [3], [1]])
    assert "graphs hold attn, moe_router of a layer" in job.notes[0] and job.refusal is None


def test_flags_of_the_command_line_of_capo_are_named():
    notes = capo.megatron.check("--pp 4 --vp 2 --num-layers 8 --num-microbatches 8").job.notes
    assert notes == [
        "--pp is not read: is --pipeline-model-parallel-size meant?",
        "--vp is not read: is --num-virtual-stages-per-pipeline-rank meant?",
    ]


def test_weight_gradients_are_captured_where_a_graph_holds_their_product():
    def delayed(**changed):
        return capo.megatron.check(namespace(**(EXPERTS | OVERLAP | {"delay_wgrad_compute": True} | changed))).job.delayed_wgrad

    assert delayed() and delayed(cuda_graph_modules=["attn"])
    assert not delayed(cuda_graph_modules=["moe_router"])
    assert delayed(cuda_graph_modules=["moe_router"], moe_shared_expert_intermediate_size=512, moe_ffn_hidden_size=512)


def test_the_module_is_a_program():
    def run(*flags):
        command = [sys.executable, "-m", "capo.megatron", "--", *flags]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    rejected = run(*FLAGS)
    assert rejected.returncode == 1 and "E01" in rejected.stdout
    assert run(" ".join(FLAGS)).stdout == rejected.stdout, "a command that was quoted"
    short = run("--num-layers", "four")
    assert short.returncode == 2 and "num-layers" in short.stderr
    told = subprocess.run([sys.executable, "-m", "capo.megatron", "--help"], capture_output=True, text=True, check=False)
    assert told.returncode == 0 and "--cuda-graph-impl" in told.stdout and not told.stderr


FUNCTIONS = {
    "megatron/core/pipeline_parallel/schedules.py": ["get_pp_rank_microbatches", "get_schedule_table"],
    "megatron/core/transformer/cuda_graphs.py": [
        "convert_schedule_table_to_order",
        "get_overlap_moe_expert_parallel_comm_order",
    ],
}


@pytest.fixture(scope="module")
def released():
    """Functions of megatron-core 0.19.2, taken out of its wheel by their names."""
    scope = {"parallel_state": types.SimpleNamespace(), "partial": functools.partial}
    scope |= vars(itertools) | {"defaultdict": collections.defaultdict}
    for path, names in FUNCTIONS.items():
        tree = ast.parse(source("megatron-core==0.19.2", path))
        wanted = [node for node in tree.body if getattr(node, "name", None) in names]
        assert sorted(node.name for node in wanted) == names
        future = ast.parse("from __future__ import annotations").body
        exec(compile(ast.Module([*future, *wanted], []), path, "exec"), scope)
    return scope


def orders_of(released, job):
    """What capture is handed on each rank: the calls of _get_cuda_graph_input_data."""
    state = released["parallel_state"]
    state.get_pipeline_model_parallel_world_size = lambda: job.pp
    state.get_virtual_pipeline_model_parallel_world_size = lambda: job.vp
    chunks, group = job.vp or 1, job.group_size or job.pp
    for rank in range(job.pp):
        state.get_pipeline_model_parallel_rank = lambda rank=rank: rank
        _, _, warmup, _ = released["get_pp_rank_microbatches"](job.microbatches, chunks, group)
        table = released["get_schedule_table"](job.microbatches, chunks, group)
        order = released["convert_schedule_table_to_order"](warmup, chunks, table)
        if job.overlap:
            order, _ = released["get_overlap_moe_expert_parallel_comm_order"](
                order, job.layers, job.delayed_wgrad
            )
        yield order


def job_of_row(given):
    chunks = given["vp"] or 1
    layers = given["layers_per_chunk"] or [1] * chunks
    if len(set(layers)) != 1 or layers[0] < 1 or len(layers) != chunks:
        return None  # Megatron's arguments give every chunk as many
    return namespace(
        pipeline_model_parallel_size=given["pp"],
        virtual_pipeline_model_parallel_size=given["vp"],
        num_layers=given["pp"] * chunks * layers[0],
        num_microbatches=given["num_microbatches"],
        microbatch_group_size_per_vp_stage=given["group_size"],
        overlap_moe_expert_parallel_comm=given["overlap"],
        delay_wgrad_compute=given["wgrad"],
    )


def test_orders_and_refusals_are_those_of_the_release(released):
    """Over the rows of megatron_orders.json, every rank of each configuration, against 0.19.2 itself."""
    asked = refused = 0
    for row in json.loads(ROWS.read_text())["rows"]:
        if row["kind"] != "schedule" or row["raises"] or (args := job_of_row(row["inputs"])) is None:
            continue
        job = capo.megatron.job_of(args)
        if job.pp == 1 and not job.overlap:
            continue  # one microbatch is captured for all: the runtime's order is another
        made = capo.megatron.orders(**job.asked(), force=True)
        assert made == list(orders_of(released, job)), row["id"]
        why = capo.megatron.refusal(
            pp=job.pp, vp=job.vp, microbatches=job.microbatches, group_size=job.group_size, overlap=job.overlap
        )
        assert (why is None) == (row["runtime"] == ["accepted"]), (row["id"], why)
        asked += 1
        refused += why is not None
    assert asked >= 150 and refused >= 5
