"""The document of `tflq verify` of several models."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.face.report.documents.error import ErrorDocument
from tflq.face.report.documents.shared import Printed
from tflq.face.report.documents.verify import VerifyDocument


class VerifySummaryDocument(Printed):
    """The output of `tflq verify --json` of several models."""

    schema: Literal["tflq/verify-summary/1"]
    exit_code: Annotated[int, "the command's: that of the gravest outcome"]
    models: list[VerifiedModelDocument]


class VerifiedModelDocument(TypedDict):
    path: str
    verdict: Annotated[str, "of the comparison, or failed"]
    report: VerifyDocument | None
    error: ErrorDocument | None
