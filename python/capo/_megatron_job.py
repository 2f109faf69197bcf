"""What Megatron-LM's arguments say of a step: pipeline, calls, graphs, and the sizes of a layer.

Arguments come as Megatron has them in hand: the namespace of its parser, a TransformerConfig, a
container of Megatron-Bridge's, a mapping of names or of flags, as recipes in YAML have them, or the
flags of a training command, as a list or as one text. Names are today's; those of a config that
differ are known too (``num_moe_experts``). What is left out has Megatron's default.
"""

import difflib
import numbers
import shlex
from collections.abc import Mapping

from capo._megatron_bytes import Underived, configuration_of, taken_otherwise
from capo._megatron_stages import ArgumentError, by_rank, layers_with_experts, stages_of

# The names that are read, each as the parser of Megatron-LM has it, with its type.
_NUMBERS = """
    num_layers hidden_size ffn_hidden_size num_attention_heads num_query_groups kv_channels
    num_experts moe_router_topk moe_ffn_hidden_size moe_shared_expert_intermediate_size
    seq_length micro_batch_size global_batch_size padded_vocab_size world_size data_parallel_size
    tensor_model_parallel_size context_parallel_size expert_model_parallel_size
    expert_tensor_parallel_size pipeline_model_parallel_size virtual_pipeline_model_parallel_size
    num_virtual_stages_per_pipeline_rank num_layers_per_virtual_pipeline_stage
    microbatch_group_size_per_vp_stage num_microbatches
    decoder_first_pipeline_num_layers decoder_last_pipeline_num_layers mtp_num_layers
    q_lora_rank kv_lora_rank qk_head_dim qk_pos_emb_head_dim v_head_dim
""".split()
_SWITCHES = """
    overlap_moe_expert_parallel_comm delay_wgrad_compute overlap_p2p_comm_warmup_flush group_query_attention
    bf16 fp16 gradient_accumulation_fusion account_for_embedding_in_pipeline_split
    account_for_loss_in_pipeline_split moe_pad_expert_input_to_capacity moe_router_padding_for_fp8
    moe_shared_expert_overlap enable_cuda_graph external_cuda_graph multi_latent_attention qk_layernorm
    swiglu quick_geglu sequence_parallel add_qkv_bias
""".split()
_LISTS = "cuda_graph_modules cuda_graph_scope recompute_modules rampup_batch_size".split()
_WORDS = """
    cuda_graph_impl fp8 fp8_recipe fp4 recompute_granularity moe_layer_freq pipeline_model_parallel_layout
    hybrid_layer_pattern hybrid_override_pattern moe_token_dispatcher_type moe_expert_capacity_factor
""".split() + _LISTS
_FLAGS = {
    "microbatch_group_size_per_vp_stage": ["--microbatch-group-size-per-virtual-pipeline-stage"],
    "overlap_p2p_comm_warmup_flush": ["--overlap-p2p-communication-warmup-flush"],
    "fp8": ["--fp8-format"],
    "fp4": ["--fp4-format"],
}
_OTHER_NAMES = {
    "num_experts": ["num_moe_experts"],
    "swiglu": ["gated_linear_unit"],
    "overlap_p2p_comm_warmup_flush": ["overlap_p2p_communication_warmup_flush"],
    "decoder_first_pipeline_num_layers": ["num_layers_in_first_pipeline_stage"],
    "decoder_last_pipeline_num_layers": ["num_layers_in_last_pipeline_stage"],
}


def _parser():
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message):
            raise ArgumentError(message)

    parser = Parser(add_help=False, allow_abbrev=False)

    def flags(name):
        return ["--" + name.replace("_", "-"), *_FLAGS.get(name, [])]

    for name in _NUMBERS:
        parser.add_argument(*flags(name), dest=name, type=int)
    for name in _SWITCHES:
        parser.add_argument(*flags(name), dest=name, action="store_true", default=None)
    for name in _WORDS:
        parser.add_argument(*flags(name), dest=name, nargs="*" if name in _LISTS else None)
    parser.add_argument("--no-overlap-p2p-communication", dest="overlap_p2p_comm", action="store_false", default=None)
    parser.add_argument("--disable-bias-linear", dest="add_bias_linear", action="store_false", default=None)
    parser.add_argument("--no-gradient-accumulation-fusion", dest="gradient_accumulation_fusion", action="store_false")
    return parser


def flags_read():
    """The flags of a training command that say something here; all others are passed over."""
    return sorted(flag for action in _parser()._actions for flag in action.option_strings)


def _looks_like(word, known):
    """The one of these names that is probably meant by a word that is none of them, in a list; empty if none is."""
    return difflib.get_close_matches(word, known, n=1, cutoff=0.93)


#: Of capo's own command line, which takes Megatron's names as well.
_OURS = {
    "--pp": "--pipeline-model-parallel-size",
    "--ranks": "--pipeline-model-parallel-size",
    "--vp": "--num-virtual-stages-per-pipeline-rank",
    "--chunks": "--num-virtual-stages-per-pipeline-rank",
    "--group-size": "--microbatch-group-size-per-virtual-pipeline-stage",
    "--microbatches": "--num-microbatches",
    "--overlap": "--overlap-moe-expert-parallel-comm",
    "--ep-overlap": "--overlap-moe-expert-parallel-comm",
    "--delayed-wgrad": "--delay-wgrad-compute",
}


def _misspelt(words):
    """Of flags that are passed over those that look like one that is read, or begin one, each with that one."""
    flags = flags_read()
    for word in words:
        flag = word.partition("=")[0]
        if not flag.startswith("--"):
            continue
        if flag in _OURS:
            yield flag, _OURS[flag]
            continue
        begun = [known for known in flags if known.startswith(flag)] if len(flag) > 10 else []
        for meant in (_looks_like(flag, flags) or sorted(begun, key=len))[:1]:
            yield flag, meant


def _misspelt_keys(given):
    """The same of the keys of a mapping."""
    known = {action.dest for action in _parser()._actions} | {name for names in _OTHER_NAMES.values() for name in names}
    for key in given:
        for meant in _looks_like(str(key), known) if key not in known else []:
            yield key, meant


def _flags_of(recipe):
    """The words of a command line of a mapping whose keys are flags; what is true is a switch."""
    for flag, value in recipe.items():
        if value is None or value is False:
            continue
        yield str(flag)
        if value is not True:
            yield from map(str, value) if isinstance(value, (list, tuple)) else shlex.split(str(value))


def _holders(given):
    """What holds arguments: itself, and the parts of a container of Megatron-Bridge's, of which the overlap's win."""
    yield given
    for part in ("comm_overlap", "model", "train"):
        held = given.get(part) if isinstance(given, Mapping) else getattr(given, part, None)
        if isinstance(held, Mapping) or hasattr(held, "__dict__"):
            yield held


class Arguments:
    """Arguments by Megatron's names; one that is absent or None is None.

    ``misspelt`` has flags, or keys of a mapping, that are not read, each with the one that is probably meant.
    """

    def __init__(self, given):
        if isinstance(given, Mapping) and any(str(key).startswith("--") for key in given):
            given = list(_flags_of(given))
        self.misspelt = list(_misspelt_keys(given)) if isinstance(given, Mapping) else []
        if isinstance(given, str):
            given = shlex.split(given)
        if isinstance(given, (list, tuple)):
            given, passed_over = _parser().parse_known_args([str(word) for word in given])
            self.misspelt = list(_misspelt(passed_over))
        self._holders = list(_holders(given))

    def __getattr__(self, name):
        for holder in self._holders:
            for known in (name, *_OTHER_NAMES.get(name, [])):
                value = holder.get(known) if isinstance(holder, Mapping) else getattr(holder, known, None)
                if value is not None:
                    return value
        return None

    def number(self, name, otherwise=None):
        value = getattr(self, name)
        if value is None:
            return otherwise
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or value % 1 != 0:
            raise ArgumentError(f"{name}: {value!r} is no whole number")
        if abs(value) >= 1 << 53:
            raise ArgumentError(f"{name}: {value!r} is too large")
        return int(value)


class Job:
    """One training step of Megatron-LM as capo sees it.

    ``layers`` are of each chunk of a rank, a list for each rank where ranks differ; ``calls`` is ``"batch"``,
    ``"overlap"`` or ``"flush"``, None without a pipeline; ``graphs`` is ``cuda_graph_impl``; ``modules`` are members
    of model.json, None where bytes do not follow; ``refusal`` is why Megatron-LM refuses the job, None if it does not;
    ``notes`` say what was assumed, and what is not judged.
    """

    __slots__ = (
        "calls", "delayed_wgrad", "graphs", "group_size", "layers", "microbatches", "modules", "notes", "overlap",
        "pp", "refusal", "vp",
    )

    pp: int
    vp: int | None
    microbatches: int
    group_size: int | None
    overlap: bool
    delayed_wgrad: bool
    layers: list[int] | list[list[int]]
    calls: str | None
    graphs: str
    modules: dict | None
    refusal: str | None
    notes: list[str]

    def __init__(self, **known):
        for name in self.__slots__:
            setattr(self, name, known[name])

    @property
    def plan(self):
        """Whose reuse of buffers the graphs bring: that of TransformerEngine, or of Megatron-LM; None where nobody's is known."""
        if self.graphs == "transformer_engine":
            return "te"
        whole_layers = self.modules is not None and not self.overlap
        return "mcore-local" if self.graphs == "local" and self.pp > 1 and whole_layers else None

    def asked(self):
        """What decides Megatron's order, as arguments of ``capo.megatron.schedule``."""
        return {
            name: getattr(self, name)
            for name in ("pp", "vp", "microbatches", "group_size", "overlap", "delayed_wgrad", "layers")
        }


def _microbatches(args, pp):
    given = args.number("num_microbatches")
    if given is not None:
        return given
    batch, micro = args.number("global_batch_size"), args.number("micro_batch_size")
    if batch is None or micro is None:
        raise ArgumentError("global_batch_size and micro_batch_size, or num_microbatches, are needed")
    replicas = args.number("data_parallel_size")
    if replicas is None:
        world = args.number("world_size")
        if world is None:
            raise ArgumentError("data_parallel_size or world_size is needed, or num_microbatches")
        shared = pp * args.number("tensor_model_parallel_size", 1) * args.number("context_parallel_size", 1)
        replicas, rest = divmod(world, shared)
        if rest or not replicas:
            raise ArgumentError(f"world_size {world} is no multiple of {shared} ranks that share a replica")
    if micro < 1 or batch % (micro * replicas):
        raise ArgumentError(f"global_batch_size {batch} is no multiple of {micro} x {replicas}")
    return batch // (micro * replicas)


def _calls(args, pp, vp):
    """arguments.py: single calls with virtual stages unless that is switched off, else batches."""
    if pp == 1:
        return None
    if vp is None or args.overlap_p2p_comm is False:
        return "batch"
    return "flush" if args.overlap_p2p_comm_warmup_flush else "overlap"


def _said_of_scope(args):
    """The words of cuda_graph_modules, or of cuda_graph_scope, which it was called before."""
    given = args.cuda_graph_modules or args.cuda_graph_scope or []
    return [str(getattr(word, "name", word)) for word in (given.split(",") if isinstance(given, str) else given)]


def _scope(args):
    """The parts of a layer that a graph holds; none are named where it holds all of it."""
    whole = ("", "full", "full_iteration", "full_iteration_inference")
    return [word for word in _said_of_scope(args) if word not in whole]


def _graphs(args):
    """cuda_graph_impl; earlier versions had a switch each, and a scope for the whole iteration."""
    impl = str(getattr(args.cuda_graph_impl, "name", args.cuda_graph_impl or "none"))
    if impl == "none" and args.external_cuda_graph:
        impl = "transformer_engine"
    elif impl == "none" and args.enable_cuda_graph:
        impl = "local"
    return "full_iteration" if impl == "local" and "full_iteration" in _said_of_scope(args) else impl


#: What of a layer a graph can hold.
_PARTS = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba")


def _overlap_refusals(args):
    """What the overlap of expert parallelism goes with, each whether it is broken, and in Megatron's words."""
    dispatcher = args.moe_token_dispatcher_type
    return (
        (args.number("expert_model_parallel_size", 2) < 2,
         "overlap_moe_expert_parallel_comm is only supported with expert model parallelism"),
        (dispatcher not in (None, "alltoall", "flex"),
         "overlap_moe_expert_parallel_comm is supported with alltoall/flex token dispatcher"),
        (args.recompute_granularity == "full",
         "disable full recomputation when enabling overlap_moe_expert_parallel_comm"),
        ("moe" in (args.recompute_modules or []),
         "disable moe in recompute_modules when enabling overlap_moe_expert_parallel_comm"),
        (args.moe_shared_expert_overlap,
         "disable moe_shared_expert_overlap when enabling overlap_moe_expert_parallel_comm"),
        (args.number("mtp_num_layers", 0) > 1,
         "MTP supports at most one layer when enabling overlap_moe_expert_parallel_comm."),
    )


def _refusal(args, graphs, kinds, calls):
    """Why Megatron-LM refuses such calls, or to capture such parts of a layer, in its own words; None if it does not.

    model_parallel_config.py and transformer_config.py as of d98e8a64dd, in the order in which they look. Of the overlap
    only what is stated is held against it, not what is left out and has another default.
    """
    held = set(_scope(args))
    unknown = sorted(held - set(_PARTS))
    if unknown:
        return f"cuda_graph_modules: there is no {', '.join(unknown)}; there are {', '.join(_PARTS)}"
    if graphs not in ("none", "local", "transformer_engine", "full_iteration"):
        return f"cuda_graph_impl: {graphs} is none of none, local, transformer_engine, full_iteration"
    experts, overlap = args.number("num_experts", 0) > 1, bool(args.overlap_moe_expert_parallel_comm)
    padded = args.moe_expert_capacity_factor is not None and args.moe_pad_expert_input_to_capacity
    copies = args.moe_token_dispatcher_type == "alltoall" and (
        args.moe_expert_capacity_factor is not None or args.moe_router_padding_for_fp8
    )
    recomputed = args.recompute_modules or []
    if graphs == "local" and held & {"moe_router", "moe_preprocess"}:
        held |= {"moe_router", "moe_preprocess"}  # which it does not tell apart
    by_layer = graphs in ("local", "transformer_engine")
    rows = (
        (args.overlap_p2p_comm_warmup_flush and calls != "flush",
         "Pipeline parallel communication overlapping in warmup and flush is only compatible with overlap_p2p_comm "
         "but not batch_p2p_comm."),
        (by_layer and held >= {"moe", "moe_router"}, "cuda_graph_modules must not contain both moe and moe_router."),
        (by_layer and "moe_preprocess" in held and "moe_router" not in held,
         "moe_preprocess cuda graph is only supported with moe_router cuda graph."),
        (by_layer and not experts and held & {"moe", "moe_router"}, "moe cuda graph is only supported for MoE."),
        (by_layer and experts and "dense" not in kinds and "mlp" in held,
         "mlp cuda graph is only supported for dense layers, but not found in the model."),
        (by_layer and experts and not padded and "moe" in held, "moe cuda graph is only supported with drop-padding MoE."),
        (by_layer and experts and not padded and copies and "moe_preprocess" in held,
         "moe_preprocess cuda graph is not supported when there are DtoH copies and synchronizations in the preprocess step."),
        (by_layer and args.recompute_granularity == "full", "full recompute is only supported with full iteration CUDA graph."),
        (graphs == "transformer_engine" and args.recompute_granularity == "selective" and "moe" in recomputed
         and "moe_router" in held, "moe recompute is not supported with moe_router CUDA graph with: "
         "--cuda-graph-impl transformer_engine."),
        *((overlap and broken, words) for broken, words in _overlap_refusals(args)),
        (graphs == "transformer_engine" and overlap and held & {"moe", "mlp"},
         "CUDA graph scope on moe and mlp is not supported with overlap_moe_expert_parallel_comm"),
        (args.delay_wgrad_compute and not overlap,
         "overlap_moe_expert_parallel_comm must be enabled when enabling delay_wgrad_compute"),
    )
    return next((words for refused, words in rows if refused), None)


def _captures_wgrad(args, notes):
    """Delayed weight gradients are captured where a graph holds a product of theirs: of attention, or of a shared expert."""
    if not args.delay_wgrad_compute:
        return False
    held = set(_scope(args))
    shared = args.number("moe_shared_expert_intermediate_size", 0) and not args.moe_shared_expert_overlap
    if not held or "attn" in held or ("moe_router" in held and shared):
        return True
    notes.append("graphs hold no product whose weight gradient is delayed: weight gradients are not captured")
    return False


def _names(args, stages):
    """What each layer of each stage is: ``layer``, or, where only some have experts, ``dense`` or ``experts``."""
    total = sum(decoders for decoders, _ in stages)
    if sum(map(sum, stages)) > 1 << 22:
        raise ArgumentError(f"num_layers: {total} layers are more than capo reads")
    of_layer = layers_with_experts(args) if args.number("num_experts", 0) > 1 else lambda layer: True
    kinds = ["experts" if of_layer(layer) else "dense" for layer in range(total)]
    if len(set(kinds)) < 2:
        kinds = ["layer"] * total
    named, number = [], 0
    for decoders, predicted in stages:
        named.append(kinds[number : number + decoders] + kinds[-1:] * predicted)
        number += decoders
    return named


def _modules(args, named, pp, overlap, notes):
    """A layer is a module whose bytes follow from the sizes; None where graphs hold less than a layer, or none of a stage."""
    scope = _scope(args)
    biased = bool(args.delay_wgrad_compute) and (args.add_bias_linear is not False or bool(args.add_qkv_bias))
    if scope:
        notes.append(f"graphs hold {', '.join(scope)} of a layer: bytes of parts of a layer are not derived")
        if biased and "attn" in scope and _graphs(args) == "transformer_engine":
            notes.append(
                "attention has biases, without disable_bias_linear or with add_qkv_bias: graphs lose their gradients where "
                "weight gradients are delayed (capo explain G02), and this is not judged of parts of a layer"
            )
        return None
    if args.hybrid_layer_pattern or args.hybrid_override_pattern:
        notes.append("hybrid_layer_pattern: bytes of its layers are not derived")
        return None
    if not all(named):
        notes.append("a stage has no layer: bytes are not derived")
        return None
    try:
        configuration = configuration_of(args)
    except Underived as why:
        notes.append(f"{why}: bytes are not derived")
        return None
    if _graphs(args) in ("local", "transformer_engine") and "hidden" in configuration:
        notes.extend(taken_otherwise(args))
    flags = {"delay_wgrad": bool(args.delay_wgrad_compute)} | ({"bias": True} if biased else {})
    if args.gradient_accumulation_fusion is not False:
        flags |= {"fuse_wgrad_accumulation": True, "grad_added_to_main_grad": True}
    layer = {"kind": "transformer-layer", "flags": flags}
    modules = {"layer": layer}
    if any("dense" in stage for stage in named):
        modules = {kind: layer | {"mlp": kind} for kind in ("dense", "experts")}
    elif configuration.get("experts"):
        layer["mlp"] = "experts"
    # With the overlap every layer is a chunk of the order.
    chunks = [[[kind] for stage in rank for kind in stage] if overlap else rank for rank in by_rank(named, pp)]
    return {"configuration": configuration, "modules": modules, "layers": chunks}


def job_of(given):
    """The Job of Megatron's arguments, or an ArgumentError that names the argument."""
    args = Arguments(given)
    notes = [f"{flag} is not read: is {close} meant?" for flag, close in args.misspelt]
    pp = args.number("pipeline_model_parallel_size", 1)
    if pp < 1:
        raise ArgumentError(f"pipeline_model_parallel_size: {pp} is no number of ranks")
    vp, stages = stages_of(args, pp, notes)
    named = _names(args, stages)
    layers = by_rank([len(stage) for stage in named], pp)
    overlap = bool(args.overlap_moe_expert_parallel_comm)
    if overlap and not all(named):
        notes.append("a stage has no layer, so that no entry by layer shows its transfers: transfers are not judged")
    graphs, calls = _graphs(args), _calls(args, pp, vp)
    if args.rampup_batch_size:
        notes.append("rampup_batch_size: the step of the whole batch is judged, and not those with fewer microbatches before it")
    job = Job(
        pp=pp,
        vp=vp,
        microbatches=_microbatches(args, pp),
        group_size=args.number("microbatch_group_size_per_vp_stage"),
        overlap=overlap,
        delayed_wgrad=_captures_wgrad(args, notes),
        layers=layers[0] if layers.count(layers[0]) == pp else layers,
        calls=calls,
        graphs=graphs,
        modules=_modules(args, named, pp, overlap, notes),
        refusal=_refusal(args, graphs, {kind for stage in named for kind in stage}, calls),
        notes=notes,
    )
    if job.graphs == "local" and job.plan is None:
        notes.append(
            "cuda_graph_impl local: its reuse of buffers is judged of graphs of whole layers over several pipeline ranks "
            "without the overlap, so no plan is judged"
        )
    if job.graphs == "full_iteration":
        notes.append("cuda_graph_impl full_iteration: its own reuse of buffers is not modelled, so no plan is judged")
    return job
