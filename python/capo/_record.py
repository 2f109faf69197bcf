"""capo.record: the order in which graphs were really captured and replayed."""

import functools
import math
import weakref

from capo._hook import NAME, Replacements, holding, loaded_functions
from capo._schedule import Schedule
from capo._te_modules import layers_of

# A graph's name is its kind, its chunk from 1, its layer and its microbatch from 0.
_KINDS = ("F", "B", "W")
# Stands among the replays of a step where the last graph of a chunk and microbatch is reset.
_RESET = "reset"


class RecordError(ValueError):
    """What was recorded is no order: a graph was captured that nobody named, or a replay is missing."""


def _te_captures(order, layers):
    """The (kind, chunk, layer, microbatch) of each graph, as graph.py captures them for ``_order``.

    A weight gradient is of the newest backward of its chunk, as it is there.
    """
    counts = {}
    for entry in order:
        chunk = abs(math.ceil(entry)) if entry < 0 else int(entry)
        kind = "F" if entry > 0 else "B" if float(entry).is_integer() else "W"
        if kind != "W":
            counts[kind, chunk] = counts.get((kind, chunk), -1) + 1
        microbatch = counts.get(("B" if kind == "W" else kind, chunk), -1)
        within = range(layers[chunk - 1])
        for layer in within if kind == "F" else reversed(within):
            yield kind, chunk, layer, microbatch


def _captures_in_turn(callables):
    """Without an order all forwards are captured, and then all backwards from the last on."""
    for chunk in range(1, callables + 1):
        yield "F", chunk, 0, 0
    for chunk in range(callables, 0, -1):
        yield "B", chunk, 0, 0


def _replays(step):
    return [name for name in step if name[0] != _RESET]


def _noted(method, note):
    @functools.wraps(method)
    def noted(graph, *arguments, **named):
        note(graph)
        return method(graph, *arguments, **named)

    return noted


class record:
    """A context manager: while it holds, every CUDA graph that is captured or replayed is noted::

        with capo.record() as recorded:
            model = torch.cuda.make_graphed_callables(model, sample)   # or TransformerEngine's
            train_one_step()
        recorded.write("recorded.json")

    Then ``capo check recorded.json`` judges what was replayed against what was captured, and
    ``capo check --capture planned.order --replay recorded.json`` against what was planned.

    Graphs of ``make_graphed_callables``, PyTorch's and TransformerEngine's, are named by the call;
    another graph is named by ``name(graph, "F1")``, and left out otherwise: ``unnamed`` counts those.
    A new step begins where a graph is replayed again, or at ``step()``, once that has been called.
    ``write`` and ``schedule`` are of the first step; ``steps`` tells whether the others did the same.

    A graph may be reset, as TransformerEngine's ``reset()`` of a graphed callable does with its graphs.
    Where the last graph of a chunk and microbatch goes, the order has a ``reset``; ``write`` and
    ``schedule`` are of the first step that has one then.

    PyTorch 2.14 and later tell of captures and replays themselves. In earlier versions methods of
    ``torch.cuda.CUDAGraph`` are replaced while the context holds. The record keeps no graph alive.
    """

    def __init__(self):
        self.unnamed = 0
        self._names = {}  # by id of a graph that lives
        self._alive = {}
        self._captured = []
        self._layers = {}  # of each chunk
        self._steps = [[]]
        self._stepped = False
        self._gone = set()  # names of graphs that were reset
        self._expected = None  # an iterator over the names of a call's captures
        self._replacements = Replacements()

    def __enter__(self):
        import torch

        self._listen(torch.cuda)
        graph_class = torch.cuda.CUDAGraph
        if hasattr(graph_class, "reset"):  # PyTorch has no hook for this
            self._replacements.set(graph_class, "reset", _noted(graph_class.reset, self._reset))
        for function in (torch.cuda.make_graphed_callables, *loaded_functions(guarded=True)):
            named = self._naming(function)
            for holder in holding(function):
                self._replacements.set(holder, NAME, named)
        return self

    def _listen(self, cuda):
        graphs = cuda.graphs
        if hasattr(graphs, "register_graph_replay_start_hook"):
            self._replacements.add(graphs.register_graph_capture_start_hook(self._capture).remove)
            self._replacements.add(graphs.register_graph_replay_start_hook(self._replay).remove)
            return
        for method, note in (("capture_begin", self._capture), ("replay", self._replay)):
            self._replacements.set(cuda.CUDAGraph, method, _noted(getattr(cuda.CUDAGraph, method), note))

    def __exit__(self, *_):
        self._replacements.undo()
        return False

    def _naming(self, function):
        """The function, whose captures are named by what it is called with."""

        @functools.wraps(function)
        def named_captures(callables, *rest, **named):
            outer, self._expected = self._expected, self._names_of_call(callables, named)
            try:
                return function(callables, *rest, **named)
            finally:
                self._expected = outer

        return named_captures

    def _names_of_call(self, callables, named):
        count = len(callables) if isinstance(callables, (tuple, list)) else 1
        order = named.get("_order")
        if order is None:
            return _captures_in_turn(count)
        return _te_captures(order, layers_of(order, named.get("_num_layers_per_chunk"), count))

    def name(self, graph, action, layer=0):
        """Name a graph that no call of make_graphed_callables makes: ``"F1"``, ``"B2"``, ``"W1"``.

        Before or behind its capture, but before its first replay. Its microbatch is how many graphs
        of that action and layer were named before it.
        """
        kind, chunk = action[:1], action[1:]
        if kind not in _KINDS or not chunk.isdigit() or chunk.startswith("0"):
            raise ValueError(f"name: {action!r} is no action; there are F1, B1 and W1, with chunks from 1")
        microbatch = sum(known[:3] == (kind, int(chunk), layer) for known in self._names.values())
        captured = id(graph) in self._alive
        self._call(graph, (kind, int(chunk), layer, microbatch))
        if captured:
            self._captured[self._captured.index(id(graph))] = self._names[id(graph)]
            self.unnamed -= 1

    def _call(self, graph, name):
        self._names[id(graph)] = name
        self._hold(graph)
        _, chunk, layer, _ = name
        self._layers[chunk] = max(self._layers.get(chunk, 0), layer + 1)

    def _hold(self, graph):
        """Forgets a graph when it dies, since another may get its id."""
        key = id(graph)
        if key not in self._alive:
            self._alive[key] = weakref.finalize(graph, self._forget, key)
            self._alive[key].atexit = False

    def _forget(self, key):
        self._alive.pop(key, None)
        self._names.pop(key, None)

    def _capture(self, graph):
        if self._expected is not None and id(graph) not in self._names:
            name = next(self._expected, None)
            if name is not None:
                self._call(graph, name)
        name = self._names.get(id(graph))
        if name is None:
            self.unnamed += 1
            self._hold(graph)
        self._captured.append(name or id(graph))

    def _replay(self, graph):
        name = self._names.get(id(graph))
        if name is None:
            return
        if not self._stepped and name in self._steps[-1]:
            self._steps.append([])
        self._steps[-1].append(name)

    def _reset(self, graph):
        name = self._names.get(id(graph))
        if name is None or name in self._gone:
            return
        self._gone.add(name)
        _, chunk, _, microbatch = name
        if any(each not in self._gone for each in self._of_cell(chunk, microbatch)):
            return
        # A call of step() has closed the step before the last.
        closed = not self._steps[-1] and len(self._steps) > 1
        self._steps[-2 if closed else -1].append((_RESET, chunk, 0, microbatch))

    def _named(self):
        return [name for name in self._captured if isinstance(name, tuple)]

    def _of_cell(self, chunk, microbatch):
        return [name for name in self._named() if name[1] == chunk and name[3] == microbatch]

    def step(self):
        """Say that a step ends here; graphs may be replayed more than once in a step then."""
        self._stepped = True
        if self._steps[-1]:
            self._steps.append([])

    @property
    def captured(self):
        """The actions in the order of capture, one for all layers of a chunk: ``["F1", "B1"]``."""
        return self._actions(self._named())

    @property
    def replayed(self):
        """The actions of the first step in the order of replay, or of the first in which graphs were reset."""
        return self._actions(_replays(self._shown_step()))

    @property
    def steps(self):
        """The actions of each step that was replayed."""
        return [self._actions(_replays(step)) for step in self._steps if _replays(step)]

    def _shown_step(self):
        return next((step for step in self._steps if len(_replays(step)) < len(step)), self._steps[0])

    def _resets(self, cells):
        """What lets go of these cells, each a chunk and a microbatch: all of a chunk, or of the rank, as one."""
        alive = {(chunk, microbatch) for _, chunk, _, microbatch in self._named()}
        if set(cells) == alive:
            return ["reset"]
        resets = []
        for chunk in dict.fromkeys(chunk for chunk, _ in cells):
            own = [cell for cell in cells if cell[0] == chunk]
            if set(own) == {cell for cell in alive if cell[0] == chunk}:
                resets.append(f"reset{chunk}")
            else:
                resets += [f"reset{chunk}.{microbatch}" for _, microbatch in own]
        return resets

    def _actions(self, graphs):
        """A chunk's graphs, layer by layer, as one action each; it stands where its first layer does."""
        whole, left, resets = [], {}, []
        for kind, chunk, layer, microbatch in graphs:
            if kind == _RESET:
                resets.append((chunk, microbatch))
                continue
            if resets:
                whole += self._resets(resets)
                resets = []
            layers = self._layers[chunk]
            first = 0 if kind == "F" else layers - 1
            if layer == first:
                whole.append(f"{kind}{chunk}")
                left[kind, chunk, microbatch] = layers - 1
            elif left.get((kind, chunk, microbatch), 0) > 0:
                left[kind, chunk, microbatch] -= 1
            else:
                raise RecordError(f"layer {layer} of {kind}{chunk}, microbatch {microbatch}, came without its first")
        for (kind, chunk, microbatch), missing in left.items():
            if missing:
                raise RecordError(f"{missing} layers of {kind}{chunk}, microbatch {microbatch}, did not come")
        return whole + (self._resets(resets) if resets else [])

    def to_order(self):
        """The text of an ``.order`` file with what was captured, and what was replayed if that differs.

        Resets stand in what was replayed.
        """
        captured, replayed = self.captured, self.replayed
        if not captured:
            raise RecordError("no graph was captured that has a name: enter the record before the capture")
        microbatches = sum(action == captured[0] for action in captured)
        lines = ["capo 1", f"microbatches {microbatches}"]
        layers = [self._layers.get(chunk, 1) for chunk in range(1, max(self._layers) + 1)]
        if any(each != 1 for each in layers):
            lines.append(f"rank 0 layers {','.join(map(str, layers))}")
        with_resets = self._actions(self._shown_step())
        if replayed and replayed != captured:
            lines += ["rank 0: " + " ".join(captured), "rank 0 replay: " + " ".join(with_resets)]
        else:
            lines.append("rank 0: " + " ".join(with_resets if replayed else captured))
        return "\n".join(lines) + "\n"

    def schedule(self):
        """What was captured and replayed as a ``capo.Schedule``."""
        return Schedule(self.to_order())

    def write(self, path):
        """Write ``recorded.json``: capo's JSON with the order of capture, and of replay if it differs."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.schedule().to_json())
