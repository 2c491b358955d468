"""An examination in lines."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.conformance.doctor import Examination
from tflq.report.layout import Line, counted, table

#: Characters of a reason that are shown.
_REASON = 90


def doctor_lines(found: Examination) -> Iterator[Line]:
    """The machine, the runtimes, the self-test."""
    yield Line(f"tflq {found.tflq}, Python {found.python}, NumPy {found.numpy}, numba {found.numba}, {found.platform}")
    yield Line(f"integer products by: {found.kernels}; machine code in {found.machine_code}")
    rows = [(r.name, r.version or "not there", r.profile, r.reason[:_REASON]) for r in found.runtimes]
    yield from table([("runtime", "<"), ("version", "<"), ("profile", "<"), ("", "<")], rows)
    if found.failing:
        yield Line(f"self-test: {found.failing}", "bad")
    elif not found.tested:
        yield Line("self-test: left out, as inputs are drawn otherwise here", "warning")
    else:
        yield Line(f"self-test: {counted(found.tested, 'case')} as recorded from LiteRT 2.3", "good")
