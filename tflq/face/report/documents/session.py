"""The document of `tflq session`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.face.report.documents.shared import DifferenceDocument, ModelDocument, OperatorNameDocument, Printed
from tflq.typing import Pair


class SessionDocument(Printed):
    """The output of `tflq session --json`."""

    schema: Literal["tflq/session/1"]
    verdict: Annotated[str, ("enum", ("same", "differs", "compared", "incomplete", "nothing compared"))]
    models: list[ModelDocument]
    between: Pair[str]
    free: bool
    prompt: int
    tokens: list[list[int]]
    agreement: AgreementDocument
    perplexities: list[float] | None
    parted: int | None
    first: FirstStepDocument | None
    steps: list[StepDocument]
    notes: list[str]


class AgreementDocument(TypedDict):
    agree: int
    of: int


class FirstStepDocument(TypedDict):
    step: int
    signature: str
    position: int
    operator: OperatorNameDocument | None
    band: str | None
    output: str | None
    slot: list[int]


class StepDocument(TypedDict):
    number: int
    signature: str
    position: int
    tokens: list[int]
    outputs: dict[str, DifferenceDocument]
    noise: dict[str, float | str | None]
    logits: LogitDocument | None
    bands: list[BandDocument]


class LogitDocument(TypedDict):
    noise: Annotated[float | str | None, 'dB; null if all bits agree, "-inf" without a finite ratio']
    divergence: float | str | None
    choices: list[int]
    losses: list[float] | None


class BandDocument(TypedDict):
    name: str
    compared: int
    differing: int
    noise: Annotated[float | str | None, 'dB; null if all bits agree, "-inf" without a finite ratio']
