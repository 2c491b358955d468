"""The document of `tflq inspect` of a package of models."""

from __future__ import annotations

from typing import Literal, TypedDict

from tflq.face.report.documents.inspect import InspectDocument
from tflq.face.report.documents.shared import Printed


class PackageDocument(Printed):
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
