"""Parts that several documents have, and errors.

Parts that several documents have: the model, the runtime, differences, constants, promises, joint causes.

The document of any command that fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from tflq.engine.api.files import ModelFacts
from tflq.face.report.documents.filling import NONE, IfAny, Of
from tflq.texts import FactDocument
from tflq.typing import Pair, Sha256

if TYPE_CHECKING:
    from typing import NotRequired


class PrintedDocument(TypedDict, total=False):
    """A document that a command prints."""

    facts: Annotated[list[FactDocument], NONE, "every note and warning with its values"]


class ModelDocument(TypedDict):
    """The model's file; path is null for bytes."""

    path: str | None
    size: int
    sha256: Sha256
    converter: NotRequired[
        Annotated[str, IfAny("converter"), "the converter that made the float model of this file, with its version"]
    ]


class PromiseDocument(TypedDict):
    """The promise of a profile about a result; null where none was computed."""

    word: Annotated[str, ("enum", ("exact", "exact on the same libm", "close"))]
    ulp: Annotated[
        int | None, "the largest difference measured, in ULP of the tensor's largest magnitude; null where none was"
    ]
    reason: str | None


class DifferenceDocument(TypedDict):
    """Null where the tensor was not compared; distances are got - expected."""

    elements: int
    differing: int
    unit: Annotated[str, ("enum", ("LSB", "ULP", ""))]
    largest: int
    above: int
    below: int
    bias: Annotated[float, "mean distance of the differing elements"]
    histogram: Annotated[list[Pair[int]], "pairs of distance and count; distances are clipped to -16 .. 16"]
    first: FirstDocument | None
    problem: str | None
    at_scale: Annotated[
        int | None, "floats: the largest difference in ULP of the largest magnitude expected, rounded up"
    ]
    absolute: Annotated[float | None, "floats: the largest absolute difference"]
    relative: Annotated[
        float | str | None, "floats: the largest difference against the expected value; Infinity against 0"
    ]
    kinds: Annotated[
        dict[str, int], "floats: how many elements got or lost a NaN or an infinity, or have a zero of another sign"
    ]


class FirstDocument(TypedDict):
    """The first differing element in C order."""

    sample: int
    index: list[int]
    expected: Annotated[float | str | bool, "the runtime's value"]
    got: Annotated[float | str | bool, "the profile's value"]


class BriefDifferenceDocument(TypedDict):
    elements: int
    differing: int
    unit: Annotated[str, ("enum", ("LSB", "ULP", ""))]
    largest: int
    problem: str | None
    first: FirstDocument | None


class StageDocument(TypedDict):
    """An output stage that the operator was prepared with."""

    field: str
    kind: str
    real: Annotated[list[float | str], "real multipliers: one, or one per channel"]
    mantissa: Annotated[list[int], "Q31; empty for stages that multiply in floating point"]
    shift: Annotated[list[int], "> 0 is left"]
    zero_point: int | None
    low: int | None
    high: int | None


class ChangeDocument(TypedDict):
    op: str
    types: str
    last: str
    first: str
    before: str
    after: str


class ConstantsDocument(TypedDict):
    stages: list[StageDocument]
    scalars: dict[str, float | str]


class JointCauseDocument(TypedDict):
    name: str
    others: Annotated[list[str], "causes that reproduce as much"]
    certainty: Annotated[
        Annotated[str, ("enum", ("certain", "likely"))] | None, "null: it was not compared with every case"
    ]
    groups: int
    cases: Annotated[int, "differing operators that were compared with the cause, and that it reproduces"]
    failing: Annotated[int, "differing operators of these groups"]
    operators: list[str]
    first: Annotated[str, "the one to look at"]
    kernels: Annotated[
        list[ReproducedDocument], "its evidence by operator and types, if it was compared with every case"
    ]


class DiscriminationDocument(TypedDict):
    operator: Annotated[int | None, Of("index")]
    inputs_of: Annotated[str, ("enum", ("model", "operator"))]
    samples: int
    causes: list[str]
    groups: list[list[int]]


class MadeDocument(TypedDict):
    seed: int | None
    version: str


class ReproducedDocument(TypedDict):
    op: str
    types: str
    reproduced: int
    cases: int
    failing: Annotated[int, "reproduced ones that differ from the profile"]
    all_failing: int
    bits: Annotated[int, "bits of evidence"]
    needed: Annotated[int, "bits that a certain cause needs"]


class NearestDocument(ReproducedDocument):
    name: str


class TensorShapeDocument(TypedDict):
    name: str
    type: str
    shape: list[int]


class OperatorNameDocument(TypedDict):
    index: int
    op: str


def converter_texts(facts: ModelFacts) -> list[str]:
    """Return which converter made the float model, if one did."""
    return [f"{facts.path} converted by {facts.converter}"] if facts.converter else []


class ErrorDocument(TypedDict):
    """The output of any verb with --json if it fails."""

    schema: Literal["tflq/error/1"]
    kind: Annotated[str, "the class of the error"]
    message: str
    exit_code: Annotated[int, ("enum", (2, 3, 4, 70, 130))]
    facts: Annotated[dict[str, Any], "the fields of the error"]
