"""What a verification found, as frozen values. `tflq.report` formats them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tflq.api.subject import ModelFacts
from tflq.kernels.exactness import EXACT, Exactness

if TYPE_CHECKING:
    from tflq.inspection.constants import Constants
    from tflq.inspection.difference import Difference
    from tflq.runtimes import Description


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


_WORST_FIRST = (Status.DIFFERS, Status.NOT_COMPARED, Status.CLOSE, Status.EXACT)
_VERDICTS = {
    Status.DIFFERS: Verdict.DIFFERS,
    Status.NOT_COMPARED: Verdict.INCOMPLETE,
    Status.CLOSE: Verdict.CLOSE,
    Status.EXACT: Verdict.SAME,
}


def within(difference: Difference, promise: Exactness) -> bool:
    """Whether floats differ by no more than was measured of results that are promised to be close."""
    known = promise.word == "close" and promise.ulp is not None and not difference.problem
    return known and difference.at_scale is not None and difference.at_scale <= (promise.ulp or 0)


def tolerable(difference: Difference, tolerance: int) -> bool:
    """Whether every element that differs has a distance, of at most `tolerance` LSB or ULP."""
    measured = difference.above + difference.below == difference.differing
    return measured and not difference.problem and difference.largest <= tolerance


@dataclass(frozen=True, slots=True)
class TensorResult:
    """One tensor that an operator made or updated. `difference` is None where `reason` says why not.

    `tolerance` is what the caller allows, in LSB or ULP.
    `promise` is the operator's own where it was given the runtime's inputs, else that of everything the tensor is made
    of; None where no operator was run.
    """

    index: int
    name: str
    type: str
    shape: tuple[int, ...]
    difference: Difference | None
    reason: str = ""
    promise: Exactness | None = None
    tolerance: int | None = None

    @property
    def status(self) -> Status:
        """Exact, close, differs or not compared."""
        if self.difference is None:
            return Status.NOT_COMPARED
        if self.difference.same:
            return Status.EXACT
        if self.tolerance is not None and tolerable(self.difference, self.tolerance):
            return Status.CLOSE
        return Status.CLOSE if within(self.difference, self.promise or EXACT) else Status.DIFFERS


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
        """The worst that is known of its tensors."""
        found = {t.status for t in self.tensors} | ({Status.NOT_COMPARED} if self.reason else set())
        return next((status for status in _WORST_FIRST if status in found), Status.EXACT)

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


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The outcome of one verification.

    `operators` are in execution order. `outputs` are the graph's outputs, end to end: in cumulative mode they are
    the operators' own results, in isolated mode they are not computed. `golden` is the path of the golden file, if any.
    """

    model: ModelFacts
    profile: str
    against: Description | Mapping[str, object]
    golden: str
    mode: str
    inputs: InputFacts
    operators: tuple[OperatorResult, ...]
    outputs: tuple[TensorResult, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Same, close, differs, or incomplete."""
        found = {o.status for o in self.operators} | {t.status for t in self.outputs}
        return next((_VERDICTS[status] for status in _WORST_FIRST if status in found), Verdict.SAME)

    @property
    def first_divergent(self) -> OperatorResult | None:
        """The first operator, in execution order, that differs."""
        return next((o for o in self.operators if o.status == Status.DIFFERS), None)

    @property
    def compared(self) -> int:
        """Elements compared, over all samples."""
        return sum(t.difference.elements for t in self._tensors() if t.difference is not None)

    @property
    def differing(self) -> int:
        """Elements that differ, over all samples."""
        return sum(t.difference.differing for t in self._tensors() if t.difference is not None)

    def _tensors(self) -> tuple[TensorResult, ...]:
        return tuple(t for o in self.operators for t in o.tensors) or self.outputs
