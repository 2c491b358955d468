"""The document of `tflq record`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.comparison.verification.manifest import InputsDocument, RuntimeDocument
from tflq.face.report.documents.shared import ModelDocument, Printed


class RecordDocument(Printed):
    """The output of `tflq record --json`."""

    schema: Literal["tflq/record/1"]
    model: ModelDocument
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
