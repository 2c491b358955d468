"""Node data for Model Explorer: a value and a colour for every operator.

The form is `GraphNodeData` of ai-edge-model-explorer 0.1.34 (`node_data_builder.py`): results by node id, which for the
operators of a `.tflite` file is their index, and thresholds, each the upper bound of a colour.
"""

from __future__ import annotations

import math
from typing import Any

from tflq.face.report.graph.colouring import Colouring

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
