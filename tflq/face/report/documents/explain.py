"""The document of `tflq explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.comparison.verification.results import Mode
from tflq.diagnosis.causes import CauseVerdict
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.defect import DefectKind
from tflq.diagnosis.hypotheses import Kind
from tflq.face.report.documents.element import WorkedDocument
from tflq.face.report.documents.shared import (
    DifferenceDocument,
    DiscriminationDocument,
    JointCauseDocument,
    NearestDocument,
    Printed,
)

if TYPE_CHECKING:
    from typing import NotRequired


class ExplainDocument(Printed):
    """The output of `tflq explain --json`."""

    schema: Literal["tflq/explain/1"]
    model: str
    dump: str
    signature: NotRequired[
        Annotated[
            str | None,
            "of a model with several: the one that these findings are about, the gravest of those in the dump",
        ]
    ]
    signatures: NotRequired[
        Annotated[list[ExplainDocument], "the findings on every signature that the dump is of, if there are several"]
    ]
    verdict: Annotated[str, ("enum", ("same", "close", "differs", "incomplete", "nothing compared"))]
    first_divergent: Annotated[
        int | None, "the differing operator that is explained: the one whose difference alone changes the outputs most"
    ]
    noise: NotRequired[
        Annotated[list[int], "operators whose differences are no larger than those of another order of sums of floats"]
    ]
    unknown: list[str]
    operators: list[OperatorDocument]
    explanation: ExplanationDocument | None
    joint: Annotated[
        list[JointCauseDocument], "causes that each reproduce groups of differing operators, the widest first"
    ]
    nearest: Annotated[
        list[NearestDocument],
        "the nearest arithmetic for operators and types that no arithmetic of the grammar reproduces",
    ]
    discrimination: DiscriminationDocument | None
    profile: str
    mode: Mode
    next: list[str]
    element: WorkedDocument | None
    growth: GrowthDocument | None
    growths: list[ExplainGrowthDocument]
    sample: int | None
    faults: list[str]


class OperatorDocument(TypedDict):
    index: int
    op: str
    reason: str
    assumed: list[int]
    tensors: list[TensorDifferenceDocument]


class TensorDifferenceDocument(DifferenceDocument):
    index: int


class ExplanationDocument(TypedDict):
    index: int
    profile: str
    verdict: CauseVerdict
    certainty: Certainty
    doubts: list[str]
    evidence: EvidenceDocument
    places: list[str]
    matching: int
    elements: int
    defect: Annotated[DefectDocument | None, "a fault that is no arithmetic, of the result `tensor`"]
    exact: list[CauseDocument]
    alike: list[int]
    beyond: list[int]
    faults: list[FaultDocument]
    less_likely: list[CauseDocument]
    possible: list[CauseDocument]
    only_here: list[CauseDocument]
    partial: list[CauseDocument]


class EvidenceDocument(TypedDict):
    telling: int
    stimuli: int
    bits: int


class DefectDocument(TypedDict):
    kind: DefectKind
    name: str
    certainty: Certainty
    tensor: int
    place: Annotated[str, "where the wrong elements are"]
    cleared: Annotated[str, "what is right nevertheless"]
    tell: Annotated[str, "what would tell more"]


class CauseDocument(TypedDict):
    kind: Kind
    name: str
    matching: int
    elements: int
    also: list[str]
    not_at: list[int]
    also_at: list[int]
    proved: Annotated[bool, "all names are proved to be one function"]


class FaultDocument(TypedDict):
    name: str
    kind: str
    text: str


class GrowthDocument(TypedDict):
    operator: int
    reason: str
    spreads: list[SpreadDocument]
    choices: list[ChoiceDocument]


class SpreadDocument(TypedDict):
    index: int
    op: str
    elements: int
    differing: int
    largest: int
    unit: Annotated[str, ("enum", ("LSB", "ULP", ""))]
    mean: float


class ChoiceDocument(TypedDict):
    tensor: int
    rows: int
    flipped: int
    first: FlipDocument | None


class FlipDocument(TypedDict):
    row: int
    before: int
    after: int


class ExplainGrowthDocument(TypedDict):
    operator: int
    reason: str
    later: int
    effect: NotRequired[Annotated[float, "the largest change of a graph output, as a share of its largest magnitude"]]
    reached: int
    farthest: SpreadDocument | None
    flips: bool
