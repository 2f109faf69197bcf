"""How Megatron-LM splits layers over stages, by hand and held against the functions of a release."""

import ast
import itertools
import re
import types

import capo
import pytest

from upstream import source

RELEASE = "megatron-core==0.19.2"


def job(**given):
    sizes = {"num_microbatches": 16, "hidden_size": 1024, "seq_length": 2048, "micro_batch_size": 1, "num_attention_heads": 8,
             "swiglu": True}
    return capo.megatron.job_of(sizes | given)


def layers_of(job):
    """Of each rank, of each chunk."""
    return job.layers if isinstance(job.layers[0], list) else [job.layers] * job.pp


def test_the_layout_of_deepseek_v3():
    found = job(pipeline_model_parallel_size=16, num_layers=61, mtp_num_layers=1, num_experts=256,
                moe_layer_freq="([0]*3+[1]*58)", pipeline_model_parallel_layout="Et*3|(tt|)*29,m|L")
    assert found.vp == 2 and found.layers == [[3, 2], *[[2, 2]] * 13, [2, 1], [2, 0]]
    assert any("a stage has no layer" in note for note in found.notes) and found.modules is None


def test_the_number_of_stages_is_that_of_the_layout():
    assert job(pipeline_model_parallel_size=4, num_layers=6, pipeline_model_parallel_layout="Et|tt|tt|tL").vp is None
    stages = [["embedding", "decoder"], ["decoder"], ["decoder"], ["decoder", "loss"]]
    listed = job(pipeline_model_parallel_size=2, num_layers=4, pipeline_model_parallel_layout=stages)
    assert (listed.vp, listed.layers, listed.calls) == (2, [1, 1], "overlap")


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"pipeline_model_parallel_layout": "Ett|tt|tL"}, "3 stages are no multiple of 2 ranks"),
        ({"pipeline_model_parallel_layout": "Ett|tL"}, "it has 3 decoder layers, and num_layers is 4"),
        ({"pipeline_model_parallel_layout": "Ett|xtL"}, "there is no layer x; there are E, t, m and L"),
        ({"pipeline_model_parallel_layout": "ttt|tL"}, "the first layer, and no other, is the embedding"),
        ({"pipeline_model_parallel_layout": "Ett|ttmL"}, "it has 1 layers m, and mtp_num_layers is 0"),
        ({"pipeline_model_parallel_layout": "Etm|tt|t|L", "mtp_num_layers": 1}, "layers m stand behind all layers t"),
        ({"pipeline_model_parallel_layout": "(E*99999|)*99999"}, "more layers than capo reads"),
        ({"pipeline_model_parallel_layout": "Ett|ttL", "decoder_first_pipeline_num_layers": 2}, "cannot be set beside"),
        ({"pipeline_model_parallel_layout": "Ett|ttL", "virtual_pipeline_model_parallel_size": 2}, "has 1 stages for each rank"),
        ({"decoder_first_pipeline_num_layers": 4}, "0 of 4 layers are left for 1 ranks"),
        ({"decoder_first_pipeline_num_layers": 3, "decoder_last_pipeline_num_layers": 2}, "-1 of 4 layers are left for 0 ranks"),
        ({"decoder_first_pipeline_num_layers": 3, "num_virtual_stages_per_pipeline_rank": 2}, "the 3 layers of rank 0"),
        ({"account_for_embedding_in_pipeline_split": True}, "num_layers 5 with the embedding or the loss is no multiple"),
        ({"decoder_last_pipeline_num_layers": 1, "account_for_loss_in_pipeline_split": True}, "takes either"),
        ({"virtual_pipeline_model_parallel_size": 0}, "0 is no number of chunks"),
        ({"moe_layer_freq": "[1]*3", "num_experts": 8}, "it has 3 layers, and num_layers is 4"),
        ({"moe_layer_freq": "open('x')", "num_experts": 8}, "neither a number nor a list of zeros and ones"),
        ({"num_microbatches": 10**20}, "num_microbatches: 100000000000000000000 is too large"),
        ({"num_microbatches": "16"}, "num_microbatches: '16' is no whole number"),
    ],
)
def test_splits_that_megatron_does_not_take(changed, words):
    with pytest.raises(capo.megatron.ArgumentError, match=re.escape(words)):
        job(**({"pipeline_model_parallel_size": 2, "num_layers": 4} | changed))


def test_one_virtual_stage_is_none_to_the_parser_and_one_to_a_config():
    assert job(pipeline_model_parallel_size=4, num_layers=8, num_virtual_stages_per_pipeline_rank=1).calls == "batch"
    assert job(pipeline_model_parallel_size=4, num_layers=8, virtual_pipeline_model_parallel_size=1).vp == 1


def test_layers_are_dense_or_have_experts_by_their_number():
    found = job(pipeline_model_parallel_size=2, num_virtual_stages_per_pipeline_rank=2, num_layers=8, num_experts=8,
                moe_ffn_hidden_size=512, moe_layer_freq="([0]*3+[1]*5)")
    assert found.modules["layers"] == [[["dense"] * 2, ["experts"] * 2], [["dense", "experts"], ["experts"] * 2]]
    assert found.modules["modules"]["dense"]["mlp"] == "dense" and not found.notes
    alike = job(pipeline_model_parallel_size=2, num_layers=8, num_experts=8, moe_layer_freq="([1]*8)", cuda_graph_impl="local",
                cuda_graph_modules=["mlp"])
    assert "only supported for dense layers" in alike.refusal


def test_a_hybrid_model_states_its_stages_in_its_pattern():
    found = job(pipeline_model_parallel_size=2, hybrid_layer_pattern="M-M*|M-|MM|M*M-/MM")
    assert (found.vp, found.layers) == (2, [[4, 2], [2, 5]])
    assert job(pipeline_model_parallel_size=2, hybrid_override_pattern="M-M*").layers == [2]


@pytest.mark.parametrize("overlap", [False, True])
def test_ranks_of_unequal_layers_are_judged(overlap):
    flags = {"cuda_graph_impl": "transformer_engine", "num_layers": 11, "pipeline_model_parallel_size": 4,
             "pipeline_model_parallel_layout": "Et|tt|t|t|t|tt|t|ttL", "num_experts": 8, "expert_model_parallel_size": 2,
             "overlap_moe_expert_parallel_comm": overlap, "delay_wgrad_compute": overlap, "bf16": True, "num_microbatches": 8,
             "hidden_size": 1024, "seq_length": 2048, "micro_batch_size": 1, "num_attention_heads": 8, "swiglu": True}
    found = capo.megatron.check(flags, plan="safe")
    assert found.accepted, str(found)
    assert found.report.bytes is not None and found.job.layers == [[1, 1], [2, 2], [1, 1], [1, 2]]
    of_rank = capo.megatron.orders(**found.job.asked(), rank=1)
    assert of_rank == found.schedule.lists()[1] and max(of_rank) == (4 if overlap else 2)
    if overlap:
        assert "stages 1,2,6,7" in found.schedule.to_order() and "model-chunks 2,2" in found.schedule.to_order()


def test_transfers_of_a_stage_without_layers_are_not_judged_by_layer():
    flags = """--num-layers 7 --pipeline-model-parallel-size 4 --pipeline-model-parallel-layout Et|t|t|t|t|t|t|L
        --num-microbatches 8 --num-experts 8 --expert-model-parallel-size 2 --overlap-moe-expert-parallel-comm
        --cuda-graph-impl transformer_engine"""
    for calls in ("", " --no-overlap-p2p-communication"):
        found = capo.megatron.check(flags + calls)
        assert found.accepted, str(found)
        assert any("transfers are not judged" in note for note in found.job.notes)


def test_layers_of_ranks_that_are_alike_give_what_layers_of_chunks_give():
    asked = {"pp": 4, "vp": 2, "microbatches": 8, "overlap": True, "delayed_wgrad": True}
    alike = capo.megatron.schedule(**asked, layers=[[2, 1]] * 4)
    assert alike == capo.megatron.schedule(**asked, layers=[2, 1])
    asked |= {"overlap": False, "delayed_wgrad": False}
    assert capo.megatron.schedule(**asked, layers=[[2, 1]] * 4) == capo.megatron.schedule(**asked, layers=[2, 1])
    for layers, words in (
        ([[2, 1]] * 2, "they are of 2 ranks, and there are 4"),
        ([[2, 1], [2], [2, 1], [2, 1]], r"\[2\] of rank 1 is no list of as many chunks as \[2, 1\] of rank 0"),
        ([[2, 1], 2, [2, 1], [2, 1]], "2 of rank 1 is no list"),
    ):
        with pytest.raises(ValueError, match=words):
            capo.megatron.schedule(**asked, layers=layers)
    with pytest.raises(ValueError, match="there are ranks 0 to 3"):
        capo.megatron.orders(**asked, layers=[[2, 1]] * 4, rank=4)


def _function(path, name):
    tree = ast.parse(source(RELEASE, path))
    found = next(node for node in ast.walk(tree) if getattr(node, "name", None) == name)
    found.decorator_list = []
    return [*ast.parse("from __future__ import annotations").body, found]


@pytest.fixture(scope="module")
def parsed():
    """parse_str_to_list of the release."""
    layers = types.SimpleNamespace(embedding="embedding", loss="loss", decoder="decoder", mtp="mtp")
    scope = {"LayerType": layers, "re": re}
    path = "megatron/core/transformer/pipeline_parallel_layer_layout.py"
    exec(compile(ast.Module(_function(path, "parse_str_to_list"), []), path, "exec"), scope)
    return scope["parse_str_to_list"]


@pytest.mark.parametrize(
    "layout, pp",
    [("Et*3|(tt|)*29,m|L", 16), ("Et|(tt|)*30,mL", 16), ("E|(t|)*3,t*5|tt,L", 6), ("Ettt|(t*2|)*2,(t|t)*3|L", 2),
     ("E,t|t|,(tt|)*4,t,L", 7), ("(Et)*1|(t)*4|tt|t*3L", 2)],
)
def test_a_layout_is_read_as_the_release_reads_it(parsed, layout, pp):
    stages = parsed(layout)
    if len(stages) % pp:
        pytest.fail("the row does not fit its ranks")
    predicted = sum(stage.count("mtp") for stage in stages)
    found = job(pipeline_model_parallel_size=pp, pipeline_model_parallel_layout=layout, mtp_num_layers=predicted,
                num_layers=sum(stage.count("decoder") for stage in stages))
    counts = [stage.count("decoder") + stage.count("mtp") for stage in stages]
    assert layers_of(found) == [counts[rank::pp] for rank in range(pp)]


def test_layers_are_split_as_the_release_splits_them():
    """Every rank and chunk of small models, and which of them Megatron takes."""
    scope = {"is_vp_first_stage": lambda stage, size: not size or stage == 0,
             "is_vp_last_stage": lambda stage, size: not size or stage == size - 1}
    path = "megatron/core/transformer/transformer_block.py"
    exec(compile(ast.Module(_function(path, "get_num_layers_to_build"), []), path, "exec"), scope)
    taken = refused = 0
    for pp, vp, layers in itertools.product([1, 2, 3, 4], [None, 2], range(2, 15)):
        for first, last, embedding, loss in itertools.product([None, 1, 2, 4], [None, 2, 3], [False, True], [False, True]):
            if (first or last) and (embedding or loss) or (pp == 1 and (vp or first or last)):
                continue
            config = types.SimpleNamespace(
                pipeline_model_parallel_layout=None, pipeline_model_parallel_size=pp,
                virtual_pipeline_model_parallel_size=vp, num_layers=layers,
                num_layers_in_first_pipeline_stage=first, num_layers_in_last_pipeline_stage=last,
                account_for_embedding_in_pipeline_split=embedding, account_for_loss_in_pipeline_split=loss,
                num_microbatches=2 * pp)
            build = scope["get_num_layers_to_build"]
            try:
                theirs = [[build(config, chunk, rank) for chunk in range(vp or 1)] for rank in range(pp)]
                # TransformerConfig checks these two, and this function does not.
                whole = sum(map(sum, theirs)) == layers and (not (first or last) or min(map(sum, theirs)) > 0)
            except AssertionError:
                whole = False
            if whole:
                assert layers_of(capo.megatron.job_of(config)) == theirs, config
                taken += 1
            else:
                with pytest.raises(capo.megatron.ArgumentError):
                    capo.megatron.job_of(config)
                refused += 1
    assert taken > 150 and refused > 500
