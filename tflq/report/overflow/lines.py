"""The widths that accumulators need in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.inspection.overflow import Bound
from tflq.report.render.line import Line
from tflq.report.render.text import table

_COLUMNS = (
    ("#", ">"),
    ("operator", "<"),
    ("lowest", ">"),
    ("highest", ">"),
    ("channel", ">"),
    ("bits", ">"),
    ("", "<"),
)


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
