"""What a call of make_graphed_callables says of its modules, as the members of model.json.

Kinds come from the class of a callable, flags from its attributes, shapes and types from the sample
arguments. What nobody can read is left out, which capo takes for undeclared.
"""

# The class names of TransformerEngine's and Megatron-LM's modules; a subclass counts as its base.
_KINDS = {
    "Linear": "linear",
    "GroupedLinear": "grouped-linear",
    "LayerNormLinear": "layernorm-linear",
    "LayerNormMLP": "layernorm-mlp",
    "TransformerLayer": "transformer-layer",
    "MoETransformerLayer": "transformer-layer",
}
# TransformerEngine's recipes by capo's names.
_RECIPES = {
    "DelayedScaling": "delayed",
    "Float8CurrentScaling": "current",
    "Float8BlockScaling": "block",
    "MXFP8BlockScaling": "mxfp8",
    "NVFP4BlockScaling": "nvfp4",
}
_DTYPES = {"torch.bfloat16": "bf16", "torch.float16": "fp16", "torch.float32": "fp32"}
_PACKAGES = ("transformer_engine", "megatron")


def _kind(module):
    for base in type(module).__mro__:
        if base.__module__.split(".")[0] in _PACKAGES and base.__name__ in _KINDS:
            return _KINDS[base.__name__]
    return None


def _parts(module):
    """The module and its submodules, if it can list them."""
    listed = getattr(module, "modules", None)
    return list(listed()) if callable(listed) else [module]


def delays(module):
    """Whether a module or one of its parts makes its weight gradient apart."""
    for part in _parts(module):
        if getattr(part, "delay_wgrad_compute", False):
            return True
        store = getattr(part, "wgrad_store", None)
        asked = getattr(store, "delay_wgrad_compute", None)
        if callable(asked) and asked():
            return True
    return False


def _fuses(module):
    """Whether its weight gradient adds into main_grad; None where no part says, so that nothing is declared."""
    said = [value for part in _parts(module) if isinstance(value := getattr(part, "fuse_wgrad_accumulation", None), bool)]
    return any(said) if said else None


def _makes_bias_gradient(module):
    """Whether a part that delays its weight gradient has a bias which its product adds, and whose gradient comes with it."""
    return any(
        getattr(part, "apply_bias", False) is True and getattr(part, "gemm_bias_unfused_add", False) is not True and delays(part)
        for part in _parts(module)
    )


def recipes_of(named, callables):
    """Of each callable what the arguments of make_graphed_callables say of its recipe, as members of a module.

    A recipe that capo does not know, and TransformerEngine's default, make copies as all of them do.
    """
    def said(*names):
        return next((named[name] for name in names if named.get(name) is not None), None)

    enabled, recipe = said("enabled", "fp8_enabled"), said("recipe", "fp8_recipe")
    each = list(enabled) if isinstance(enabled, (tuple, list)) else [enabled] * callables
    word = next((_RECIPES[base.__name__] for base in type(recipe).__mro__ if base.__name__ in _RECIPES), "current")
    wide = getattr(recipe, "backward_override", None) == "high_precision"
    quantized = {"recipe": word, "flags": {"high_precision_backward": True} if wide else {}}
    return [quantized if on else {} for on in each]


def _has_hooks(module):
    """Whether PyTorch has hooks of this callable itself, as graph.py looks for them; those of its parts do not count."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(isinstance(hooks := getattr(module, kind, None), dict) and hooks for kind in kinds)


def _dense_strides(shape):
    strides, size = [], 1
    for extent in reversed(list(shape)):
        strides.append(size)
        size *= extent
    return strides[::-1]


def _is_dense(tensor):
    stride = getattr(tensor, "stride", None)
    return not callable(stride) or list(stride()) == _dense_strides(tensor.shape)


def _tensors(arguments):
    listed = arguments if isinstance(arguments, (tuple, list)) else (arguments,)
    return [each for each in listed if hasattr(each, "shape") and hasattr(each, "dtype")]


def _signature(arguments):
    return [(tuple(each.shape), str(each.dtype)) for each in _tensors(arguments)]


def _declared(module, samples, recipe):
    """One callable; ``samples`` are its arguments for each microbatch, ``recipe`` is one of ``recipes_of``."""
    declared = {}
    if kind := _kind(module):
        declared["kind"] = kind
    fuses = _fuses(module)
    flags = {} if fuses is None else {"delay_wgrad": delays(module), "fuse_wgrad_accumulation": fuses}
    if _has_hooks(module):
        flags["hooks"] = True
    if _makes_bias_gradient(module):
        flags["bias"] = True
    flags |= recipe.get("flags", {})
    declared["flags"] = flags
    if "recipe" in recipe:
        declared["recipe"] = recipe["recipe"]
    tensors = _tensors(samples[0]) if samples else []
    if not tensors or any(_signature(each) != _signature(samples[0]) for each in samples):
        return declared
    first = tensors[0]
    if not any(getattr(each, "requires_grad", True) for each in tensors):
        flags["input_requires_grad"] = False
    if not all(map(_is_dense, tensors)):
        flags["contiguous_input"] = False
    if dtype := _DTYPES.get(str(first.dtype)):
        declared["dtype"] = dtype
    if len(first.shape) >= 2 and all(first.shape):
        tokens = 1
        for extent in first.shape[:-1]:
            tokens *= int(extent)
        declared["shape"] = {"tokens": tokens, "hidden": int(first.shape[-1])}
        columns = getattr(module, "out_features", None)
        if kind in ("linear", "grouped-linear", "layernorm-linear") and isinstance(columns, int):
            declared["shape"]["ffn"] = columns
    return declared


def layers_of(order, num_layers_per_chunk, callables):
    """How many of the callables each chunk of an order has; TransformerEngine divides them evenly by itself."""
    chunks = max((int(entry) for entry in order if entry > 0), default=0)
    layers = num_layers_per_chunk
    if layers is None:
        layers = max(callables // max(chunks, 1), 1)
    return [int(layers)] * chunks if isinstance(layers, int) else [int(each) for each in layers]


def model_of(callables, sample_args, layers, microbatches, recipes=()):
    """The model.json of a call with an order; None if its counts do not fit each other.

    ``layers`` is how many callables each chunk has. Sample arguments come chunk by chunk, in a chunk
    microbatch by microbatch, and there layer by layer, as graph.py indexes them.
    """
    if len(callables) != sum(layers) or len(sample_args) != sum(layers) * microbatches:
        return None
    modules, chunks, at = {}, [], 0
    for count in layers:
        chunk, begin = [], at * microbatches
        for layer in range(count):
            samples = [sample_args[begin + m * count + layer] for m in range(microbatches)]
            name = f"layer{at + layer}"
            modules[name] = _declared(callables[at + layer], samples, recipes[at + layer] if at + layer < len(recipes) else {})
            chunk.append(name)
        chunks.append(chunk)
        at += count
    return {"modules": modules, "layers": [chunks]}
