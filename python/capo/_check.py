"""capo.check: an order to a verdict."""

from capo import _capo
from capo._order import is_torch_schedule, plan_text, project_of, taken
from capo._report import Report
from capo._schedule import Schedule


def check(
    order,
    *,
    num_layers_per_chunk=None,
    delayed=None,
    modules=None,
    plan=None,
    plan_in=None,
    topology=None,
    comm=None,
    weight_stream=None,
    profiles=("sound",),
    te_version=None,
):
    """Judge an order: is it right, and if not, where and why.

    ``order`` is a list as TransformerEngine takes it (ints, floats, NumPy scalars), a list of one
    for each rank, a torch schedule object, the text of a table or an ``.order`` file, a path, or a
    ``capo.Schedule``.

    - ``num_layers_per_chunk``: as TransformerEngine's own argument; its profile takes None for None.
    - ``delayed``: chunks that delay their weight gradient, from 1, or ``"all"``; None: those that
      have one in the order.
    - ``modules``: a kind for all chunks, a list of one for each, or a dict of model.json's members.
      What has no argument of its own is declared there: ``{"transfers": "buffered:4194304", "transfer":
      {"bytes": 1048576}}``.
    - ``plan``: ``"te"``, ``"mcore-local"`` or ``"safe"``: the buffers are judged as well.
    - ``te_version``: whose plan ``"te"`` is, ``"2.19"`` or ``"2.20"``: up to 2.19 the passes before capture keep
      all outputs to their end, which the budget notices; None: the newest.
    - ``plan_in``: in its place a plan that others made, as ``capo check --plan-in`` takes it: a path, JSON,
      or a dict, ``{"slots": {rank: {stage: [a slot for each microbatch]}}}``.
    - ``topology``: ``"chain"``, ``"loop"``, ``"v"``, ``"bidirectional"``, ``"independent"``, or the
      stages of each rank.
    - ``comm``: ``"per-rank"``, ``"per-pair"``, ``"per-edge"``, ``"per-direction"`` or
      ``"lazy-hybrid"``; None: the order is judged under each of the first three.
    - ``weight_stream``: whether weight gradients run on a stream of their own; None: they are taken not
      to, and a warning says where that matters.
    - ``profiles``: the programs that are asked as well: ``"te"``, ``"mcore"``, ``"torch"``,
      or a version of one, ``"te@2.20"``, ``"torch@2.11"``.

    What ``capo.toml`` and comments of the order suppress is in the report's ``suppressed``.

    >>> import capo
    >>> print(capo.check([1, 1, -1, -1]).verdict)
    accepted
    """
    if isinstance(profiles, str):
        profiles = (profiles,)
    given, name = taken(order)
    known = None
    if is_torch_schedule(order):
        from capo.torch import facts

        known = facts(order)
    judgement = _capo.check(
        given, name, num_layers_per_chunk, delayed, modules, plan, topology, comm, weight_stream, list(profiles), known,
        project_of(order), plan_text(plan_in), te_version,
    )
    return Report(judgement, profiles)


def minimise(order, rule=None, **declared):
    """The smallest ``capo.Schedule`` that still breaks a rule, by its id or name; None: of the first error.

    ``declared`` is what ``capo.check`` takes beside the order.

    >>> import capo
    >>> capo.minimise([1, 2, 1, -2, 2, -1, -2, -1, -1], "S15").lists()
    [[1, -1, -1]]
    """
    return Schedule._of(check(order, **declared)._judgement.minimised(rule or ""))


def explain(rule):
    """The page of a rule, by its id or name: why it is, an order that breaks it, the cure.

    ``"contract"`` is the page of the gradient contract.

    >>> import capo
    >>> print(capo.explain("S15").splitlines()[0])
    # S15 backward-count: a chunk has not as many backwards as forwards
    """
    return _capo.page(rule)
