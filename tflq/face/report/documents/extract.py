"""The document of `tflq extract`."""

from __future__ import annotations

from typing import Literal

from tflq.face.report.documents.shared import ModelDocument, Printed, TensorShapeDocument


class ExtractDocument(Printed):
    """The output of `tflq extract --json`."""

    schema: Literal["tflq/extract/1"]
    model: ModelDocument
    file: str
    operators: list[int]
    inputs: list[TensorShapeDocument]
    outputs: list[TensorShapeDocument]
