"""Documents of `tflq verify` and `record`.

The document of `tflq verify`.

The document of `tflq verify` of several models.

The document of `tflq record`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.comparison.goldens.manifest import InputsDocument, RuntimeDocument
from tflq.comparison.results import CompareMode, Status, Verdict
from tflq.face.report.documents.filling import SELF, Of
from tflq.face.report.documents.shared import (
    ChangeDocument,
    ConstantsDocument,
    DifferenceDocument,
    ErrorDocument,
    ModelDocument,
    PrintedDocument,
    PromiseDocument,
)

if TYPE_CHECKING:
    from typing import NotRequired


class VerifyDocument(PrintedDocument):
    """The output of `tflq verify --json`."""

    schema: Literal["tflq/verify/1"]
    verdict: Verdict
    model: ModelDocument
    profile: str
    against: RuntimeDocument
    golden: str | None
    mode: CompareMode
    inputs: InputsDocument
    elements: Annotated[ElementDocument, SELF]
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
        list[str],
        Of("missing"),
        "operators, outputs and subgraphs that were not compared, or not in all samples, with reasons",
    ]
    inside: Annotated[list[str], "operators of other subgraphs, compared only through the operators that run them"]
    not_written: Annotated[
        list[str], Of("unwritten"), "tensors that the runtime never writes, so that there is nothing to compare"
    ]


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


class VerifySummaryDocument(PrintedDocument):
    """The output of `tflq verify --json` of several models."""

    schema: Literal["tflq/verify-summary/1"]
    exit_code: Annotated[int, "the command's: that of the gravest outcome"]
    models: list[VerifiedModelDocument]


class VerifiedModelDocument(TypedDict):
    path: str
    verdict: Annotated[str, "of the comparison, or failed"]
    report: VerifyDocument | None
    error: ErrorDocument | None


class RecordDocument(PrintedDocument):
    """The output of `tflq record --json`."""

    schema: Literal["tflq/record/1"]
    model: Annotated[ModelDocument | None, "null for a result in Python"]
    golden: str
    runtime: RuntimeDocument
    inputs: InputsDocument
    samples: int
    tensors: Annotated[bool, "whether the golden holds all of the operators' results"]
    not_written: Annotated[
        list[NotWrittenDocument], "tensors that the runtime never writes, which the golden leaves out"
    ]
    notes: list[str]


class NotWrittenDocument(TypedDict):
    signature: str | None
    tensor: int
