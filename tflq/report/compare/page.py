"""`tflq compare` as a page."""

from __future__ import annotations

import tflq
from tflq.api.subject import ModelFacts
from tflq.quantization.judge.comparison import Comparison
from tflq.report.compare.lines import next_step
from tflq.report.html.fidelity import fidelity
from tflq.report.html.page import rendered


def compare_page(first: ModelFacts, second: ModelFacts, found: Comparison) -> str:
    """The page, whole: nothing has to be loaded to show it."""
    return rendered(
        "compare.html",
        version=tflq.__version__,
        first=first,
        second=second,
        found=fidelity(found),
        next=next_step(first.path, second.path, found),
    )
