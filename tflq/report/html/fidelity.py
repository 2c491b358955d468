"""Figures of a comparison for pages, by quantize and compare alike."""

from __future__ import annotations

import math
from typing import Any

from tflq.quantization.judge.comparison import DAMAGED, Comparison, Fidelity
from tflq.report.compare.lines import (
    COLUMNS,
    agreement_texts,
    flip_texts,
    quality_text,
    samples_text,
    tensor_row,
    where_texts,
)


def fidelity(found: Comparison) -> dict[str, Any]:
    """What templates/fidelity.html shows."""
    return {
        "quality": quality_text(found),
        "style": "good" if found.sqnr >= DAMAGED else "bad",
        "samples": samples_text(found.samples),
        "agreement": [text for text in agreement_texts(found.agreement) if not text.startswith("flips")],
        "flips": [] if found.agreement is None else flip_texts(found.agreement),
        "where": list(where_texts(found)),
        "bars": [_bar(tensor) for tensor in found.tensors],
        "limit": DAMAGED,
        "columns": COLUMNS,
        "rows": [tensor_row(tensor) for tensor in found.tensors],
        "outputs": [tensor_row(output) for output in found.outputs],
    }


def _bar(tensor: Fidelity) -> tuple[str, float, str]:
    """A bar of a chart: decibels above 0, those without noise as tall as 100."""
    ratio = min(max(tensor.sqnr, 0.0), 100.0)
    kind = "above" if tensor.sqnr < DAMAGED else "plain"
    return str(tensor.index), ratio if math.isfinite(ratio) else 0.0, kind
