"""The document of `tflq diff`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.face.report.documents.shared import ModelDocument, Printed


class DiffDocument(Printed):
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
