"""Reports as HTML pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from markupsafe import Markup

from tflq.face.report import blocks, pictures
from tflq.face.report.blocks import Block, Fact, Graph, Inline, OnPage, Report, Verdict
from tflq.face.report.graph.standard import ModelView, graph_section, memory_section
from tflq.face.report.html import parts
from tflq.face.report.html.matrix import matrix_table
from tflq.face.report.html.page import page

#: Styles of text that have another name in the style sheet.
_CLASSES = {"faint": "soft", "strong": ""}


def page_of(report: Report, view: ModelView | None = None) -> str:
    """Return the page of a report. `view` is the model that it draws, if it draws one."""
    built = list(_built(report.blocks, view))
    verdict = next((block for block in built if isinstance(block, Verdict)), Verdict(report.headline))
    facts = [_fact(block.text, block.style) for block in built if isinstance(block, Fact)]
    return page(
        report.verb,
        parts.text(verdict.headline or verdict.text),
        *(_part(block, view) for block in built if block is not verdict and not isinstance(block, Fact)),
        title=report.title,
        word=verdict.word,
        tone=_CLASSES.get(verdict.style, verdict.style),
        facts=[parts.text(report.about), *facts] if report.about else facts,
    )


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
        case blocks.Verdict(style=style):
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
        case blocks.Table(columns, rows, fold=fold, styles=styles) if rows:
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
        case pictures.Matrix(rows=rows) if rows:
            return parts.section("picture", block.title, matrix_table(block))
        case blocks.Figures(drawings):
            return parts.side_by_side(*drawings)
        case blocks.Graph() if view is not None:
            return graph_section(view, block.colourings, _panel(block, view), block.focus)
        case blocks.Memory() if view is not None:
            return memory_section(view.model)
    return Markup("")


def _panel(block: Graph, view: ModelView) -> Callable[[int], Markup]:
    panels = block.panels
    if panels is None:
        return lambda _index: Markup("")
    if callable(panels):
        return lambda index: parts_of(panels(index), view)
    return lambda index: parts_of(panels.get(index, ()), view)
