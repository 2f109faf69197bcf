"""How Megatron-LM splits a model's layers over the stages of a pipeline.

It follows arguments.py, transformer_block.py, transformer_config.py and pipeline_parallel_layer_layout.py of d98e8a64dd.

A stage is a chunk of a rank. Chunk c of rank r is stage c * ranks + r, and layers are numbered in the order of stages.
Layers of multi-token prediction are captured as those of the decoder are, and stand behind them.
"""

import ast
import re

_LETTERS = {"E": "embedding", "t": "decoder", "m": "mtp", "L": "loss"}


class ArgumentError(ValueError):
    """Arguments of Megatron-LM that say too little, or that contradict each other."""


def _whole(value, by, what):
    share, rest = divmod(value, by)
    if rest or share < 1:
        raise ArgumentError(f"{what} is no multiple of {by}")
    return share


def _unrolled(text):
    """parse_str_to_list: ``Et*3|(tt|)*29,m|L`` without its repetitions, as a list of stages of letters."""
    text = text.replace(",", "")
    for pattern in (r"\(([^)]+)\)\*(\d+)", r"(.)\*(\d+)"):
        size = sum(len(found[1]) * int(found[2]) for found in re.finditer(pattern, text))
        if size > 1 << 22:
            raise ArgumentError("pipeline_model_parallel_layout: it repeats more layers than capo reads")
        text = re.sub(pattern, lambda found: found[1] * int(found[2]), text)
    return text.split("|")


def _layout_by_stage(layout, pp):
    """The words of each stage, in the order of stages; Megatron holds them as text, as lists, or by rank in an object."""
    if hasattr(layout, "layout"):
        rows = layout.layout
        stages = [rows[rank][chunk] for chunk in range(len(rows[0])) for rank in range(len(rows))]
    elif isinstance(layout, str):
        stages = _unrolled(layout)
    else:
        stages = layout
    if len(stages) % pp:
        raise ArgumentError(f"pipeline_model_parallel_layout: {len(stages)} stages are no multiple of {pp} ranks")
    words = [[_LETTERS.get(word, str(getattr(word, "name", word)).strip().lower()) for word in stage] for stage in stages]
    for stage in words:
        for word in stage:
            if word not in _LETTERS.values():
                raise ArgumentError(f"pipeline_model_parallel_layout: there is no layer {word}; there are E, t, m and L")
    return words


def _checked(stages, layers, predicted, pp):
    """validate_layer_layout, in its order."""
    flat = [word for stage in stages for word in stage]
    last_chunks, others = stages[-pp:], stages[:-pp]
    rows = (
        (flat[:1] != ["embedding"] or flat.count("embedding") != 1, "the first layer, and no other, is the embedding (E)"),
        (flat[-1:] != ["loss"] or flat.count("loss") != 1, "the last layer, and no other, is the loss (L)"),
        (layers is not None and flat.count("decoder") != layers,
         f"it has {flat.count('decoder')} decoder layers, and num_layers is {layers}"),
        (flat.count("mtp") != predicted, f"it has {flat.count('mtp')} layers m, and mtp_num_layers is {predicted}"),
        ("mtp" in flat and "decoder" in flat[flat.index("mtp"):], "layers m stand behind all layers t"),
        (any("mtp" in stage for stage in others), "layers m stand in the last chunk of their rank"),
        (sum("mtp" in stage for stage in last_chunks) > 1, "layers m stand in one stage"),
    )
    for wrong, words in rows:
        if wrong:
            raise ArgumentError(f"pipeline_model_parallel_layout: {words}")


def _of_layout(args, pp):
    stages = _layout_by_stage(args.pipeline_model_parallel_layout, pp)
    rivals = (*_UNEVEN, "num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank")
    others = [name for name in rivals if getattr(args, name)]
    if others:
        raise ArgumentError(f"pipeline_model_parallel_layout: it cannot be set beside {', '.join(others)}")
    _checked(stages, args.number("num_layers"), args.number("mtp_num_layers", 0), pp)
    chunks, stated = len(stages) // pp, args.number("virtual_pipeline_model_parallel_size")
    if stated is not None and stated != chunks:
        raise ArgumentError(
            f"virtual_pipeline_model_parallel_size {stated}: "
            f"pipeline_model_parallel_layout has {chunks} stages for each rank"
        )
    return None if chunks == 1 else chunks, [(stage.count("decoder"), stage.count("mtp")) for stage in stages]


def _of_hybrid(args, pp):
    """Hybrid models: ``M-M*|M-M*`` has a letter for each layer, and with ``|`` a segment for each stage."""
    pattern = str(args.hybrid_layer_pattern or args.hybrid_override_pattern)
    main, *predicted = pattern.split("/")
    segments = [len(segment) for segment in main.split("|")]
    if len(segments) == 1:
        segments = [_whole(segments[0], pp, f"hybrid_layer_pattern: {segments[0]} layers")] * pp
    chunks = _whole(len(segments), pp, f"hybrid_layer_pattern: {len(segments)} segments")
    stages = [(layers, 0) for layers in segments]
    stages[-1] = (segments[-1], len(predicted) or args.number("mtp_num_layers", 0))
    return None if chunks == 1 else chunks, stages


_UNEVEN = (
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
)


def _virtual(args, pp, layers):
    """arguments.py takes one stage a rank for none; a config that states it does not."""
    given = args.number("virtual_pipeline_model_parallel_size")
    if given is None:
        given = args.number("num_virtual_stages_per_pipeline_rank")
        each = args.number("num_layers_per_virtual_pipeline_stage")
        if given is None and each is not None:
            if layers is None or each < 1 or layers % (pp * each):
                raise ArgumentError(
                    f"num_layers_per_virtual_pipeline_stage {each}: num_layers {layers} is no multiple of it on {pp} ranks"
                )
            given = layers // (pp * each)
        given = None if given == 1 else given
    if given is not None and given < 1:
        raise ArgumentError(f"virtual_pipeline_model_parallel_size: {given} is no number of chunks")
    return given


def _layers_of_ranks(args, pp, layers):
    """Layers of each rank where the first or the last states its own; the others share what is left."""
    first, last = args.number(_UNEVEN[0]), args.number(_UNEVEN[1])
    stated = [count for count in (first, last) if count is not None]
    middle, left = pp - len(stated), layers - sum(stated)
    if min(stated) < 1 or left < 0 or middle < 0 or bool(left) != bool(middle) or (middle and left % middle):
        named = ", ".join(name for name in _UNEVEN[:2] if getattr(args, name) is not None)
        raise ArgumentError(f"{named}: {left} of {layers} layers are left for {middle} ranks")
    share = left // middle if middle else 0
    return stated[: first is not None] + [share] * middle + stated[len(stated) - (last is not None) :]


def _evenly(args, pp):
    """Every chunk of a rank has as many layers, less the embedding and the loss where these count as layers."""
    layers, embedding, loss = args.number("num_layers"), bool(getattr(args, _UNEVEN[2])), bool(getattr(args, _UNEVEN[3]))
    uneven = [name for name in _UNEVEN if getattr(args, name)]
    if uneven and layers is None:
        raise ArgumentError(f"{', '.join(uneven)}: num_layers is needed")
    if (embedding or loss) and len(uneven) > embedding + loss:
        raise ArgumentError(f"{', '.join(uneven)}: Megatron-LM takes either numbers of layers or what counts as one")
    counted = None if layers is None else layers + embedding + loss
    vp = _virtual(args, pp, counted)
    chunks = vp or 1
    if layers is None:
        return vp, [(1, 0)] * (pp * chunks)
    if uneven and not (embedding or loss):
        ranks = _layers_of_ranks(args, pp, layers)
    elif layers < 1 or counted % (pp * chunks):
        also = " with the embedding and the loss" if embedding and loss else ""
        also = " with the embedding or the loss" if uneven and not also else also
        raise ArgumentError(f"num_layers {counted}{also} is no multiple of {pp} ranks x {chunks} chunks")
    else:
        ranks = [counted // pp] * pp
    for rank, count in enumerate(ranks):
        if count % chunks:
            raise ArgumentError(f"num_layers: the {count} layers of rank {rank} are no multiple of {chunks} chunks")
    decoders = [count // chunks for count in ranks] * chunks
    decoders[0] -= embedding
    decoders[-1] -= loss
    return vp, [*((count, 0) for count in decoders[:-1]), (decoders[-1], args.number("mtp_num_layers", 0))]


def stages_of(args, pp, notes):
    """The chunks of a rank (None: there is no interleaving), and of each stage its layers of the decoder and of multi-token
    prediction."""
    if args.hybrid_layer_pattern or args.hybrid_override_pattern:
        return _of_hybrid(args, pp)
    if args.pipeline_model_parallel_layout:
        return _of_layout(args, pp)
    if args.number("num_layers") is None:
        notes.append("num_layers is not given: one layer a chunk is assumed")
    return _evenly(args, pp)


def by_rank(stages, pp):
    """The same of each rank, chunk by chunk."""
    return [stages[rank::pp] for rank in range(pp)]


def _evaluated(node):
    """The lists, sums and products that arguments.py's _eval_pattern takes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.List):
        return [_evaluated(item) for item in node.elts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        left, right = _evaluated(node.left), _evaluated(node.right)
        if isinstance(node.op, ast.Add) and isinstance(left, list) and isinstance(right, list):
            return left + right
        if isinstance(node.op, ast.Mult) and isinstance(left, list) and isinstance(right, int) and len(left) * right < 1 << 22:
            return left * right
    raise ValueError("no list of zeros and ones")


def layers_with_experts(args):
    """moe_layer_freq: of each decoder layer whether it has experts, as a function of its number."""
    frequency = args.moe_layer_freq
    if frequency is None:
        return lambda layer: True
    try:
        if isinstance(frequency, str):
            frequency = _evaluated(ast.parse(frequency.strip(), mode="eval").body)
        if isinstance(frequency, int) and frequency > 0:
            return lambda layer: layer % frequency == 0
        pattern = [{0: False, 1: True}[value] for value in frequency]
    except (KeyError, SyntaxError, TypeError, ValueError):
        raise ArgumentError(f"moe_layer_freq: {args.moe_layer_freq!r} is neither a number nor a list of zeros and ones") from None
    layers = args.number("num_layers")
    if layers is not None and len(pattern) != layers:
        raise ArgumentError(f"moe_layer_freq: it has {len(pattern)} layers, and num_layers is {layers}")
    return lambda layer: layer >= len(pattern) or pattern[layer]
