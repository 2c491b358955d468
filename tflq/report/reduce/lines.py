"""A reduced difference in lines."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.diagnosis.reduction import Reduced
from tflq.inspection.difference import Difference, difference
from tflq.report.extract.lines import extract_lines
from tflq.report.render.line import Line


def reduce_lines(reduced: Reduced, output: str, next_command: str) -> Iterator[Line]:
    """What is left, where the outputs differ if that is known, and the line that shows it again."""
    yield from extract_lines(reduced.model, reduced.operators, f"{output}.tflite", "")
    yield from map(Line, remaining_texts(reduced))
    yield Line(f"Next: {next_command}", "strong")


def remaining_texts(reduced: Reduced) -> Iterator[str]:
    """How each output of the reduced model differs, where that is known."""
    for d in differences_of(reduced):
        if d.first is not None:
            yield (
                f"{d.differing:,} of {d.elements:,} elements differ, the first at {list(d.first.index)}: "
                f"profile {d.first.expected}, dump {d.first.got}"
            )


def differences_of(reduced: Reduced) -> list[Difference]:
    """Return how each output of the reduced model differs."""
    return [difference(e, g) for e, g in zip(reduced.expected, reduced.got or (), strict=False)]
