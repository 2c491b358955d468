"""Reports as cards: three lines in a console, and in a notebook the whole report to unfold below them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from markupsafe import Markup

from tflq.escaping import printable
from tflq.face.report.blocks import Brief, Report
from tflq.face.report.html.parts import text
from tflq.face.report.render.line import Line
from tflq.face.report.render.text import lines_of

#: Longest line, in characters, and largest number of lines that a notebook shows.
_WIDTH, _LINES = 200, 400
#: Colours of a first line that can be read on light and on dark ground.
_COLOURS = {"good": "#2e9e5b", "bad": "#d9483b", "warning": "#b8860b"}


def card_text(report: Report) -> str:
    """Return three lines: the verdict, where to look first, and what to do next."""
    brief = next(block for block in report.blocks if isinstance(block, Brief))
    first = brief.verdict or (report.verdict.line if report.verdict else report.verb)
    return "\n".join(printable(line, _WIDTH) for line in (first, brief.where, brief.then))


def card_html(report: Report) -> Markup:
    """Return self-contained markup: the three lines, and the report folded below them. Every text is escaped."""
    colour = _COLOURS.get(report.verdict.style if report.verdict else "", "inherit")
    first, second, third = (text(line) for line in card_text(report).split("\n"))
    head = Markup('<div><b style="color:{}">{}</b><br>{}<br><span style="opacity:.75">{}</span>')
    return head.format(colour, first, second, third) + _details(lines_of(report)) + Markup("</div>")


def _details(report: Iterable[Line]) -> Markup:
    lines = [line.text for line in islice(report, _LINES + 1)]
    if len(lines) <= 1:
        return Markup("")
    if len(lines) > _LINES:
        lines[_LINES:] = ["..."]
    return Markup(
        '<details><summary>the whole report</summary><pre style="overflow:auto;max-height:30em">{}</pre></details>'
    ).format(text("\n".join(lines)))
