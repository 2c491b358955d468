"""`tflq compare` as a page."""

from __future__ import annotations

from markupsafe import Markup

from tflq.api.subject import ModelFacts
from tflq.quantization.judge.comparison import Comparison
from tflq.report.compare.lines import lead_text, next_step
from tflq.report.graph.panels import by_operator
from tflq.report.graph.standard import ModelView, graph_section
from tflq.report.html.fidelity import (
    fidelity_colourings,
    fidelity_panels,
    outputs_section,
    quality_style,
    tensors_section,
)
from tflq.report.html.page import page
from tflq.report.html.parts import code, next_section, together


def compare_page(view: ModelView, first: ModelFacts, second: ModelFacts, comparison: Comparison) -> str:
    """The page of a comparison of `second` with `first`; `view` is of the first."""
    command = next_step(first.path, second.path, comparison)
    focus = comparison.first or comparison.worst
    return page(
        "compare",
        Markup('<span class="{}">{}</span>').format(quality_style(comparison), lead_text(comparison)),
        outputs_section(comparison),
        graph_section(
            view,
            fidelity_colourings(comparison),
            by_operator(fidelity_panels(comparison)),
            None if focus is None or focus.index < 0 else focus.index,
        ),
        tensors_section(comparison),
        next_section([command] if command else []),
        title=f"{lead_text(comparison)}: {second.path}",
        facts=[
            together(code(second.path), f"({second.size:,} bytes) against", code(first.path), f"({first.size:,} bytes)")
        ],
    )
