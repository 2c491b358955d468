"""Profiles of tflq and real runtimes timed on one model, in turns within one run.

The results of a benchmark.

Sides of one case, timed in turns: each has a short burst of invokes, then the next side has its own.

One benchmark: a model's signatures, each a race of profiles and runtimes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from tflq.comparison.inputs.prepare import PLAIN, InputPreparation
from tflq.comparison.inputs.read import Feed, Feeds, make_feeds
from tflq.comparison.inspection.difference import difference
from tflq.comparison.inspection.operators import macs_with_calls
from tflq.comparison.results import InputFacts
from tflq.engine.api.files import ModelFacts, Source, Subject, package, subject
from tflq.engine.interpreter.plan import current_limits
from tflq.engine.microkernels.kernel import choose
from tflq.engine.profiles import by_name as profile_by_name
from tflq.engine.runtimes import RUNTIMES, Description, Invocation
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.engine.runtimes import named as runtime_named
from tflq.engine.runtimes.process import ProcessRuntime, temporary_folder
from tflq.engine.runtimes.timed import Contestant, TimedJob, contestant, tflq_contestant
from tflq.errors import OptionError, RuntimeMissing, TflqError
from tflq.interrupts import Progress, silent
from tflq.model.ir import Model, Signed, signed, view
from tflq.texts import Statement, Tabular, display_by
from tflq.typing import Array

__all__ = ["BenchCase", "BenchSide", "Benched", "Benchmark", "OperatorTime"]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Times of one side over those of another: the median and the quartiles over the turns, and that of the minima."""

    median: float
    minimum: float
    low: float
    high: float


@dataclass(slots=True)
class BenchSide:
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


def ratio(one: BenchSide, other: BenchSide) -> Ratio:
    """Return the times of one side over those of the other; both are timed.

    Turns are compared in pairs, so that a drift of the machine affects both sides alike.
    """
    pairs = [median(a) / max(median(b), 1e-9) for a, b in zip(one.turns, other.turns)]  # noqa: B905 (one may be ahead)
    low, middle, high = quantiles(pairs, n=4, method="inclusive") if len(pairs) > 1 else pairs * 3
    return Ratio(middle, one.minimum / max(other.minimum, 1e-9), low, high)


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """The median time of one operator of tflq, with those of the subgraphs that it calls."""

    index: int
    op: str
    seconds: float
    macs: int

    @property
    def rate(self) -> float:
        """Multiply-accumulates a second; 0 if it has none, or took no time."""
        return self.macs / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class BenchCase:
    """One signature of the model, "" for the only one. The first side is tflq under the first profile."""

    name: str
    inputs: InputFacts
    sides: list[BenchSide] = field(default_factory=list)
    operators: Sequence[OperatorTime] = ()

    @property
    def base(self) -> BenchSide | None:
        """The first side, if it was timed."""
        return next((side for side in self.sides[:1] if side.is_timed), None)


@display_by("bench:bench_card", "bench_document", "cases.sides")
@dataclass(slots=True)
class Benched(Tabular):
    """The results of a benchmark, complete unless `interrupted`, by the signal `stop`.

    `missing` are runtimes that are not installed, with the reason; `notes` are about what was left out.
    """

    facts: ModelFacts
    profiles: tuple[str, ...]
    threads: int
    kernels: str  # the form of the products of 8-bit codes
    cases: list[BenchCase] = field(default_factory=list)
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    interrupted: bool = False
    stop: BaseException | None = None


#: Seconds of a burst, and the least number of turns.
BURST, LEAST = 0.05, 3


class Race:
    """The sides of a case, each in a process of its own. Sides that fail leave; the others go on."""

    def __init__(self, stack: ExitStack, job: TimedJob, tell: Progress) -> None:
        self._stack, self._job, self._tell = stack, job, tell
        self._running: list[tuple[BenchSide, Contestant]] = []
        self._expected: Sequence[Mapping[str, Array]] = ()

    def enter(self, side: BenchSide, runtime: ProcessRuntime) -> Contestant | None:
        """Start a side, which runs every step once, and compare its outputs with those of the first side.

        Processes start one after the other, so that none is slowed down by another's start. The result is None if the
        side failed.

        Raises:
            RuntimeMissing: It is not installed.
            TflqError: The first side failed.
        """
        self._tell(f"starting {side.label}", 0, 0)
        try:
            ready = self._stack.enter_context(contestant(runtime, self._job))
            ready.burst(0.0)  # not counted: plans that run again are bound to memory now
        except RuntimeMissing:
            raise
        except TflqError as error:
            side.failure = str(error)
            if not self._running:
                raise
            return None
        side.description = ready.description
        side.imported, side.loaded, side.first = ready.imported, ready.loaded, ready.first
        if not self._running:
            self._expected = ready.outputs
            side.bits = "same"
        else:
            side.bits, side.reason = compare(self._expected, ready.outputs)
        self._running.append((side, ready))
        return ready

    def run(self, seconds: float, runs: int | None) -> None:
        """Time all sides in turns.

        There are LEAST turns at least. After them, turns end when bursts took `seconds` for each side, or, with `runs`,
        when every side has as many invokes.

        Raises:
            TflqError: The first side failed.
        """
        first, begun = self._running[0][0], perf_counter()
        while True:
            for side, ready in list(self._running):
                try:
                    times, side.peak = ready.burst(BURST)
                except TflqError as error:
                    side.failure = str(error)
                    self._running.remove((side, ready))
                    if side is first:
                        raise
                else:
                    side.turns.append(times)
            done = (perf_counter() - begun) / len(self._running)
            if runs is not None:
                done = min(sum(map(len, side.turns)) for side, _ in self._running)
            total = seconds if runs is None else runs
            if len(first.turns) >= LEAST and done >= total:
                return
            self._tell("timing", int(1000 * min(done / total, 1.0)) if total else 1000, 1000)


def compare(expected: Sequence[Mapping[str, Array]], got: Sequence[Mapping[str, Array]]) -> tuple[str, str]:
    """Return "same", "differs" or "not compared" for the outputs of all steps, and details."""
    steps = list(zip(expected, got, strict=True))
    pairs = [(one.get(name), other.get(name)) for one, other in steps for name in dict.fromkeys((*one, *other))]
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not both:
        return "not compared", "no output has a value on both sides"
    differing = sum(not difference(a, b).same for a, b in both)
    without = len(pairs) - len(both)
    details = f"{without} of {len(pairs)} outputs without a value on one side" if without else ""
    if differing:
        return "differs", f"{differing} of {len(both)} outputs differ" + (f"; {details}" if details else "")
    return ("not compared", details) if without else ("same", "")


#: Seconds that a process may take for one answer.
_TIMEOUT = 900.0
#: The share of a side's seconds that is spent on timing its operators.
_OF_OPERATORS = 0.5


@dataclass(eq=False)
class Benchmark:
    """A benchmark of a model: profiles of tflq and real runtimes, each in a process of its own, timed in turns.

    The options are those of `tflq.bench`. `run` fills `result`, which holds what is known even if it is interrupted.
    """

    model: Source | Model
    profiles: Sequence[str] = ("litert-ref",)
    against: Sequence[str] | None = None
    _: KW_ONLY
    inputs: Feed = None
    samples: int = 1
    seed: int = 0
    signature: str | None = None
    preparation: InputPreparation = PLAIN
    seconds: float = 2.0
    runs: int | None = None
    threads: int = 1
    python: str | None = None
    progress: Progress = silent
    result: Benched = field(init=False)

    def __post_init__(self) -> None:
        """Read the model and its inputs.

        Raises:
            FileAccessError, FormatError, ModelError: See `load`.
            UnknownNameError: There is no such profile, runtime or signature.
            InputError: The inputs do not fit.
        """
        if not self.profiles:
            raise OptionError("give at least one profile")
        for name in self.against or ():
            runtime_named(name)
        self._names = [str(name) for name in dict.fromkeys(self.profiles)]
        names = tuple(profile_by_name(name).name for name in self._names)
        self._subject = subject(self.model)
        self._parts = signed(self._subject.model, self.signature)
        self._feeds = make_feeds(self._parts, self.inputs, self.samples, self.seed, self.preparation)
        form = choose(is_wide=False)
        self.result = Benched(self._subject.facts, names, self.threads, "none" if form is None else form.name)

    def run(self) -> Benched:
        """Time everything and return the result.

        Raises:
            RuntimeMissing: A runtime that was asked for is not installed.
            TflqError: tflq refused the model or failed under the first profile.
        """
        self.result.interrupted = True
        notes = []
        with temporary_folder() as folder, _file_of(self._subject, Path(folder)) as path:
            for part in self._parts:
                steps = _steps_of(part, self._feeds)
                if not steps:
                    text = f"{part.name}: not timed, since no inputs are given for it"
                    notes.append(Statement(text, "not-timed", signature=part.name))
                    self.result.notes = tuple(notes)
                    continue
                limits = current_limits()
                job = TimedJob(path, steps, part.root.subgraph, Path(folder), (limits.memory, limits.work))
                case = BenchCase(part.name, replace(self._feeds.facts, samples=len(steps)))
                self.result.cases.append(case)
                self._race(part, job, case)
        self.result.interrupted = False
        return self.result

    def _race(self, part: Signed, job: TimedJob, case: BenchCase) -> None:
        with ExitStack() as stack:
            race = Race(stack, job, self.progress)
            base: Contestant | None = None
            for number, (name, shown) in enumerate(zip(self._names, self.result.profiles, strict=True)):
                side = BenchSide(shown, is_tflq=True)
                case.sides.append(side)
                runtime = tflq_contestant(name, _TIMEOUT)
                ready = race.enter(side, runtime)
                base = ready if number == 0 else base
            for name in RUNTIMES if self.against is None else dict.fromkeys(self.against):
                if name not in self.result.missing:
                    self._enter(race, name, case)
            race.run(self.seconds, self.runs)
            if base is not None:
                self.progress("timing operators", 0, 0)
                self._finish(part, base, case)

    def _enter(self, race: Race, name: str, case: BenchCase) -> None:
        """Start a real runtime; one that is not installed is named, unless it was asked for."""
        runtime = runtime_by_name(name, python=self.python, threads=self.threads, timeout=_TIMEOUT)
        assert isinstance(runtime, ProcessRuntime)  # it is one by name
        side = BenchSide(name, is_tflq=False)
        try:
            race.enter(side, runtime)
        except RuntimeMissing as error:
            if self.against is not None:
                raise
            self.result.missing = {**self.result.missing, name: error.reason}
        else:
            case.sides.append(side)

    def _finish(self, part: Signed, base: Contestant, case: BenchCase) -> None:
        """Time the operators of tflq."""
        times = base.operators(self.seconds * _OF_OPERATORS)
        ops = {op.index: op for op in view(part.model).ops}
        case.operators = tuple(
            OperatorTime(index, ops[index].name, seconds, macs_with_calls(ops[index])) for index, seconds in times
        )


def _steps_of(part: Signed, feeds: Feeds) -> list[Invocation]:
    """Return the steps of a signature, with all inputs: those that are carried over have their first values."""
    return [replace(fed, carried=()).step() for fed in feeds.steps if fed.part is part]


@contextmanager
def _file_of(given: Subject, folder: Path) -> Iterator[str]:
    """Yield the path of the model's file; one is written for a model that is none, or is in a package."""
    path = given.facts.path
    if path and os.path.isfile(path) and package(path) is None:
        yield os.path.abspath(path)
        return
    file = folder / "model.tflite"
    file.write_bytes(given.data)
    yield str(file)
