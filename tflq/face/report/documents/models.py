"""Documents of `tflq inspect`, `diff`, `extract` and `run`.

The document of `tflq inspect`.

The document of `tflq inspect` of a package of models.

The document of `tflq inspect --overflow`.

The document of `tflq diff`.

The document of `tflq extract`.

The document of `tflq run`.

The document of `tflq inspect`, `lint` and `run` of several models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from tflq.comparison.goldens.manifest import InputsDocument
from tflq.face.report.documents.filling import Of
from tflq.face.report.documents.shared import (
    ConstantsDocument,
    ErrorDocument,
    ModelDocument,
    PrintedDocument,
    PromiseDocument,
    TensorShapeDocument,
)

if TYPE_CHECKING:
    from typing import NotRequired


class GraphDocument(TypedDict):
    """A subgraph and what its operators were prepared with."""

    subgraph: Annotated[int, "index of the subgraph"]
    inputs: list[int]
    outputs: list[int]
    macs: Annotated[
        int, "multiply-accumulates of one inference; subgraphs that operators run count once for each operator"
    ]
    tensors: list[InspectedTensorDocument]
    operators: list[InspectedOperatorDocument]


class InspectDocument(PrintedDocument, GraphDocument):
    """The output of `tflq inspect --json`, with the graph of the first signature."""

    schema: Literal["tflq/inspect/1"]
    model: ModelDocument
    profile: str
    description: str
    subgraphs: int
    signatures: Annotated[
        list[InspectedSignatureDocument], Of("every"), "every signature; name is null if the model has only one"
    ]


class InspectedTensorDocument(TypedDict):
    index: int
    name: str
    type: str
    shape: list[int]
    signature: list[int] | None
    scale: list[float | str]
    zero_point: list[int]
    quantized_dimension: int
    kind: Annotated[str, ("enum", ("input", "output", "constant", "variable", "activation"))]
    bytes: int


class InspectedOperatorDocument(TypedDict):
    index: int
    op: str
    version: int
    inputs: Annotated[list[int], "tensor indices, -1 where absent"]
    outputs: list[int]
    options: dict[str, Any]
    macs: int
    constants: ConstantsDocument | None
    promise: PromiseDocument | None
    reason: Annotated[str | None, "why the profile refuses it"]


class InspectedSignatureDocument(GraphDocument):
    name: str | None
    inner: list[InnerDocument]


class InnerDocument(GraphDocument):
    name: str
    callers: list[str]


class PackageDocument(PrintedDocument):
    """The output of `tflq inspect PACKAGE --json`."""

    schema: Literal["tflq/package/1"]
    path: str | None
    format: str
    size: int
    entries: dict[str, str]
    sections: list[SectionDocument]


class SectionDocument(TypedDict):
    number: int
    name: str
    kind: str
    size: int
    items: dict[str, str]
    model: InspectDocument | None


class OverflowDocument(PrintedDocument):
    """The output of `tflq inspect --overflow --json`."""

    schema: Literal["tflq/overflow/1"]
    model: str
    profile: str
    bits: int
    operators: list[OverflowDocumentRow]


class OverflowDocumentRow(TypedDict):
    signature: NotRequired[Annotated[str | None, "of a model with several"]]
    index: int
    op: str
    low: int
    high: int
    channel: int
    bits: int
    overflows: bool


class DiffDocument(PrintedDocument):
    """The output of `tflq diff --json`."""

    schema: Literal["tflq/diff/1"]
    first: ModelDocument
    second: ModelDocument
    changes: list[ModelChangeDocument]


class ModelChangeDocument(TypedDict):
    first: int | None
    second: int | None
    op: str
    what: str
    before: str
    after: str
    signature: Annotated[str, "of a model with several; empty for others"]


class ExtractDocument(PrintedDocument):
    """The output of `tflq extract --json`."""

    schema: Literal["tflq/extract/1"]
    model: ModelDocument
    file: str
    operators: list[int]
    inputs: list[TensorShapeDocument]
    outputs: list[TensorShapeDocument]


class RunDocument(PrintedDocument):
    """The output of `tflq run --json`."""

    schema: Literal["tflq/run/1"]
    model: ModelDocument
    profile: str
    inputs: InputsDocument
    file: str | None
    arrays: Annotated[list[ArrayDocument], "entries of the file, or what they would be"]


class ArrayDocument(TypedDict):
    name: str
    dtype: str
    shape: list[int]
    promise: PromiseDocument | None


class SummaryDocument(PrintedDocument):
    """The output of verbs that take several models, with --json."""

    schema: Literal["tflq/summary/1"]
    verb: Annotated[str, ("enum", ("bench", "compare", "inspect", "lint", "profiles effects", "run"))]
    exit_code: Annotated[int, "the command's: that of the gravest outcome"]
    models: list[JudgedModelDocument]


class JudgedModelDocument(TypedDict):
    path: str
    outcome: Annotated[str, "in a word, as the first column of the table"]
    report: Annotated[dict[str, Any] | None, "as the verb's own schema has it"]
    error: ErrorDocument | None
