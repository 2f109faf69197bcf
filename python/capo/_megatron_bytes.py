"""The configuration of model.json that Megatron-LM's arguments describe, from which bytes of layers follow."""

from capo._megatron_stages import ArgumentError

_SIZES = {
    "layers": "num_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "head_size": "kv_channels",
    "experts": "num_experts",
    "top_k": "moe_router_topk",
    "sequence": "seq_length",
    "micro_batch": "micro_batch_size",
    "vocabulary": "padded_vocab_size",
    "tensor_parallel": "tensor_model_parallel_size",
    "context_parallel": "context_parallel_size",
    "expert_parallel": "expert_model_parallel_size",
    "expert_tensor_parallel": "expert_tensor_parallel_size",
}

# Megatron-LM's --fp8-recipe by capo's names.
_RECIPES = {"delayed": "delayed", "tensorwise": "current", "blockwise": "block", "mxfp8": "mxfp8"}


class Underived(Exception):
    """Why bytes do not follow from the sizes."""


def _latent(args):
    """Multi-latent attention, with the sizes that Megatron-LM has where they are not given."""
    if args.number("q_lora_rank") is None:
        raise Underived("multi_latent_attention without q_lora_rank")
    return {
        "q_rank": args.number("q_lora_rank"),
        "kv_rank": args.number("kv_lora_rank", 32),
        "nope_size": args.number("qk_head_dim", 128),
        "rope_size": args.number("qk_pos_emb_head_dim", 64),
        "value_size": args.number("v_head_dim", 128),
    }


def _experts(args, sizes):
    """Of the sizes those of experts."""
    ffn = args.number("moe_ffn_hidden_size") or sizes["ffn"]
    found = {"top_k": sizes["top_k"] or 2, "expert_ffn": ffn}
    shared = args.number("moe_shared_expert_intermediate_size")
    if shared and ffn:
        found["shared_experts"], rest = divmod(shared, ffn)
        if rest:
            raise Underived(f"moe_shared_expert_intermediate_size {shared} is no multiple of moe_ffn_hidden_size {ffn}")
    if args.moe_expert_capacity_factor is not None and args.moe_pad_expert_input_to_capacity:
        try:
            found["capacity_factor"] = float(args.moe_expert_capacity_factor)
        except ValueError:
            raise ArgumentError(f"moe_expert_capacity_factor: {args.moe_expert_capacity_factor!r} is no number") from None
    return found


def configuration_of(args):
    """The sizes that are stated, each by its name in model.json; Underived where bytes do not follow from them."""
    sizes = {ours: args.number(theirs) for ours, theirs in _SIZES.items()}
    sizes["ffn"] = args.number("ffn_hidden_size") or (sizes["hidden"] and 4 * sizes["hidden"])
    if args.multi_latent_attention:
        sizes |= {"latent": _latent(args), "head_size": None}
    elif args.group_query_attention or isinstance(args.num_query_groups, int):
        groups, tensor = args.number("num_query_groups"), args.number("tensor_model_parallel_size", 1)
        # Where ranks outnumber groups each holds the keys and values of one.
        sizes["kv_heads"] = tensor if groups and groups < tensor and tensor % groups == 0 else groups
    if args.qk_layernorm and not args.multi_latent_attention:
        sizes["qk_norm"] = True
    if sizes["experts"]:
        sizes |= _experts(args, sizes)
    sizes["dtype"] = "fp16" if args.fp16 else "bf16" if args.bf16 else "fp32"
    if args.fp4:
        sizes["recipe"] = "nvfp4"
    elif args.fp8:
        word = str(getattr(args.fp8_recipe, "name", args.fp8_recipe or "delayed"))
        if word not in _RECIPES:
            raise Underived(f"fp8_recipe {word} is none of {', '.join(_RECIPES)}")
        sizes["recipe"] = _RECIPES[word]
    if args.recompute_granularity == "full":
        sizes["recompute"] = "full"
    return {name: value for name, value in sizes.items() if value is not None}


def taken_otherwise(args):
    """What of the sizes capo takes for something else, in words."""
    if not args.swiglu and not args.quick_geglu:
        yield "neither swiglu nor quick_geglu is given: bytes are those of gated MLPs"
    if args.number("tensor_model_parallel_size", 1) > 1 and not args.sequence_parallel:
        yield "sequence_parallel is not given: bytes are those with it"
    recomputed = args.recompute_modules or ["core_attn"]
    if args.recompute_granularity == "selective":
        yield f"bytes are those without the recomputation of {', '.join(map(str, recomputed))}"
    if args.number("mtp_num_layers", 0):
        yield "mtp_num_layers: bytes of layers of multi-token prediction are taken for those of the decoder's last layer"
