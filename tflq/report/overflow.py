"""How wide accumulators have to be: lines, and a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tflq.report.layout import Line, table
from tflq.verification.overflow import Bound

_COLUMNS = (
    ("#", ">"), ("operator", "<"), ("lowest", ">"), ("highest", ">"), ("channel", ">"), ("bits", ">"), ("", "<"),
)  # fmt: skip


def overflow_lines(bounds: Sequence[Bound], bits: int) -> Iterator[Line]:
    """Whether accumulators of `bits` hold every sum, then the bound of each operator."""
    beyond = [bound for bound in bounds if bound.bits > bits]
    if beyond:
        named = ", ".join(f"{bound.index} {bound.op}" for bound in beyond)
        yield Line(f"{len(beyond)} of {len(bounds)} operators can overflow {bits} bits: {named}", "bad")
    else:
        yield Line(f"{bits} bits hold every accumulator of {len(bounds)} operators, in any order of summation", "good")
    yield from table(_COLUMNS, ([*_row(bound), "overflows" if bound.bits > bits else ""] for bound in bounds))


def _row(bound: Bound) -> list[str]:
    numbers = (f"{bound.low:,}", f"{bound.high:,}", str(bound.channel), str(bound.bits))
    return [str(bound.index), bound.op, *numbers]


def overflow_document(model: str, profile: str, bounds: Sequence[Bound], bits: int) -> dict[str, Any]:
    """The same as a document: `schemas/overflow.schema.json`."""
    return {
        "schema": "tflq/overflow/1",
        "model": model,
        "profile": profile,
        "bits": bits,
        "operators": [
            {
                "index": bound.index, "op": bound.op, "low": bound.low, "high": bound.high, "channel": bound.channel,
                "bits": bound.bits, "overflows": bound.bits > bits,
            }
            for bound in bounds
        ],
    }  # fmt: skip
