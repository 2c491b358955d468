"""The document of `tflq prove --check`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.face.report.documents.shared import ModelDocument, Printed


class CertificateCheckDocument(Printed):
    """The output of `tflq prove --check --json`: whether a certificate holds for a model."""

    schema: Literal["tflq/certificate-check/1"]
    model: ModelDocument
    verdict: Annotated[str, ("enum", ("holds", "void"))]
    problems: Annotated[list[str], "statements that are not true of this model"]
    certificate: CertificateDocument


class CertificateDocument(TypedDict):
    verdict: str
    profiles: list[str]
