"""The report of `tflq doctor --warm`: how much was compiled for the models, and where it is kept."""

from __future__ import annotations

from typing import cast

from tflq.engine.api.warming import Warmed
from tflq.face.report.blocks import Report, Verdict
from tflq.face.report.documents.shared import fields_of
from tflq.face.report.documents.warm import WarmDocument
from tflq.face.report.numbers import counted


def warm_report(warmed: Warmed) -> Report:
    """Build the report."""
    compiled = counted(warmed.functions, "function")
    text = f"{compiled} compiled in {warmed.seconds:.1f} s, kept in {warmed.folder}"
    if not warmed.functions:
        text = f"everything is compiled already, in {warmed.folder}"
    return Report("warm", [Verdict(text, "good", subject=counted(warmed.models, "model"))])


def warm_document(warmed: Warmed) -> WarmDocument:
    """Return the document: `schemas/warm.schema.json`."""
    return cast(WarmDocument, fields_of(warmed, schema="tflq/warm/1"))
