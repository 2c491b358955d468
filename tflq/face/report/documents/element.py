"""The document of `tflq explain --element` without a dump."""

from __future__ import annotations

from typing import Literal, TypedDict

from tflq.comparison.verification.manifest import InputsDocument
from tflq.face.report.documents.shared import Printed


class ElementDocument(Printed):
    """The output of `tflq explain --element --json` without a dump."""

    schema: Literal["tflq/element/1"]
    model: str
    inputs: InputsDocument
    element: WorkedDocument


class TraceDocument(TypedDict):
    op: str
    profile: str
    index: list[int]
    told: bool
    taps: list[TapDocument]
    outside: int
    steps: list[StepDocument]
    expected: float | bool | str


class WorkedDocument(TraceDocument):
    operator: int
    tensor: int
    got: float | bool | str | None
    cause: TraceDocument | None


class TapDocument(TypedDict):
    value: ReadDocument
    weight: ReadDocument | None
    product: float | bool | str


class ReadDocument(TypedDict):
    input: int
    place: list[int]
    code: float | bool | str
    zero_point: int


class StepDocument(TypedDict):
    name: str
    value: float | bool | str
    how: str
