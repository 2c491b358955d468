"""What a verification found, as frozen values. `tflq.report` formats them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tflq.runtimes import Description
    from tflq.verification.comparing import Difference
    from tflq.verification.constants import Constants


class Status(str, Enum):
    """What is known about an operator or a tensor."""

    EXACT = "exact"
    DIFFERS = "differs"
    NOT_COMPARED = "not compared"


class Verdict(str, Enum):
    """What is known about the model."""

    SAME = "same"
    DIFFERS = "differs"
    INCOMPLETE = "incomplete"  # nothing differs, but something could not be compared


@dataclass(frozen=True, slots=True)
class TensorResult:
    """One tensor that an operator made or updated. `difference` is None where `reason` says why not."""

    index: int
    name: str
    type: str
    shape: tuple[int, ...]
    difference: Difference | None
    reason: str = ""

    @property
    def status(self) -> Status:
        """Exact, differs or not compared."""
        if self.difference is None:
            return Status.NOT_COMPARED
        return Status.EXACT if self.difference.same else Status.DIFFERS


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
        found = {t.status for t in self.tensors}
        if Status.DIFFERS in found:
            return Status.DIFFERS
        return Status.NOT_COMPARED if self.reason or Status.NOT_COMPARED in found else Status.EXACT

    @property
    def worst(self) -> TensorResult | None:
        """Its first differing tensor."""
        return next((t for t in self.tensors if t.status == Status.DIFFERS), None)


@dataclass(frozen=True, slots=True, eq=False)
class ModelFacts:
    """The model: where it came from ("" for bytes), and its file's size and SHA-256."""

    path: str
    size: int
    sha256: str


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
        """Same, differs, or incomplete."""
        found = {o.status for o in self.operators} | {t.status for t in self.outputs}
        if Status.DIFFERS in found:
            return Verdict.DIFFERS
        if Status.NOT_COMPARED in found:
            return Verdict.INCOMPLETE
        return Verdict.SAME

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
