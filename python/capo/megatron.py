"""Megatron-LM's own orders, by its own names of flags, and the verdict on a training command::

    python -m capo.megatron -- --pipeline-model-parallel-size 8 --num-layers 64 ...

prints what ``capo.megatron.check`` says of those flags, before any GPU is used.
"""

import math
import sys
import textwrap

from capo import _capo
from capo._check import check as _judge
from capo._megatron_job import ArgumentError, Job, flags_read, job_of
from capo._schedule import Schedule


def _differ(layers, pp):
    """Whether there are layers of each rank, one list for each; a ValueError if they are not of all ranks and chunks."""
    if layers is None or isinstance(layers, int) or not any(isinstance(of_rank, (list, tuple)) for of_rank in layers):
        return False
    if len(layers) != pp:
        raise ValueError(f"layers: they are of {len(layers)} ranks, and there are {pp}")
    for rank, of_rank in enumerate(layers):
        if not isinstance(of_rank, (list, tuple)) or len(of_rank) != len(layers[0]):
            raise ValueError(f"layers: {of_rank!r} of rank {rank} is no list of as many chunks as {layers[0]!r} of rank 0")
    return True


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

    ``layers`` are those of each chunk that can be captured, one each if not given, or a list of them
    for each rank. With ``overlap`` (``overlap_moe_expert_parallel_comm``) the order is layer by
    layer, and ``delayed_wgrad`` (``delay_wgrad_compute``) gives weight gradients entries of their
    own. ``runtime`` is the order that is executed, not the one that is captured. What makes Megatron's functions raise is a
    ValueError with their words.

    >>> from capo import megatron
    >>> megatron.orders(pp=2, microbatches=2)
    [[1, 1, -1, -1], [1, -1, 1, -1]]
    """
    def of(layers, rank):
        return _made(pp, vp, microbatches, group_size, overlap, delayed_wgrad, layers, rank, runtime, force).lists()

    if not _differ(layers, pp):
        lists = of(layers, rank)
    else:
        lists = [of(layers[each % pp], each)[0] for each in (range(pp) if rank is None else [rank])]
    return lists if rank is None else lists[0]


def _action(entry):
    return f"F{entry}" if entry > 0 else f"B{-entry}" if isinstance(entry, int) else f"W{-math.ceil(entry)}"


def _text_of_layers(lists, layers, microbatches, delayed_wgrad, calls):
    """The .order text of lists whose chunks are layers, of ranks that have different ones.

    The stages of the loop are cut into their layers. A chunk without a layer has no entry, so nothing shows where its
    transfers stand, and the ranks are not wired.
    """
    stages, before = [[] for _ in layers], 0
    for chunk in range(len(layers[0])):
        for rank, of_rank in enumerate(layers):
            stages[rank] += range(before, before + of_rank[chunk])
            before += of_rank[chunk]
    every_chunk = all(all(of_rank) for of_rank in layers)
    lines = ["capo 1", f"ranks {len(layers)}", f"microbatches {microbatches}"]
    lines += ["placement custom", f"p2p {calls}"] if every_chunk else ["placement independent"]
    for rank, order in enumerate(lists):
        if every_chunk:
            lines.append(f"rank {rank} stages {','.join(map(str, stages[rank]))}")
            lines.append(f"rank {rank} model-chunks {','.join(map(str, layers[rank]))}")
        lines += [f"rank {rank} delayed {'all' if delayed_wgrad else 'none'}"] if stages[rank] else []
        lines.append(f"rank {rank}: {' '.join(map(_action, order))}")
    return "\n".join(lines) + "\n"


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
    calls=None,
):
    """The orders of all ranks as one capo.Schedule, which knows how Megatron calls its transfers.

    ``calls`` says how: ``"batch"``, ``"overlap"`` or ``"flush"``, as the command line's ``--p2p``;
    None: as Megatron does where its arguments are silent.

    >>> import capo
    >>> capo.check(capo.megatron.schedule(pp=2, vp=2, microbatches=4)).verdict
    'accepted'
    """
    asked = {"pp": pp, "vp": vp, "microbatches": microbatches, "group_size": group_size, "overlap": overlap,
             "delayed_wgrad": delayed_wgrad, "runtime": runtime, "force": force}
    if not _differ(layers, pp):
        return Schedule._of(_made(**asked, layers=layers, rank=None).schedule(calls))
    if overlap and not runtime:
        if calls is None:
            calls = "overlap" if (vp or 1) > 1 else "batch"
        text = _text_of_layers(orders(**asked, layers=layers), layers, microbatches, delayed_wgrad, calls)
        return Schedule(Schedule(text).to_order())  # in lines of a readable length
    alike = Schedule._of(_made(**asked, layers=None, rank=None).schedule(calls)).to_order()
    of_ranks = (f"rank {rank} layers {','.join(map(str, of_rank))}\n" for rank, of_rank in enumerate(layers))
    return Schedule(alike + "".join(of_ranks))


def refusal(*, pp, microbatches, vp=None, group_size=None, overlap=False):
    """Why Megatron's runtime refuses the configuration; None if it accepts."""
    return _made(pp, vp, microbatches, group_size, overlap, False, None, None, False, True).refusal


class Verdict:
    """What ``capo.megatron.check`` found: the job that was read, its schedule, and the report on it.

    ``refusal`` is the reason why Megatron's own runtime refuses the configuration, None if it does
    not; ``report`` is the capo.Report on the orders; ``job.notes`` says what was assumed.
    """

    def __init__(self, job, schedule, refusal, report):
        self.job, self.schedule, self.refusal, self.report = job, schedule, refusal, report

    @property
    def accepted(self):
        return self.refusal is None and self.report.accepted

    @property
    def verdict(self):
        return "rejected" if self.refusal is not None else self.report.verdict

    def raise_for_errors(self):
        if self.refusal is not None:
            raise ValueError(f"Megatron-LM refuses the configuration: {self.refusal}")
        self.report.raise_for_errors()

    def __str__(self):
        lines = [f"note: {note}" for note in self.job.notes]
        if self.refusal is not None:  # and then nothing runs that a report could be about
            return "\n".join([*lines, f"error: Megatron-LM refuses the configuration: {self.refusal}", "rejected"])
        return "\n".join([*lines, str(self.report)])


def check(args_or_config, *, plan=None, comm=None, profiles=("sound", "mcore")):
    """Judge the step that Megatron-LM's arguments describe: orders of all ranks, transfers, buffers.

    ``args_or_config`` is what Megatron has in hand: the namespace of its parser, a TransformerConfig
    with the sizes of the run, a container of Megatron-Bridge's with ``model`` and ``train``, a mapping
    of names or of flags, or flags, a list or one text. ``plan`` is, unless given, TransformerEngine's
    reuse of buffers where ``cuda_graph_impl`` is ``transformer_engine``, that of Megatron's own graphs
    where it is ``local`` and they hold whole layers, over several ranks and without the overlap, and
    none otherwise.

    >>> import capo
    >>> flags = "--pipeline-model-parallel-size 4 --num-layers 16 --num-microbatches 8"
    >>> found = capo.megatron.check(flags.split())
    >>> found.verdict, found.job.layers, found.job.calls
    ('accepted', [4], 'batch')
    """
    job = job_of(args_or_config)
    asked = job.asked()
    if job.plan is None and not job.overlap and isinstance(asked["layers"][0], list):
        asked["layers"] = None  # nothing is captured of them, and a stage may have none
    orders_of_all = schedule(**asked, calls=job.calls)
    why = refusal(**{name: asked[name] for name in ("pp", "vp", "microbatches", "group_size", "overlap")})
    report = _judge(
        orders_of_all,
        modules=job.modules,
        plan=plan or job.plan,
        comm=comm,
        profiles=profiles,
    )
    return Verdict(job, orders_of_all, job.refusal or why, report)


_USAGE = "usage: python -m capo.megatron -- FLAGS OF THE TRAINING COMMAND"


def _help():
    read = textwrap.fill(" ".join(flags_read()), 100, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return (
        f"{_USAGE}\n\n"
        "Judges the step that the flags of Megatron-LM describe: orders of all ranks, transfers, and buffers if\n"
        "TransformerEngine or Megatron-LM captures layers. Exit code: 0 accepted, 1 rejected, 2 the flags say too little.\n\n"
        f"Flags that are read; all others are passed over:\n{read}"
    )


def main(arguments):
    """python -m capo.megatron -- FLAGS: exit code 0 if accepted, 1 if not, 2 where flags say too little."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(_help())
        return 0
    flags = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not flags:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        found = check(flags if len(flags) > 1 else flags[0])  # one word is a command that was quoted
    except ValueError as problem:
        print(f"capo.megatron: {problem}", file=sys.stderr)
        return 2
    print(found)
    return 0 if found.accepted else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
