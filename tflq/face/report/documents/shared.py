"""Parts that several documents have: the model, the runtime, differences, constants, promises, joint causes."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast

from tflq.comparison.inspection.constants import Constants
from tflq.comparison.inspection.difference import Difference
from tflq.comparison.verification.manifest import RuntimeDocument
from tflq.engine.api.subject import ModelFacts
from tflq.engine.kernels.exactness import Exactness
from tflq.statements import FactDocument
from tflq.typing import Pair, Sha256

if TYPE_CHECKING:
    from typing import NotRequired


class Printed(TypedDict, total=False):
    """A document that a command prints."""

    facts: Annotated[list[FactDocument], "every note and warning with its values"]


class ModelDocument(TypedDict):
    """The model's file; path is null for bytes."""

    path: str | None
    size: int
    sha256: Sha256
    converter: NotRequired[Annotated[str, "the converter that made the float model of this file, with its version"]]


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
    operator: int | None
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


def fields_of(value: Any, **more: Any) -> Any:
    """Return the fields of a dataclass as an entry of a document, with `more` beside or in place of them."""
    return {**asdict(value), **more}


def model_document(facts: ModelFacts) -> ModelDocument:
    """Return where the model came from, its size in bytes and its SHA-256."""
    return {"path": facts.path or None, "size": facts.size, "sha256": facts.sha256}


def facts_document(facts: ModelFacts) -> ModelDocument:
    """Return the same, with an empty path for a model that is in no file, and the converter that made the model."""
    document: ModelDocument = {"path": facts.path, "size": facts.size, "sha256": facts.sha256}
    if facts.converter:
        document["converter"] = facts.converter
    return document


def converter_texts(facts: ModelFacts) -> list[str]:
    """Return which converter made the float model, if one did."""
    return [f"{facts.path} converted by {facts.converter}"] if facts.converter else []


def runtime_document(runtime: Any) -> RuntimeDocument:
    """Return the facts of a runtime: of a description, or of a golden file."""
    known: Any = asdict(runtime) if is_dataclass(runtime) and not isinstance(runtime, type) else runtime
    return cast(RuntimeDocument, dict(known))


def promise_document(promise: Exactness | None) -> PromiseDocument | None:
    """Return the promise of a result; None if nothing was run."""
    if promise is None:
        return None
    return {"word": promise.word, "ulp": promise.ulp, "reason": promise.reason or None}


def constants_document(constants: Constants | None) -> ConstantsDocument | None:
    """Return the output stages, zero points and limits that an operator was prepared with."""
    if constants is None:
        return None
    return {"stages": [fields_of(stage) for stage in constants.stages], "scalars": dict(constants.scalars)}


def difference_document(difference: Difference) -> DifferenceDocument:
    """Return a difference with every field; `kinds` by name."""
    return cast(
        DifferenceDocument, fields_of(difference, problem=difference.problem or None, kinds=dict(difference.kinds))
    )


def brief_difference_document(difference: Difference | None) -> BriefDifferenceDocument | None:
    """Return the counts of a difference and its first element; None without one."""
    if difference is None:
        return None
    return {
        "elements": difference.elements,
        "differing": difference.differing,
        "unit": difference.unit,
        "largest": difference.largest,
        "problem": difference.problem or None,
        "first": None if difference.first is None else fields_of(difference.first),
    }
