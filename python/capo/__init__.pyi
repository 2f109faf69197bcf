from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from capo import megatron as megatron
from capo import te as te
from capo import torch as torch

__version__: str
strategies: Any
KINDS: tuple[str, ...]

Order = Any
"""A list as TransformerEngine takes it, a list of ranks, a text, a path, a torch schedule, a Schedule."""

class Span:
    source: str
    line: int
    column: int
    offset: int
    length: int
    label: str | None

class Diagnostic:
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

class Profile:
    name: str
    accepts: bool | None
    error_kind: str | None
    reason: str | None
    disagreement: str | None

class Report:
    verdict: Literal["accepted", "rejected", "no-verdict"]
    @property
    def accepted(self) -> bool: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
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
    def to_json(self) -> str: ...
    def raise_for_errors(self) -> None: ...

class OrderError(ValueError):
    report: Report
    def __init__(self, report: Report) -> None: ...

def check(
    order: Order,
    *,
    num_layers_per_chunk: int | Sequence[int] | None = None,
    delayed: Literal["all"] | Iterable[int] | None = None,
    modules: str | Sequence[str] | Mapping[str, Any] | None = None,
    plan: Literal["te", "safe"] | None = None,
    topology: str | Sequence[Sequence[int]] | None = None,
    comm: Literal["per-rank", "per-pair", "per-edge"] | None = None,
    profiles: str | Iterable[str] = ("sound",),
) -> Report: ...

class Schedule:
    def __init__(
        self,
        order: Order,
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
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]

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
    schedule: Order,
    *,
    cost: str | Mapping[str, float] | None = None,
    mem: str | Mapping[str, float] | None = None,
    num_layers_per_chunk: int | Sequence[int] | None = None,
    delayed: Literal["all"] | Iterable[int] | None = None,
    modules: str | Sequence[str] | Mapping[str, Any] | None = None,
    topology: str | Sequence[Sequence[int]] | None = None,
    comm: Literal["per-rank", "per-pair", "per-edge"] | None = None,
) -> Timeline: ...
