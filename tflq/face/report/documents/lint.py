"""The document of `tflq lint`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.diagnosis.linting.findings import Level
from tflq.face.report.documents.shared import ModelDocument, Printed


class LintDocument(Printed):
    """The output of `tflq lint --json`."""

    schema: Literal["tflq/lint/1"]
    model: ModelDocument
    target: Annotated[str, ("enum", ("litert", "tflm", "cmsis-nn"))] | None
    findings: list[FindingDocument]
    fixed: FixedDocument | None


class FindingDocument(TypedDict):
    rule: Annotated[str, 'its id, as "bias-scale"']
    level: Level
    summary: str
    subgraph: int
    operator: Annotated[int, "index in its subgraph"]
    op: str
    tensor: Annotated[int | None, "index in its subgraph"]
    name: Annotated[str, "of the tensor"]
    required: str
    found: str
    fixable: Annotated[bool, "whether --fix corrects it"]


class FixedDocument(TypedDict):
    file: str
    corrected: int
