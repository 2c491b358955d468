"""Reports as cards: three lines in a console; in a notebook also a picture, and the whole report to unfold."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from markupsafe import Markup

from tflq.escaping import printable
from tflq.face.report.blocks import Brief, Report
from tflq.face.report.html.parts import text
from tflq.face.report.render.line import Line
from tflq.face.report.render.picture import COLOURS, picture
from tflq.face.report.render.text import lines_of

#: Longest line of a console and of a notebook, in characters, and largest number of lines that a notebook shows.
_WIDTH, _WHOLE, _LINES = 200, 2000, 400
#: Columns of tables are under each other, in any notebook.
_PRE = "overflow:auto;max-height:30em;white-space:pre;font-family:ui-monospace,Menlo,Consolas,monospace"


def card_text(report: Report) -> str:
    """Return three lines: the verdict, where to look first, and what to do next."""
    return "\n".join(_three(report, _WIDTH))


def _three(report: Report, width: int) -> list[str]:
    brief = next(block for block in report.blocks if isinstance(block, Brief))
    first = brief.verdict or (report.verdict.line if report.verdict else report.verb)
    return [printable(line, width) for line in (first, brief.where, brief.then)]


def card_html(report: Report) -> Markup:
    """Return self-contained markup: the three lines, a picture, and the report folded below. Every text is escaped."""
    style = report.verdict.style if report.verdict else ""
    colour = COLOURS[style] if style in ("good", "bad", "warning") else "inherit"
    first, second, third = map(text, _three(report, _WHOLE))
    head = Markup('<div><b style="color:{}">{}</b><br>{}<br><span style="opacity:.75">{}</span>')
    drawn = picture(report.blocks)
    return head.format(colour, first, second, third) + drawn + _details(lines_of(report)) + Markup("</div>")


def _details(report: Iterable[Line]) -> Markup:
    lines = [line.text for line in islice(report, _LINES + 1)]
    if len(lines) <= 1:
        return Markup("")
    if len(lines) > _LINES:
        lines[_LINES:] = ["..."]
    return Markup('<details><summary>the whole report</summary><pre style="{}">{}</pre></details>').format(
        _PRE, text("\n".join(lines))
    )
