"""A result in three lines, and in a notebook the same three with the whole report to unfold below them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup

from tflq.escaping import printable
from tflq.report.html.parts import text
from tflq.report.render.line import Line

#: Characters of a line, and lines of a report, beyond which a notebook is not told more.
_WIDTH, _LINES = 200, 400
#: Colours of a first line that can be read on light and on dark ground.
_COLOURS = {"good": "#2e9e5b", "bad": "#d9483b", "warning": "#b8860b"}


@dataclass(frozen=True, slots=True)
class Card:
    """`what` it is or what the verdict is, `where` to look first, what to do `then`; `style` is that of the first line.

    `report` gives the lines of the whole report.
    """

    what: str
    where: str
    then: str
    style: str = "strong"
    report: Callable[[], Iterable[Line]] | None = None

    @property
    def text(self) -> str:
        """Three lines."""
        return "\n".join(printable(line, _WIDTH) for line in (self.what, self.where, self.then))

    @property
    def html(self) -> Markup:
        """Markup that needs nothing else, every text escaped."""
        colour = _COLOURS.get(self.style, "inherit")
        first, second, third = (text(line) for line in self.text.split("\n"))
        head = Markup('<div><b style="color:{}">{}</b><br>{}<br><span style="opacity:.75">{}</span>').format(
            colour, first, second, third
        )
        return head + self._details() + Markup("</div>")

    def _details(self) -> Markup:
        lines = [] if self.report is None else [line.text for line in islice(self.report(), _LINES + 1)]
        if not lines:
            return Markup("")
        if len(lines) > _LINES:
            lines[_LINES:] = ["..."]
        return Markup(
            '<details><summary>the whole report</summary><pre style="overflow:auto;max-height:30em">{}</pre></details>'
        ).format(text("\n".join(lines)))
