"""The document of `tflq quantize` of a model of several signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from tflq.comparison.verification.manifest import RuntimeDocument
from tflq.face.report.documents.shared import ModelDocument, Printed
from tflq.typing import Sha256

if TYPE_CHECKING:
    from typing import NotRequired


class QuantizeWeightsDocument(Printed):
    """The output of `tflq quantize --json` of a decoder."""

    schema: Literal["tflq/quantize-weights/1"]
    model: ModelDocument
    output: ModelDocument
    calibration: str
    recipe: dict[str, Any]
    recipe_digest: Sha256
    ranking: Annotated[list[RankingDocument], "the first was taken", ("minItems", 1)]
    layers: list[LayerDocument]
    steps: dict[str, int]
    windows: int
    check: CheckDocument


class RankingDocument(TypedDict):
    method: MethodDocument
    divergence: float
    noise: Annotated[float | None, "dB of the logits; null if they are equal"]
    agreement: float
    steps: int


class MethodDocument(TypedDict):
    scaling: str
    gptq: bool


class LayerDocument(TypedDict):
    name: str
    role: str
    shape: list[int]
    uses: int
    form: str


class CheckDocument(TypedDict):
    verdict: Annotated[str, ("enum", ("same", "close", "differs", "incomplete", "nothing compared"))] | None
    reason: str | None
    profile: NotRequired[str]
    runtime: NotRequired[RuntimeDocument]
    compared: NotRequired[int]
    differing: NotRequired[int]
