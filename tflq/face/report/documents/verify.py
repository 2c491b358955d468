"""The document of `tflq verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.comparison.verification.manifest import InputsDocument, RuntimeDocument
from tflq.comparison.verification.results import Mode, Status, Verdict
from tflq.face.report.documents.shared import (
    ChangeDocument,
    ConstantsDocument,
    DifferenceDocument,
    ModelDocument,
    Printed,
    PromiseDocument,
)

if TYPE_CHECKING:
    from typing import NotRequired


class VerifyDocument(Printed):
    """The output of `tflq verify --json`."""

    schema: Literal["tflq/verify/1"]
    verdict: Verdict
    model: ModelDocument
    profile: str
    against: RuntimeDocument
    golden: str | None
    mode: Mode
    inputs: InputsDocument
    elements: ElementDocument
    coverage: Annotated[CoverageDocument, "what was compared, of how much"]
    first_divergent: Annotated[int | None, "index of the first operator that differs"]
    first_divergent_signature: NotRequired[Annotated[str | None, "its signature, if the model has several"]]
    signatures: NotRequired[
        Annotated[dict[str, SignatureDocument], "the verdict on each signature of a model that has several"]
    ]
    operators: list[OperatorDocument]
    outputs: Annotated[list[TensorDocument], "the graph's outputs, in their order"]
    explained: NotRequired[
        Annotated[
            ExplainedDocument | None,
            "the runtime's own profile, if it reproduces every bit and the compared one does not",
        ]
    ]
    notes: list[str]


class ElementDocument(TypedDict):
    compared: int
    differing: int


class CoverageDocument(TypedDict):
    """The parts that were compared, of how much."""

    operators: ShareDocument
    outputs: ShareDocument
    not_compared: Annotated[
        list[str], "operators, outputs and subgraphs that were not compared, or not in all samples, with reasons"
    ]
    inside: Annotated[list[str], "operators of other subgraphs, compared only through the operators that run them"]
    not_written: Annotated[list[str], "tensors that the runtime never writes, so that there is nothing to compare"]


class ShareDocument(TypedDict):
    """How many were wholly compared, and of how many."""

    compared: int
    of: int


class SignatureDocument(TypedDict):
    verdict: Verdict
    compared: int
    differing: int


class OperatorDocument(TypedDict):
    signature: NotRequired[Annotated[str | None, "of a model with several"]]
    index: int
    op: str
    version: int
    status: Status
    promise: PromiseDocument | None
    reason: str | None
    tensors: list[TensorDocument]
    constants: ConstantsDocument | None


class TensorDocument(TypedDict):
    signature: NotRequired[Annotated[str | None, "of a model with several"]]
    index: int
    name: str
    type: str
    shape: list[int]
    status: Status
    promise: PromiseDocument | None
    reason: str | None
    covered_by: Annotated[int | None, "of an output: the operator whose comparison of the same values this repeats"]
    difference: DifferenceDocument | None


class ExplainedDocument(TypedDict):
    """The runtime's own profile, if it reproduces every bit and the compared one does not."""

    profile: str
    changes: Annotated[
        list[ChangeDocument],
        "what releases changed in the operators that differ; before and after are formulas of the two profiles",
    ]
