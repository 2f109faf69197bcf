"""Hypothesis strategies for orders and schedules; they need the package hypothesis.

    from hypothesis import given
    from capo.strategies import orders

    @given(orders())
    def test_my_replay(order): ...

Failing examples shrink to short orders of few chunks.
"""

import capo
from hypothesis import strategies as st


@st.composite
def orders(draw, *, max_chunks=3, max_microbatches=4, delayed=None):
    """Sound lists of one rank, as TransformerEngine takes them.

    Each chunk runs all microbatches; a backward stands behind its forward and a weight gradient
    behind its backward, and otherwise every interleaving occurs. ``delayed`` is True for chunks that
    delay their weight gradient, False for chunks that do not, None for any mixture.
    """
    chunks = draw(st.integers(1, max_chunks))
    microbatches = draw(st.integers(1, max_microbatches))
    any_delay = st.booleans() if delayed is None else st.just(delayed)
    kinds = [3 if draw(any_delay) else 2 for _ in range(chunks)]
    done = [[0] * count for count in kinds]
    order = []
    while True:
        ready = [
            (chunk, kind)
            for chunk, counts in enumerate(done)
            for kind, count in enumerate(counts)
            if count < (microbatches if kind == 0 else counts[kind - 1])
        ]
        if not ready:
            return order
        chunk, kind = draw(st.sampled_from(ready))
        done[chunk][kind] += 1
        order.append((chunk + 1, -chunk - 1, -chunk - 1.5)[kind])


@st.composite
def one_entry_off(draw, base=None):
    """Lists in which one entry of a sound one is left out, doubled, or written as another."""
    order = list(draw(orders() if base is None else base))
    at = draw(st.integers(0, len(order) - 1))
    change = draw(st.sampled_from(["leave out", "double", "replace"]))
    if change == "leave out":
        del order[at]
    elif change == "double":
        order.insert(at, order[at])
    else:
        order[at] = draw(st.sampled_from(sorted({-entry for entry in order})))
    return order


@st.composite
def schedules(draw, *, names=("gpipe", "1f1b", "1f1b-interleaved"), max_ranks=4):
    """Published schedules of all ranks, as capo.Schedule."""
    ranks = draw(st.integers(1, max_ranks))
    microbatches = ranks * draw(st.integers(1, 3))
    return capo.generate(draw(st.sampled_from(names)), ranks=ranks, microbatches=microbatches)
