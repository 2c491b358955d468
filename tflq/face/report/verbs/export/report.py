"""The report of `tflq golden export`: the files written, and how to build them."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from tflq.face.report.blocks import Next, Report, Verdict


def export_report(paths: Sequence[str]) -> Report:
    """Build the report of an exported header and test."""
    return Report("export", [Verdict(" ".join(paths), ""), Next([f"cc -DTFLQ_MAIN {quote(paths[1])} invoke.c"])])
