"""The document of `tflq run`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.comparison.verification.manifest import InputsDocument
from tflq.face.report.documents.shared import ModelDocument, Printed, PromiseDocument


class RunDocument(Printed):
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
