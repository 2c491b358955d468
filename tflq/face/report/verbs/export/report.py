"""The report of `tflq golden export`: the files written, and how to build them."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from tflq.comparison.verification.stage_values import StageValues
from tflq.face.report.blocks import Fact, Next, Report, Table, Verdict
from tflq.face.report.numbers import counted


def export_report(paths: Sequence[str]) -> Report:
    """Build the report of an exported header and test."""
    return Report("export", [Verdict(" ".join(paths), ""), Next([f"cc -DTFLQ_MAIN {quote(paths[1])} invoke.c"])])


def verilog_report(found: StageValues, paths: Sequence[str]) -> Report:
    """Build the report of an operator's stages: the cases of rounding that they cover, and those that they do not."""
    rows = [(case, f"{count:,}") for case, count in found.coverage.items()]
    none = [case for case, count in found.coverage.items() if not count]
    source = "codes as a runtime recorded them" if found.recorded else "no recording has these codes: computed"
    missing = f"not covered: {', '.join(none)}" if none else "every case is covered"
    text = f"{counted(found.accumulator.size, 'element')} of {found.op}, stage {found.stage}; {source}"
    return Report(
        "export",
        [Table([("case", "<"), ("elements", ">")], rows), Fact(missing), Fact(text), Verdict(" ".join(paths), "")],
    )
