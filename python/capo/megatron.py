"""Megatron-LM's own orders, by its own names of flags."""

from capo import _capo
from capo._schedule import Schedule


def _made(pp, vp, microbatches, group_size, overlap, delayed_wgrad, layers, rank, runtime, force):
    if layers is None:
        layers = []
    elif isinstance(layers, int):
        layers = [layers] * (vp or 1)
    made = _capo.megatron_orders(
        pp, vp, microbatches, group_size, overlap, delayed_wgrad, list(layers), rank, runtime
    )
    if made.nonsense and not force:
        raise ValueError(
            f"Megatron's functions give an order that nothing can run: {made.nonsense}; "
            "force=True returns it"
        )
    return made


def orders(
    *,
    pp,
    microbatches,
    vp=None,
    group_size=None,
    overlap=False,
    delayed_wgrad=False,
    layers=None,
    rank=None,
    runtime=False,
    force=False,
):
    """The list of each rank, as Megatron hands it to TransformerEngine, or that of one ``rank``.

    ``layers`` are those of each chunk that can be captured, one each if not given. With ``overlap``
    (``overlap_moe_expert_parallel_comm``) the order is layer by layer, and ``delayed_wgrad``
    (``delay_wgrad_compute``) gives weight gradients entries of their own. ``runtime`` is the order
    that is executed, not the one that is captured. What makes Megatron's functions raise is a
    ValueError with their words.

    >>> from capo import megatron
    >>> megatron.orders(pp=2, microbatches=2)
    [[1, 1, -1, -1], [1, -1, 1, -1]]
    """
    made = _made(pp, vp, microbatches, group_size, overlap, delayed_wgrad, layers, rank, runtime, force)
    lists = made.lists()
    return lists if rank is None else lists[0]


def schedule(
    *,
    pp,
    microbatches,
    vp=None,
    group_size=None,
    overlap=False,
    delayed_wgrad=False,
    layers=None,
    runtime=False,
    force=False,
):
    """The orders of all ranks as one capo.Schedule, which knows how Megatron calls its transfers.

    >>> import capo
    >>> capo.check(capo.megatron.schedule(pp=2, vp=2, microbatches=4)).verdict
    'accepted'
    """
    made = _made(pp, vp, microbatches, group_size, overlap, delayed_wgrad, layers, None, runtime, force)
    return Schedule._of(made.schedule())


def refusal(*, pp, microbatches, vp=None, group_size=None, overlap=False):
    """Why Megatron's runtime refuses the configuration; None if it accepts."""
    return _made(pp, vp, microbatches, group_size, overlap, False, None, None, False, True).refusal
