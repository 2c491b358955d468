"""Findings about a device, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tflq.devices.learning.asking import DeviceAnswer, Tally
from tflq.devices.learning.forms import Form
from tflq.devices.learning.questions import LearnSubject
from tflq.devices.learning.space import Requantized
from tflq.devices.suites.draft import feed
from tflq.texts import Tabular, display_by


class LearnState(str, Enum):
    """How far an operator is known."""

    LEARNED = "learned"  # one form reproduces every bit, those of fresh questions included
    PARTLY = "partly learned"  # the same for the geometries that the profile names; it refuses others
    TABLE = "table"  # its 256 results for the scales asked, and for no others
    UNKNOWN = "unknown"  # no form reproduces every bit
    UNSTABLE = "unstable"  # equal questions had different answers
    REFUSED = "refused"  # the device does not support it
    FAILED = "failed"  # the device crashed, hung or left malformed outputs
    OPEN = "not finished"  # learning ended before


#: States in which a profile executes the operator.
EXECUTED = (LearnState.LEARNED, LearnState.PARTLY, LearnState.TABLE)


@dataclass(frozen=True, slots=True)
class LearnedCoverage:
    """The range of what confirmed a form: the largest extents, and the lowest and highest codes that occurred.

    `channels` is the largest last extent of an operand or output, `extent` the largest of the others.
    """

    models: int
    elements: int
    channels: int
    extent: int
    inputs: tuple[int, int]
    outputs: tuple[int, int]

    def __str__(self) -> str:
        """Return the numbers in a sentence."""
        ends = f"input codes {self.inputs[0]} to {self.inputs[1]}, output codes {self.outputs[0]} to {self.outputs[1]}"
        return f"{self.models} models of up to {self.channels} channels and {self.extent} columns or rows; {ends}"


def coverage_of(answers: Sequence[DeviceAnswer]) -> LearnedCoverage | None:
    """Return the coverage of some answers; None without codes in inputs or outputs."""
    specs = [t.shape for a in answers for t in (*feed(a.draft.inputs), *a.draft.outputs) if t.shape]
    inputs = [v for a in answers for sample in a.draft.samples for v in sample if v.dtype.kind in "iu" and v.size]
    outputs = [v for a in answers for sample in a.outputs for v in sample if v.dtype.kind in "iu" and v.size]
    if not inputs or not outputs:
        return None
    return LearnedCoverage(
        len(answers),
        sum(answer.elements for answer in answers),
        max(shape[-1] for shape in specs),
        max((extent for shape in specs for extent in shape[:-1]), default=1),
        (int(min(v.min() for v in inputs)), int(max(v.max() for v in inputs))),
        (int(min(v.min() for v in outputs)), int(max(v.max() for v in outputs))),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The knowledge of one operator.

    `form` reproduces every answer; `also` are other forms that do, and that no question tried parts from it. `asked`
    and `fresh` count models with answers before and after the form was chosen, `fresh_elements` the outputs of the
    fresh ones, `fresh_exact` those that the form reproduces. `covered` counts models of other geometries, options and
    extreme sums, which count as fresh, too; `coverage` is their range. `tried` counts forms. `nearest` is the best form
    of an unknown operator and `share` the elements that it reproduces, of all. `note` is one sentence on what is not
    covered.
    """

    subject: LearnSubject
    state: LearnState = LearnState.OPEN
    form: Form | None = None
    also: tuple[Form, ...] = ()
    asked: int = 0
    fresh: int = 0
    fresh_elements: int = 0
    fresh_exact: int = 0
    covered: int = 0
    coverage: LearnedCoverage | None = None
    refused: int = 0
    tried: int = 0
    tables: tuple[Mapping[str, Any], ...] = ()
    nearest: Form | None = None
    share: tuple[int, int] = (0, 0)
    note: str = ""
    alike: Mapping[str, Sequence[str]] = field(default_factory=dict)  # profiles that compute as the one that is named

    @property
    def plain(self) -> tuple[str, ...]:
        """Profiles that reproduce every answer without any change."""
        left = [form for form in (self.form, *self.also) if form is not None and not form.kind and not form.more]
        return tuple(name for form in left for name in self.alike.get(form.like, [form.like]))

    @property
    def is_executed(self) -> bool:
        """True if a profile can compute the operator."""
        return self.state in EXECUTED

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of a profile's file; none if the operator is not known."""
        if self.state is LearnState.TABLE:
            return [{"op": self.subject.op, "types": self.subject.types, "tables": [dict(t) for t in self.tables]}]
        if self.state in (LearnState.LEARNED, LearnState.PARTLY) and self.form is not None:
            return self.form.rows(self.subject)
        return []


@display_by("learn:learn_card", "learn_document", "operators")
@dataclass(frozen=True, slots=True, eq=False)
class LearnFindings(Tabular):
    """All that was learned of a device. `is_partial` is true if learning was interrupted; `reason` is why."""

    target: str
    version: str
    date: str
    operators: tuple[Learned, ...]
    requantizers: tuple[Requantized, ...]
    tally: Tally
    seconds: float = 0.0
    is_partial: bool = False
    reason: str = ""
    sources: Sequence[str] = field(default_factory=tuple)

    def count(self, state: LearnState) -> int:
        """Return the number of operators in a state."""
        return sum(one.state is state for one in self.operators)
