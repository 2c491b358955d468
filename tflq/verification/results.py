"""What a verification found, as frozen values. `tflq.report` formats them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from numpy.typing import NDArray

from tflq.inspection.constants import Constants
from tflq.inspection.difference import Difference, merged
from tflq.kernels.exactness import EXACT, Exactness


class Mode(str, Enum):
    """What operators are fed: the values observed ("isolated"), or the profile's own, end to end ("cumulative")."""

    ISOLATED = "isolated"
    CUMULATIVE = "cumulative"


class Status(str, Enum):
    """What is known about an operator or a tensor."""

    EXACT = "exact"
    CLOSE = "close"  # differs by no more than was measured of what is promised to be close
    DIFFERS = "differs"
    NOT_COMPARED = "not compared"


class Verdict(str, Enum):
    """What is known about the model."""

    SAME = "same"
    CLOSE = "close"  # not the same bits, but nothing differs by more than its promise says
    DIFFERS = "differs"
    INCOMPLETE = "incomplete"  # nothing differs, but something could not be compared
    NOTHING = "nothing compared"  # no element was compared with another


_WORST_FIRST = (Status.DIFFERS, Status.NOT_COMPARED, Status.CLOSE, Status.EXACT)
_VERDICTS = {
    Status.DIFFERS: Verdict.DIFFERS,
    Status.NOT_COMPARED: Verdict.INCOMPLETE,
    Status.CLOSE: Verdict.CLOSE,
    Status.EXACT: Verdict.SAME,
}


def verdict_of(statuses: Iterable[Status], elements: int) -> Verdict:
    """Return the worst of what is known; `elements` is the number of elements that were compared."""
    found = set(statuses)
    if not elements and Status.DIFFERS not in found:
        return Verdict.NOTHING
    return next((_VERDICTS[status] for status in _WORST_FIRST if status in found), Verdict.SAME)


def within(difference: Difference, promise: Exactness) -> bool:
    """Return whether floats differ by no more than was measured of results that are promised to be close."""
    known = promise.word == "close" and promise.ulp is not None and not difference.problem
    return known and difference.at_scale is not None and difference.at_scale <= (promise.ulp or 0)


def tolerable(difference: Difference, tolerance: int) -> bool:
    """Return whether every element that differs has a distance, of at most `tolerance` LSB or ULP."""
    measured = difference.above + difference.below == difference.differing
    return measured and not difference.problem and difference.largest <= tolerance


def status_of(difference: Difference, promise: Exactness) -> Status:
    """Exact, close as far as the promise goes, or differs."""
    if difference.same:
        return Status.EXACT
    return Status.CLOSE if within(difference, promise) else Status.DIFFERS


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """One operator. `differences` are got - expected by tensor index: the dump or runtime against the profile for
    `explain`, the profile against the runtime for `verify`.

    `promises` and `shapes` are those of the profile's results; `notes` say why one of them was not compared, `failure`
    why the operator was not run. `assumed` are inputs that were computed, not observed. `overwritten` are results (of
    the operator that reads it first: a graph input) whose memory had been used again when the dump was taken, and the
    later tensor that lay there: they are neither compared nor read. `began` are its variables as the sample before
    left them, where that explains more than what the model says.
    """

    index: int
    op: str
    differences: Mapping[int, Difference]
    promises: Mapping[int, Exactness] = field(default_factory=dict)
    shapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    failure: str = ""
    assumed: tuple[int, ...] = ()
    overwritten: Mapping[int, int] = field(default_factory=dict)
    constants: Constants | None = None
    began: Mapping[int, NDArray[Any]] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """The worst that is known of its results."""
        statuses = {status_of(d, self.promises.get(t, EXACT)) for t, d in self.differences.items()}
        order = (Status.DIFFERS, Status.CLOSE, Status.EXACT)
        return next((status for status in order if status in statuses), Status.NOT_COMPARED)

    @property
    def differs(self) -> bool:
        """True if any element does, by more than the profile's promise says."""
        return self.status == Status.DIFFERS

    @property
    def reason(self) -> str:
        """Why it was not compared, or not wholly; empty where it was."""
        if self.overwritten:
            return "; ".join(
                f"the dump holds tensor {o} in the place of tensor {t}" for t, o in self.overwritten.items()
            )
        return self.failure or ("" if self.differences else "the dump does not hold its results")


def over_samples(by_sample: Sequence[Sequence[Located]]) -> tuple[Located, ...]:
    """Return operators over all samples, given by sample."""
    return tuple(merged_samples(row) for row in zip(*by_sample, strict=True))


def merged_samples(operators: Sequence[Located]) -> Located:
    """Return one operator over all samples: differences merged, what was not compared only where no sample lets it be."""
    if len(operators) == 1:
        return operators[0]
    last = operators[-1]
    tensors = dict.fromkeys(t for o in operators for t in o.differences)
    return replace(
        last,
        differences={t: merged(o.differences[t] for o in operators if t in o.differences) for t in tensors},
        promises={t: p for o in operators for t, p in o.promises.items()},
        shapes={t: s for o in operators for t, s in o.shapes.items()},
        notes={t: note for o in reversed(operators) for t, note in o.notes.items() if t not in tensors},
        failure=next((o.failure for o in operators if o.failure), ""),
        assumed=tuple(dict.fromkeys(t for o in operators for t in o.assumed)),
        overwritten={t: other for o in operators for t, other in o.overwritten.items()},
        constants=next((o.constants for o in reversed(operators) if o.constants is not None), None),
    )


@dataclass(frozen=True, slots=True)
class TensorResult:
    """One tensor that an operator made or updated, or an output of the graph.

    `difference` is None if it was not compared in any sample. `reason` describes what was not compared: everything, or
    some of the samples. `tolerance` is what the caller allows, in LSB or ULP.
    `promise` is the operator's own where it was given the runtime's inputs, else that of everything the tensor is made
    of; None where no operator was run. `covered_by` is the operator whose comparison of the same values an output of
    the graph repeats, so that elements are counted once.
    """

    index: int
    name: str
    type: str
    shape: tuple[int, ...]
    difference: Difference | None
    reason: str = ""
    promise: Exactness | None = None
    tolerance: int | None = None
    covered_by: int | None = None

    @property
    def status(self) -> Status:
        """Exact, close, differs or not compared; a difference before anything that was not compared."""
        if self.difference is None:
            return Status.NOT_COMPARED
        if self.tolerance is not None and tolerable(self.difference, self.tolerance) and not self.difference.same:
            status = Status.CLOSE
        else:
            status = status_of(self.difference, self.promise or EXACT)
        return Status.NOT_COMPARED if self.reason and status != Status.DIFFERS else status

    @property
    def is_whole(self) -> bool:
        """Whether it was compared in all samples."""
        return self.difference is not None and not self.reason


@dataclass(frozen=True, slots=True, eq=False)
class OperatorResult:
    """One operator in execution order. `constants` are those it was prepared with."""

    index: int
    op: str
    version: int
    tensors: tuple[TensorResult, ...]
    reason: str = ""
    constants: Constants | None = None

    @property
    def status(self) -> Status:
        """The worst that is known of its tensors; not compared if it has none."""
        statuses = {t.status for t in self.tensors} | ({Status.NOT_COMPARED} if self.reason else set())
        return next((status for status in _WORST_FIRST if status in statuses), Status.NOT_COMPARED)

    @property
    def is_whole(self) -> bool:
        """Whether all of its results were compared, in all samples."""
        return bool(self.tensors) and not self.reason and all(tensor.is_whole for tensor in self.tensors)

    @property
    def gaps(self) -> str:
        """The reasons why some of it was not compared; empty if all was."""
        if self.is_whole:
            return ""
        reasons = dict.fromkeys([self.reason, *(tensor.reason for tensor in self.tensors)])
        return "; ".join(filter(None, reasons)) or "it has no results"

    @property
    def worst(self) -> TensorResult | None:
        """Its first differing tensor, or the first that is close."""
        for status in (Status.DIFFERS, Status.CLOSE):
            for tensor in self.tensors:
                if tensor.status == status:
                    return tensor
        return None

    @property
    def promise(self) -> Exactness | None:
        """What its results are promised to be; None where it was not run."""
        return next((t.promise for t in self.tensors if t.promise is not None), None)


@dataclass(frozen=True, slots=True, eq=False)
class InputFacts:
    """Where the inputs came from: a generator and its seed, or a source, and how many samples."""

    source: str
    seed: int | None
    samples: int
