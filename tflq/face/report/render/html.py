"""Reports as HTML pages, and as cards for a notebook.

Reports as HTML pages.

The picture of a card: a small drawing of a report that needs no style sheet, as notebooks strip them.

Reports as cards: three lines in a console; in a notebook also a picture, and the whole report to unfold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from markupsafe import Markup

from tflq.face.report import blocks, matrices
from tflq.face.report.blocks import Block, Brief, FactLine, Graph, Headline, Inline, OnPage, Report, plain
from tflq.face.report.graph.drawing import ModelView, graph_section, memory_section
from tflq.face.report.html import page as parts
from tflq.face.report.html.differences import matrix_table
from tflq.face.report.html.page import page, text
from tflq.face.report.render.text import StyledLine, lines_of
from tflq.face.report.wording import counted
from tflq.texts import printable

#: Styles of text that have another name in the style sheet.
_CLASSES = {"faint": "soft", "strong": ""}


def page_of(report: Report, view: ModelView | None = None) -> str:
    """Return the page of a report. `view` is the model that it draws, if it draws one."""
    built = list(_built(report.blocks, view))
    verdict = next((block for block in built if isinstance(block, Headline)), Headline(report.headline))
    facts = [_fact(block.text, block.style) for block in built if isinstance(block, FactLine)]
    return page(
        report.verb,
        parts.text(verdict.headline or verdict.text),
        *(_part(block, view) for block in built if block is not verdict and not isinstance(block, FactLine)),
        title=_title(report, verdict),
        word=verdict.word,
        tone=_CLASSES.get(verdict.style, verdict.style),
        facts=[parts.text(report.about), *facts] if report.about else facts,
    )


def _title(report: Report, verdict: Headline) -> str:
    """Return the title of the window: the verdict, then what the page is about."""
    lead = f"{verdict.word} {plain(verdict.headline or verdict.text)}".strip()
    return report.title if lead in report.title else f"{lead} · {report.title}".removesuffix(" · ")


def _built(given: Iterable[Block], view: ModelView | None) -> Iterator[Block]:
    """Yield the blocks of a page, those that are built from its model included."""
    for block in given:
        if not isinstance(block, OnPage):
            yield block
        elif view is not None:
            yield from _built(block.build(view), view)


def _fact(text: Inline, style: str) -> Markup:
    return parts.dotted(text, style) if style in ("good", "bad", "warning") else parts.text(text)


def parts_of(given: Iterable[Block], view: ModelView | None = None) -> Markup:
    """Return blocks as markup, one after the other."""
    return parts.together(*(_part(block, view) for block in _built(given, view)))


def _part(block: Block, view: ModelView | None) -> Markup:
    """Return a block as markup; nothing for blocks of other renderers, and for pictures of a model without one."""
    match block:
        case blocks.Headline(style=style):
            return parts.paragraph(block.line, _CLASSES.get(style, style))
        case blocks.Text(text, style):
            return parts.paragraph(parts.text(text), _CLASSES.get(style, style))
        case blocks.Note(text):
            return parts.paragraph(parts.dotted(text, "warning"))
        case blocks.Verbatim(text):
            return parts.commands([text])
        case blocks.Listing(values):
            return parts.listing(values)
        case blocks.Pairs(pairs):
            return parts.facts(pairs)
        case blocks.TableBlock(columns, rows, fold=fold, styles=styles) if rows:
            drawn = parts.table(columns, rows, styles)
            return parts.details(fold, drawn) if fold else drawn
        case blocks.Next(commands):
            return parts.section("next", "Next", parts.commands(commands))
        case blocks.Section(name, title, inside):
            return parts.section(name, title, parts_of(inside, view))
        case blocks.Fold(summary, inside, opened):
            body = parts_of(inside, view)
            return parts.details(summary, body, opened=opened) if body else body
        case blocks.Bars(title, unit, rows, full, key):
            drawn = parts.bars(title, unit, rows, full=full)
            return parts.figure(drawn, parts.key(key[0]) + parts.text(key[1])) if key else drawn
        case matrices.MatrixBlock(rows=rows) if rows:
            return parts.section("picture", block.title, matrix_table(block))
        case blocks.Figures(drawings):
            return parts.side_by_side(*drawings)
        case blocks.Graph() if view is not None:
            return graph_section(view, block.colourings, _panel(block, view), block.focus)
        case blocks.MemoryChart() if view is not None:
            return memory_section(view.model)
    return Markup("")


def _panel(block: Graph, view: ModelView) -> Callable[[int], Markup]:
    panels = block.panels
    if panels is None:
        return lambda _index: Markup("")
    if callable(panels):
        return lambda index: parts_of(panels(index), view)
    return lambda index: parts_of(panels.get(index, ()), view)


#: Colours that can be seen on light and on dark ground, by style.
COLOURS = {
    "good": "#00883a",
    "bad": "#e03131",
    "warning": "#b06000",
    "unknown": "#8a8f96",
    "plain": "#4a7bd0",
    "above": "#d9743b",
    **{f"hot{k}": colour for k, colour in enumerate(("#e3b8a4", "#dd9b7d", "#d98258", "#d56a3b", "#c9502a"), 1)},
}
_OTHER = "#8a8f96"
#: Squares, bars, rows and columns that are drawn.
_SQUARES, _BARS, _ROWS, _COLUMNS = 400, 12, 16, 40


def picture(given: Iterable[Block]) -> Markup:
    """Return a drawing of the first block that can be drawn; nothing without one."""
    for block in _inside(given):
        match block:
            case matrices.Strip(styles=styles) if styles:
                return _strip(block)
            case matrices.MatrixBlock(rows=rows) if rows:
                return _matrix(block)
            case blocks.Bars(rows=rows) if rows:
                return _bars(block)
    return Markup("")


def _inside(given: Iterable[Block]) -> Iterator[Block]:
    for block in given:
        yield block
        if isinstance(block, blocks.Section | blocks.Fold):
            yield from _inside(block.blocks)


def _square(style: str) -> Markup:
    colour = COLOURS.get(style, _OTHER)
    return Markup(
        '<span style="display:inline-block;width:.9em;height:.9em;margin:1px;border-radius:2px;background:{}"></span>'
    ).format(colour)


def _strip(block: matrices.Strip) -> Markup:
    squares = Markup("").join(map(_square, block.styles[:_SQUARES]))
    return _frame(squares, block.title)


def _matrix(block: matrices.MatrixBlock) -> Markup:
    rows = [
        Markup('<div style="white-space:nowrap">{} <span style="font-size:.85em">{}</span></div>').format(
            Markup("").join(_square(mark.style) for mark in row.marks[:_COLUMNS]), text(_name(row.names))
        )
        for row in block.rows[:_ROWS]
    ]
    key = ", ".join(f"{mark.text} {meaning}" for mark, meaning in block.key)
    return _frame(Markup("").join(rows), f"{block.title}; {counted(len(block.columns), 'column')} of operators. {key}")


def _name(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} profiles: {names[0]}, {names[1]}" + " ..." * (len(names) > 2)


def _bars(block: blocks.Bars) -> Markup:
    largest = max([block.full, *(bar.value for bar in block.rows if math.isfinite(bar.value))]) or 1.0
    line = Markup(
        '<div style="display:flex;gap:.6em;align-items:center">'
        '<span style="flex:0 0 {:.1f}em;overflow-wrap:anywhere">{}</span>'
        '<span style="flex:0 0 {:.1f}em;height:.75em;border-radius:2px;background:{}"></span>'
        '<span style="font-size:.85em">{}</span></div>'
    )
    wide = min(max(len(plain(bar.label)) for bar in block.rows[:_BARS]) * 0.55, 24.0)
    rows = [
        line.format(
            wide,
            text(plain(bar.label)),
            18 * min(max(bar.value, 0.0) / largest, 1.0) if math.isfinite(bar.value) else 18.0,
            COLOURS.get(bar.style, _OTHER),
            text(bar.text),
        )
        for bar in block.rows[:_BARS]
    ]
    return _frame(Markup("").join(rows), f"{block.unit} by {block.title}")


def _frame(drawing: Markup, title: str) -> Markup:
    frame = Markup('<div style="margin:.4em 0;max-width:46em;overflow:auto">{}{}</div>')
    return frame.format(drawing, Markup('<div style="opacity:.75;font-size:.85em">{}</div>').format(text(title)))


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


def _details(report: Iterable[StyledLine]) -> Markup:
    lines = [line.text for line in islice(report, _LINES + 1)]
    if len(lines) <= 1:
        return Markup("")
    if len(lines) > _LINES:
        lines[_LINES:] = ["..."]
    return Markup('<details><summary>the whole report</summary><pre style="{}">{}</pre></details>').format(
        _PRE, text("\n".join(lines))
    )
