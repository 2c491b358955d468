"""`tflq view`: the page about what is given, and node data for Model Explorer.

Node data for Model Explorer: a value and a colour for every operator.

The form is `GraphNodeData` of ai-edge-model-explorer 0.1.34 (`node_data_builder.py`): results by node id, which for the
operators of a `.tflite` file is their index, and thresholds, each the upper bound of a colour.

The page about a model, or about a model and a dump, a recording or another model; and its colourings.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflq.comparison.goldens.stored import model_of
from tflq.comparison.inspection.model_diff import diff
from tflq.comparison.verification.verifying import verify
from tflq.diagnosis.findings import investigate
from tflq.diagnosis.localization import only_dumps
from tflq.engine.api.files import subject
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.face.report.graph.colouring import Colouring
from tflq.face.report.graph.drawing import facts_of, view_of
from tflq.face.report.render.html import page_of
from tflq.face.report.verbs.compare import compare_report, fidelity_colourings
from tflq.face.report.verbs.diff import diff_colourings, diff_report
from tflq.face.report.verbs.explain import explain_colourings, explain_report
from tflq.face.report.verbs.inspect import inspect_report
from tflq.face.report.verbs.verify import verify_colourings, verify_report
from tflq.verbs.compare import compare

#: The light colours of the pages' shades.
COLOURS = {
    "clear": "#ffffff",
    "good": "#b9e2c8",
    "warning": "#f3dcae",
    "bad": "#f3b9b3",
    "unknown": "#d5d9dd",
    **dict(zip((f"hot{n}" for n in range(1, 6)), ("#fbe3da", "#f5c6b4", "#eda58b", "#e28061", "#c84614"), strict=True)),
    **dict(
        zip((f"cool{n}" for n in range(1, 6)), ("#dbe9f8", "#b9d4f1", "#93bbe8", "#6a9fdd", "#1e5ac8"), strict=True)
    ),
}
#: Shades that dark text cannot be read on.
_DARK = ("hot5", "cool5")


def overlay(colouring: Colouring) -> dict[str, Any]:
    """Return node data of one colouring: its numbers, or the words in the boxes if it has none."""
    thresholds: dict[str, float] = {}
    results = {}
    for operator, mark in colouring.marks.items():
        value = mark.value if mark.value is not None and math.isfinite(mark.value) else mark.text
        results[str(operator)] = {"value": value, **_colours(mark.shade)}
        if isinstance(value, float):
            thresholds[mark.shade] = max(value, thresholds.get(mark.shade, value))
    return {
        "name": f"tflq: {colouring.name}",
        "results": results,
        "thresholds": [
            {"value": bound, **_colours(shade)} for shade, bound in sorted(thresholds.items(), key=lambda item: item[1])
        ],
    }


def _colours(shade: str) -> dict[str, str]:
    background = COLOURS.get(shade, COLOURS["clear"])
    return {"bgColor": background, "textColor": "#ffffff" if shade in _DARK else "#1c2024"}


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A page and its colourings, in the order in which it offers them."""

    page: str
    colourings: Sequence[Colouring]


def picture(
    model: str,
    other: str | None = None,
    profile: str = "litert-ref",
    data: str | None = None,
    signature: str | None = None,
) -> Picture:
    """Make the page about a model.

    Args:
        model: Path of a `.tflite` file.
        other: A recording of `tflq record` (as `verify` shows it), a dump (as `explain` does), or another model (as
            `compare` does on `data`, as `diff` does without). None for the model alone, as `inspect` does.
        profile: Whose arithmetic is computed.
        data: Inputs for both models.
        signature: The signature to draw; None for the first.

    Raises:
        TflqError: As the verbs do.
    """
    if other is None:
        view = view_of(model, profile, signature)
        return Picture(page_of(inspect_report(view.inspection), view), facts_of(view.inspection))
    if other.endswith(".tflite"):
        return _two_models(model, other, profile, data, signature)
    view = view_of(model, profile, signature)
    if _is_recording(other):
        report = verify(model, Path(other), profile=profile, signature=signature)
        return Picture(page_of(verify_report(report), view), verify_colourings(report) or facts_of(view.inspection))
    part, dumps = only_dumps(subject(model).model, other, None, None, signature)
    findings = investigate(part.model, dumps, by_name(profile))
    if part.root.subgraph != view.inspection.subgraph:
        view = view_of(model, profile, part.name)
    return Picture(page_of(explain_report(findings, model, other), view), explain_colourings(findings))


def _two_models(model: str, other: str, profile: str, data: str | None, signature: str | None) -> Picture:
    view = view_of(model, profile, signature)
    if data is None:
        differences = diff(model, other, profile, signature)
        return Picture(page_of(diff_report(differences), view), diff_colourings(view, differences))
    comparison = compare(model, other, data, signature=signature)
    page = page_of(compare_report(subject(model).facts, subject(other).facts, comparison), view)
    return Picture(page, fidelity_colourings(comparison))


def _is_recording(path: str) -> bool:
    """Return True if a file is a recording that names its model."""
    try:
        return os.path.isfile(path) and bool(model_of(path))
    except TflqError:
        return False
