from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from capo import megatron as megatron
from capo import te as te
from capo import torch as torch

__all__ = [
    "BUFFER_KINDS",
    "EDGE_KINDS",
    "KINDS",
    "REGIONS",
    "Diagnostic",
    "Graph",
    "OrderError",
    "Picture",
    "Plan",
    "Profile",
    "RecordError",
    "Report",
    "Row",
    "RunReport",
    "Schedule",
    "Span",
    "Suppressed",
    "Table",
    "Timeline",
    "__version__",
    "check",
    "compare",
    "draw",
    "explain",
    "generate",
    "graph",
    "megatron",
    "minimise",
    "plan",
    "record",
    "run",
    "schedule_names",
    "simulate",
    "sweep",
    "te",
    "torch",
]

__version__: str
strategies: Any
BUFFER_KINDS: tuple[str, ...]
EDGE_KINDS: tuple[str, ...]
KINDS: tuple[str, ...]
REGIONS: tuple[str, ...]

_Comm = Literal["per-rank", "per-pair", "per-edge", "per-direction", "lazy-hybrid"]
_Plan = Literal["te", "safe", "mcore-local"]
_TeVersion = Literal["2.19", "2.20"]
_Order = Any
"""A list as TransformerEngine takes it, a list of ranks, a text, a path, a torch schedule, a Schedule."""

class Span:
    def __init__(self, told: Any) -> None: ...
    source: str
    line: int
    column: int
    offset: int
    length: int
    label: str | None

class Diagnostic:
    def __init__(self, told: Any) -> None: ...
    rule: str
    name: str
    family: str
    severity: Literal["error", "warning"]
    message: str
    spans: list[Span]
    notes: list[str]
    help: str | None
    edits: list[tuple[Span, str]]
    witness: dict[str, Any]

class Suppressed(Diagnostic):
    reason: str
    written_at: str

class Profile:
    def __init__(self, name: str, told: Any) -> None: ...
    name: str
    accepts: bool | None
    error_kind: str | None
    reason: str | None
    disagreement: str | None

class Report:
    def __init__(self, judgement: Any, profiles: Any) -> None: ...
    verdict: Literal["accepted", "rejected", "no-verdict"]
    @property
    def accepted(self) -> bool: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
    @property
    def suppressed(self) -> list[Suppressed]: ...
    @property
    def profiles(self) -> dict[str, Profile]: ...
    @property
    def hazards(self) -> list[dict[str, Any]] | None: ...
    @property
    def victims(self) -> dict[str, list[list[int]]] | None: ...
    @property
    def slots(self) -> int | None: ...
    @property
    def bytes(self) -> dict[str, Any] | None: ...
    @property
    def transfer_buffers(self) -> dict[str, Any] | None: ...
    def to_json(self) -> str: ...
    def raise_for_errors(self) -> None: ...

class OrderError(ValueError, RuntimeError):
    report: Report
    def __init__(self, report: Report, undone: str | None = None) -> None: ...

def check(
    order: _Order,
    *,
    num_layers_per_chunk: int | Sequence[int] | None = None,
    delayed: Literal["all"] | Iterable[int] | None = None,
    modules: str | Sequence[str] | Mapping[str, Any] | None = None,
    plan: _Plan | None = None,
    plan_in: str | PathLike[str] | Mapping[str, Any] | None = None,
    topology: str | Sequence[Sequence[int]] | None = None,
    comm: _Comm | None = None,
    weight_stream: bool | None = None,
    profiles: str | Iterable[str] = ("sound",),
    te_version: _TeVersion | None = None,
) -> Report: ...

class Schedule:
    def __init__(
        self,
        order: _Order,
        *,
        num_layers_per_chunk: int | Sequence[int] | None = None,
        delayed: Literal["all"] | Iterable[int] | None = None,
        topology: str | Sequence[Sequence[int]] | None = None,
    ) -> None: ...
    @property
    def ranks(self) -> int: ...
    @property
    def chunks(self) -> list[int]: ...
    @property
    def topology(self) -> str: ...
    def lists(self) -> list[list[int | float]]: ...
    def to_order(self) -> str: ...
    def to_csv(self) -> str: ...
    def to_te(self) -> str: ...
    def to_json(self) -> str: ...
    def graph(
        self,
        *,
        num_layers_per_chunk: int | Sequence[int] | None = None,
        delayed: Literal["all"] | Iterable[int] | None = None,
        modules: str | Sequence[str] | Mapping[str, Any] | None = None,
        plan: _Plan | None = None,
        topology: str | Sequence[Sequence[int]] | None = None,
        comm: _Comm | None = None,
        te_version: _TeVersion | None = None,
    ) -> Graph: ...
    def plan(
        self,
        *,
        num_layers_per_chunk: int | Sequence[int] | None = None,
        delayed: Literal["all"] | Iterable[int] | None = None,
        modules: str | Sequence[str] | Mapping[str, Any] | None = None,
        plan: _Plan = "safe",
        topology: str | Sequence[Sequence[int]] | None = None,
        comm: _Comm | None = None,
        te_version: _TeVersion | None = None,
    ) -> Plan: ...
    def draw(
        self,
        *,
        cost: str | Mapping[str, float] | None = None,
        mem: str | Mapping[str, float] | None = None,
        num_layers_per_chunk: int | Sequence[int] | None = None,
        delayed: Literal["all"] | Iterable[int] | None = None,
        modules: str | Sequence[str] | Mapping[str, Any] | None = None,
        plan: _Plan | None = None,
        topology: str | Sequence[Sequence[int]] | None = None,
        comm: _Comm | None = None,
        paper: bool = False,
        fold: bool = False,
        path: bool = True,
        against: _Order | None = None,
        te_version: _TeVersion | None = None,
    ) -> Picture: ...
    def _repr_svg_(self) -> str: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]

class Graph:
    def __init__(self, held: Any) -> None: ...
    def __len__(self) -> int: ...
    @property
    def rank(self) -> memoryview: ...
    @property
    def stage(self) -> memoryview: ...
    @property
    def microbatch(self) -> memoryview: ...
    @property
    def kind(self) -> memoryview: ...
    @property
    def entry(self) -> memoryview: ...
    @property
    def stream(self) -> memoryview: ...
    @property
    def start(self) -> memoryview: ...
    @property
    def end(self) -> memoryview: ...
    @property
    def before(self) -> memoryview: ...
    @property
    def after(self) -> memoryview: ...
    @property
    def edge_kind(self) -> memoryview: ...
    @property
    def vertices(self) -> int: ...
    @property
    def streams(self) -> int: ...
    def to_dot(self) -> str: ...

class Plan:
    def __init__(self, held: Any) -> None: ...
    def __len__(self) -> int: ...
    @property
    def name(self) -> _Plan: ...
    @property
    def sized(self) -> bool: ...
    @property
    def peaks(self) -> list[int]: ...
    @property
    def lower_bounds(self) -> list[int]: ...
    @property
    def rank(self) -> memoryview: ...
    @property
    def chunk(self) -> memoryview: ...
    @property
    def layer(self) -> memoryview: ...
    @property
    def microbatch(self) -> memoryview: ...
    @property
    def kind(self) -> memoryview: ...
    @property
    def region(self) -> memoryview: ...
    @property
    def offset(self) -> memoryview: ...
    @property
    def bytes(self) -> memoryview: ...
    @property
    def birth(self) -> memoryview: ...
    @property
    def death(self) -> memoryview: ...
    def to_pandas(self) -> Any: ...

def graph(
    order: _Order,
    *,
    num_layers_per_chunk: int | Sequence[int] | None = None,
    delayed: Literal["all"] | Iterable[int] | None = None,
    modules: str | Sequence[str] | Mapping[str, Any] | None = None,
    plan: _Plan | None = None,
    topology: str | Sequence[Sequence[int]] | None = None,
    comm: _Comm | None = None,
    te_version: _TeVersion | None = None,
) -> Graph: ...
def plan(
    order: _Order,
    *,
    num_layers_per_chunk: int | Sequence[int] | None = None,
    delayed: Literal["all"] | Iterable[int] | None = None,
    modules: str | Sequence[str] | Mapping[str, Any] | None = None,
    plan: _Plan = "safe",
    topology: str | Sequence[Sequence[int]] | None = None,
    comm: _Comm | None = None,
    te_version: _TeVersion | None = None,
) -> Plan: ...

class Picture:
    def __init__(self, draw: Any) -> None: ...
    @property
    def svg(self) -> str: ...
    @property
    def html(self) -> str: ...
    def save(self, path: Any) -> None: ...
    def _repr_svg_(self) -> str: ...

def draw(
    order: _Order,
    *,
    cost: str | Mapping[str, float] | None = None,
    mem: str | Mapping[str, float] | None = None,
    num_layers_per_chunk: int | Sequence[int] | None = None,
    delayed: Literal["all"] | Iterable[int] | None = None,
    modules: str | Sequence[str] | Mapping[str, Any] | None = None,
    plan: _Plan | None = None,
    topology: str | Sequence[Sequence[int]] | None = None,
    comm: _Comm | None = None,
    paper: bool = False,
    fold: bool = False,
    path: bool = True,
    against: _Order | None = None,
    te_version: _TeVersion | None = None,
) -> Picture: ...
def generate(
    name: str,
    *,
    ranks: int = 1,
    microbatches: int = 1,
    chunks: int | None = None,
    group: int | None = None,
    memory_limit: float | None = None,
) -> Schedule: ...
def schedule_names() -> list[str]: ...

class Timeline:
    def __init__(self, step: Any) -> None: ...
    @property
    def makespan(self) -> float: ...
    @property
    def span(self) -> float: ...
    @property
    def bubble_rate(self) -> float: ...
    @property
    def peak(self) -> float: ...
    @property
    def ranks(self) -> list[Any]: ...
    @property
    def begin(self) -> memoryview: ...
    @property
    def end(self) -> memoryview: ...
    @property
    def rank(self) -> memoryview: ...
    @property
    def microbatch(self) -> memoryview: ...
    @property
    def stage(self) -> memoryview: ...
    @property
    def kind(self) -> memoryview: ...
    def label(self, task: int) -> str: ...
    def grid(self, width: int = 100) -> str: ...
    def to_json(self) -> str: ...
    def to_trace(self) -> str: ...
    def to_pandas(self) -> Any: ...
    def __len__(self) -> int: ...

def simulate(
    schedule: _Order,
    *,
    cost: str | Mapping[str, float] | None = None,
    mem: str | Mapping[str, float] | None = None,
    num_layers_per_chunk: int | Sequence[int] | None = None,
    delayed: Literal["all"] | Iterable[int] | None = None,
    modules: str | Sequence[str] | Mapping[str, Any] | None = None,
    topology: str | Sequence[Sequence[int]] | None = None,
    comm: _Comm | None = None,
) -> Timeline: ...

_Modules = str | Sequence[str] | Mapping[str, Any]

def minimise(order: _Order, rule: str | None = None, **declared: Any) -> Schedule: ...
def explain(rule: str) -> str: ...

class Row:
    name: str
    ranks: int
    microbatches: int | None
    timeline: Timeline
    def __init__(self, name: str, ranks: int, microbatches: int | None, timeline: Timeline) -> None: ...
    @property
    def makespan(self) -> float: ...
    @property
    def bubble_rate(self) -> float: ...
    @property
    def peak(self) -> float: ...

class Table(list[Row]):
    def __init__(self, rows: Iterable[Row] = (), *, by_counts: bool = False) -> None: ...
    def to_pandas(self) -> Any: ...

def compare(
    orders: Mapping[str, _Order] | Iterable[_Order],
    *,
    ranks: int | None = None,
    microbatches: int | None = None,
    cost: str | Mapping[str, float] | None = None,
    mem: str | Mapping[str, float] | None = None,
    **declared: Any,
) -> Table: ...
def sweep(
    names: str | Iterable[str],
    *,
    ranks: int | Iterable[int],
    microbatches: int | Iterable[int],
    cost: str | Mapping[str, float] | None = None,
    mem: str | Mapping[str, float] | None = None,
) -> Table: ...

class RunReport:
    accepted: bool
    bit_equal: bool
    within_bounds: bool
    def __init__(self, ran: Any) -> None: ...
    @property
    def ok(self) -> bool: ...
    @property
    def victims(self) -> dict[str, list[list[int]]]: ...
    @property
    def gradients(self) -> list[dict[str, Any]]: ...
    def to_json(self) -> str: ...

def run(
    order: _Order,
    *,
    num_layers_per_chunk: int | Sequence[int] | None = None,
    delayed: Literal["all"] | Iterable[int] | None = None,
    modules: _Modules | None = None,
    plan: _Plan | None = None,
    topology: str | Sequence[Sequence[int]] | None = None,
    comm: _Comm | None = None,
    replays: int = 3,
    seed: int = 1,
    sizes: Literal["random", "balanced", "zipf"] = "random",
    unchecked: bool = False,
    te_version: _TeVersion | None = None,
) -> RunReport: ...

class RecordError(ValueError): ...

class record:
    unnamed: int
    def __init__(self) -> None: ...
    def __enter__(self) -> record: ...
    def __exit__(self, *_: object) -> Literal[False]: ...
    def name(self, graph: Any, action: str, layer: int = 0) -> None: ...
    def step(self) -> None: ...
    @property
    def captured(self) -> list[str]: ...
    @property
    def replayed(self) -> list[str]: ...
    @property
    def steps(self) -> list[list[str]]: ...
    def to_order(self) -> str: ...
    def schedule(self) -> Schedule: ...
    def write(self, path: Any) -> None: ...
