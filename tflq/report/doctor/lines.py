"""An examination in lines."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.conformance.doctor import Examination
from tflq.report.numbers import counted
from tflq.report.render.line import Line
from tflq.report.render.text import table

#: Characters of a reason that are shown.
_REASON = 90


def doctor_lines(examination: Examination) -> Iterator[Line]:
    """The machine, the runtimes, the self-test."""
    versions = f"tflq {examination.tflq}, Python {examination.python}, NumPy {examination.numpy}"
    yield Line(f"{versions}, numba {examination.numba}, {examination.platform}")
    yield Line(f"integer products by: {examination.kernels}; machine code in {examination.machine_code}")
    rows = [(r.name, r.version or "not there", r.profile, r.reason[:_REASON]) for r in examination.runtimes]
    yield from table([("runtime", "<"), ("version", "<"), ("profile", "<"), ("", "<")], rows)
    if examination.failing:
        yield Line(f"self-test: {examination.failing}", "bad")
    elif not examination.tested:
        yield Line("self-test: left out, as inputs are drawn otherwise here", "warning")
    else:
        yield Line(f"self-test: {counted(examination.tested, 'case')} as recorded from LiteRT 2.3", "good")
