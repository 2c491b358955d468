"""The document of `tflq learn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from tflq.devices.learning.findings import State
from tflq.face.report.documents.shared import Printed
from tflq.typing import Count

if TYPE_CHECKING:
    from typing import NotRequired


#: A key that Python has as a word.
_Is = TypedDict("_Is", {"is": str})


class LearnDocument(Printed):
    """The output of `tflq learn --json`."""

    schema: Literal["tflq/learn/1"]
    output: str
    seconds: float
    reason: str
    target: str
    version: str
    date: str
    tflq: str
    complete: bool
    questions: Count
    samples: Count
    elements: Count
    calls: Count
    refused: Count
    failed: Count
    operators: list[OperatorDocument]
    requantizers: list[RequantizerDocument]


class OperatorDocument(_Is):
    """The arithmetic of one operator, as far as it is known."""

    op: str
    types: str
    state: State
    questions: Count
    fresh: Count
    geometries: NotRequired[Annotated[Count, "models of other geometries, options and extreme sums that were asked"]]
    fresh_elements: Count
    refused: Count
    tried: Count
    coverage: NotRequired[Annotated[str, "sizes, channels and codes of the models that confirmed it"]]
    not_told_apart: NotRequired[list[str]]
    not_told_apart_count: NotRequired[Count]
    reproduced: NotRequired[MatchedDocument]
    note: NotRequired[str]


class RequantizerDocument(_Is):
    op: str
    type: str
    left: Count
    tried: Count
    rounds: Count
    accumulators: Count
    reason: str
    fields: dict[str, Any] | None
    formula: str
    element: list[ElementDocument]


class ElementDocument(TypedDict):
    name: str
    value: str


class MatchedDocument(TypedDict):
    same: Count
    elements: Count
