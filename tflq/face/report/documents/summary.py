"""The document of `tflq inspect`, `lint` and `run` of several models."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from tflq.face.report.documents.error import ErrorDocument
from tflq.face.report.documents.shared import Printed


class SummaryDocument(Printed):
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
