"""The document of `tflq reduce`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.face.report.documents.shared import ModelDocument, Printed, TensorShapeDocument

if TYPE_CHECKING:
    from typing import NotRequired


class ReduceDocument(Printed):
    """The output of `tflq reduce --json`."""

    schema: Literal["tflq/reduce/1"]
    model: ModelDocument
    files: Annotated[FileDocument, ("minProperties", 1)]
    operators: list[int]
    inputs: list[TensorShapeDocument]
    outputs: list[TensorShapeDocument]
    differing: int | None
    next: str


class FileDocument(TypedDict):
    model: NotRequired[str]
    golden: NotRequired[str]
    expected: NotRequired[str]
    bundle: NotRequired[str]
