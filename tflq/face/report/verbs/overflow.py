"""The report of `tflq inspect --overflow`: the width that each accumulator needs."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.comparison.inspection.overflow import Bound
from tflq.face.report.blocks import Report, Table, Verdict
from tflq.face.report.documents.overflow import OverflowDocument

_COLUMNS = (
    ("#", ">"),
    ("operator", "<"),
    ("lowest", ">"),
    ("highest", ">"),
    ("channel", ">"),
    ("bits", ">"),
    ("", "<"),
)


def overflow_report(bounds: Sequence[Bound], bits: int) -> Report:
    """Build the report: do accumulators of `bits` hold every sum, and the bound of each operator."""
    rows = [_row(bound, bits) for bound in bounds]
    return Report("inspect", [_verdict(bounds, bits), Table(_COLUMNS, rows)])


def _verdict(bounds: Sequence[Bound], bits: int) -> Verdict:
    beyond = [bound for bound in bounds if bound.bits > bits]
    if not beyond:
        text = f"{bits} bits hold every accumulator of {len(bounds)} operators, in any order of summation"
        return Verdict(text, "good")
    named = ", ".join(f"{_place(bound)} {bound.op}" for bound in beyond)
    return Verdict(f"{len(beyond)} of {len(bounds)} operators can overflow {bits} bits: {named}", "bad")


def _row(bound: Bound, bits: int) -> list[str]:
    numbers = (f"{bound.low:,}", f"{bound.high:,}", str(bound.channel), str(bound.bits))
    return [_place(bound), bound.op, *numbers, "overflows" if bound.bits > bits else ""]


def _place(bound: Bound) -> str:
    return f"{bound.signature}/{bound.index}" if bound.signature else str(bound.index)


def overflow_document(model: str, profile: str, bounds: Sequence[Bound], bits: int) -> OverflowDocument:
    """Return the document: `schemas/overflow.schema.json`."""
    return {
        "schema": "tflq/overflow/1",
        "model": model,
        "profile": profile,
        "bits": bits,
        "operators": [
            {
                "signature": bound.signature or None,
                "index": bound.index,
                "op": bound.op,
                "low": bound.low,
                "high": bound.high,
                "channel": bound.channel,
                "bits": bound.bits,
                "overflows": bound.bits > bits,
            }
            for bound in bounds
        ],
    }
