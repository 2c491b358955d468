"""The results of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from tflq.comparison.verification.results import InputFacts
from tflq.display import display_by
from tflq.engine.api.subject import ModelFacts
from tflq.engine.runtimes import Description


@dataclass(frozen=True, slots=True)
class Ratio:
    """Times of one side over those of another: the median and the quartiles over the turns, and that of the minima."""

    median: float
    minimum: float
    low: float
    high: float


@dataclass(slots=True)
class Side:
    """A profile of tflq (`is_tflq`), or a real runtime, on one case. Times are in seconds, memory is in bytes.

    `turns` holds the times of the invokes of each turn. `bits` compares its outputs with those of the first side:
    "same", "differs" or "not compared", then with a `reason`. A side that did not run has a `failure`.
    """

    name: str
    is_tflq: bool
    description: Description | None = None
    imported: float = 0.0
    loaded: float = 0.0
    first: float = 0.0
    peak: int = 0
    turns: list[list[float]] = field(default_factory=list)
    bits: str = "not compared"
    reason: str = ""
    failure: str = ""

    @property
    def label(self) -> str:
        """The name in reports: a real runtime's begins with "runtime:", as in sessions."""
        return self.name if self.is_tflq else f"runtime:{self.name}"

    @property
    def times(self) -> list[float]:
        """Seconds of each invoke."""
        return [seconds for turn in self.turns for seconds in turn]

    @property
    def is_timed(self) -> bool:
        """True if there is a time to report: a side that failed later has none."""
        return bool(self.turns) and not self.failure

    @property
    def median(self) -> float:
        """The median time of an invoke."""
        return median(self.times)

    @property
    def minimum(self) -> float:
        """The smallest time of an invoke."""
        return min(self.times)

    @property
    def ready(self) -> float:
        """Seconds from the start of imports to the first result."""
        return self.imported + self.loaded + self.first


def ratio(one: Side, other: Side) -> Ratio:
    """Return the times of one side over those of the other; both are timed.

    Turns are compared in pairs, so that a drift of the machine affects both sides alike.
    """
    pairs = [median(a) / max(median(b), 1e-9) for a, b in zip(one.turns, other.turns)]  # noqa: B905 (one may be ahead)
    low, middle, high = quantiles(pairs, n=4, method="inclusive") if len(pairs) > 1 else pairs * 3
    return Ratio(middle, one.minimum / max(other.minimum, 1e-9), low, high)


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """The median time of one operator of tflq, with those of the subgraphs that it calls.

    `limit` is the kind of arithmetic limit that its products have; empty without products or without a limit.
    """

    index: int
    op: str
    seconds: float
    macs: int
    limit: str = ""

    @property
    def rate(self) -> float:
        """Multiply-accumulates a second; 0 if it has none, or took no time."""
        return self.macs / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Limit:
    """The measured multiply-accumulates a second of the processor in a form of instructions, in one thread."""

    form: str
    rate: float


@dataclass(slots=True)
class Case:
    """One signature of the model, "" for the only one. The first side is tflq under the first profile."""

    name: str
    inputs: InputFacts
    sides: list[Side] = field(default_factory=list)
    operators: Sequence[OperatorTime] = ()

    @property
    def base(self) -> Side | None:
        """The first side, if it was timed."""
        return next((side for side in self.sides[:1] if side.is_timed), None)


@display_by("bench.report:bench_card")
@dataclass(slots=True)
class Benched:
    """The results of a benchmark, complete unless `interrupted`, by the signal `stop`.

    `missing` are runtimes that are not installed, with the reason; `notes` are about what was left out.
    """

    facts: ModelFacts
    profiles: tuple[str, ...]
    threads: int
    kernels: str  # the form of the products of 8-bit codes
    cases: list[Case] = field(default_factory=list)
    limits: Mapping[str, Limit] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    interrupted: bool = False
    stop: BaseException | None = None
