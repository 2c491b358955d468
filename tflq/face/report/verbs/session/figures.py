"""Figures of two sessions: signal to noise by step and layer, and of the logits."""

from __future__ import annotations

import math

from markupsafe import Markup

from tflq.comparison.sessions.results import Band, SessionComparison
from tflq.face.report.html.charts import line
from tflq.face.report.html.parts import figure, text

#: Least dB of each shade: differences in the last bits of floats, up to noise that changes decisions.
_SHADES = ((120.0, "hot1"), (80.0, "hot2"), (40.0, "hot3"), (20.0, "hot4"), (-math.inf, "hot5"))
_CELL = Markup('<td class="{}" title="{}">{}</td>')
_TABLE = Markup(
    '<div class="scroll"><table class="matrix"><thead><tr><th>{}</th>{}</tr></thead><tbody>{}</tbody></table></div>'
)


def band_map(found: SessionComparison) -> Markup:
    """Return a table of steps (columns) by bands of operators (rows), in shades of their least dB."""
    steps = [step for step in found.steps if step.bands]
    if not steps:
        return Markup("")
    names = tuple(dict.fromkeys(band.name for step in steps for band in step.bands))
    head = Markup("").join(
        Markup('<th title="{}">{}</th>').format(text(f"{step.signature} at position {step.position}"), step.number)
        for step in steps
    )
    rows = []
    for name in names:
        cells = [_cell(next((band for band in step.bands if band.name == name), None)) for step in steps]
        rows.append(Markup("<tr><th scope=row>{}</th>{}</tr>").format(text(name), Markup("").join(cells)))
    caption = "least signal to noise of the operators' results in dB; · all bits agree; blank: no such operator"
    return figure(_TABLE.format("step", head, Markup("").join(rows)), caption)


def _cell(band: Band | None) -> Markup:
    if band is None or not band.compared:
        return _CELL.format("clear", "", "")
    if not band.differing:
        return _CELL.format("clear", text(f"{band.compared} results agree"), "·")
    shade = next(name for least, name in _SHADES if band.noise >= least)
    shown = f"{band.noise:.0f}" if math.isfinite(band.noise) else "-∞"
    return _CELL.format(shade, text(f"{band.differing} of {band.compared} results differ"), shown)


def logits_figure(found: SessionComparison) -> Markup:
    """Return the KL divergence by step; the caption names the steps in which the tokens differ."""
    scored = [(step.number, step.logits) for step in found.steps if step.logits is not None]
    largest = max((logits.divergence for _, logits in scored), default=0.0)
    if not largest:
        return Markup("")
    drawn = line(
        [logits.divergence for _, logits in scored],
        "KL divergence of the next token by step",
        f"{largest:.3g} nats",
        (f"step {scored[0][0]}", f"step {scored[-1][0]}"),
        "",
    )
    changed = [str(number) for number, logits in scored if not logits.agree]
    steps = f"; the token changes in step {', '.join(changed)}" if changed else ""
    return figure(drawn, f"KL divergence of the next token by step{steps}")
