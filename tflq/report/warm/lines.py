"""What was compiled, in lines."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.api.warming import Warmed
from tflq.report.numbers import counted
from tflq.report.render.line import Line


def warm_lines(warmed: Warmed) -> Iterator[Line]:
    """How much was compiled for how many models, and where it is."""
    models = counted(warmed.models, "model")
    if warmed.functions:
        compiled = counted(warmed.functions, "function")
        yield Line(f"{models}: {compiled} compiled in {warmed.seconds:.1f} s, kept in {warmed.folder}", "good")
    else:
        yield Line(f"{models}: everything is compiled already, in {warmed.folder}", "good")
