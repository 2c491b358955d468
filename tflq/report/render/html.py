"""Reports as HTML pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import singledispatch

from markupsafe import Markup

from tflq.report.blocks import (
    Bars,
    Block,
    Fact,
    Figures,
    Fold,
    Graph,
    Inline,
    Listing,
    Memory,
    Next,
    Note,
    OnPage,
    Pairs,
    Report,
    Section,
    Table,
    Text,
    Verbatim,
    Verdict,
)
from tflq.report.graph.standard import ModelView, graph_section, memory_section
from tflq.report.html import parts
from tflq.report.html.page import page

#: Styles of text that have another name in the style sheet.
_CLASSES = {"faint": "soft", "strong": ""}


def page_of(report: Report, view: ModelView | None = None) -> str:
    """Return the page of a report. `view` is the model that it draws, if it draws one."""
    blocks = list(_built(report.blocks, view))
    verdict = next((block for block in blocks if isinstance(block, Verdict)), Verdict(report.headline))
    facts = [_fact(block.text, block.style) for block in blocks if isinstance(block, Fact)]
    return page(
        report.verb,
        parts.text(verdict.headline or verdict.text),
        *(_part(block, view) for block in blocks if block is not verdict and not isinstance(block, Fact)),
        title=report.title,
        word=verdict.word,
        tone=verdict.style,
        facts=[parts.text(report.about), *facts] if report.about else facts,
    )


def _built(blocks: Iterable[Block], view: ModelView | None) -> Iterator[Block]:
    """Yield the blocks of a page, those that are built from its model included."""
    for block in blocks:
        if not isinstance(block, OnPage):
            yield block
        elif view is not None:
            yield from _built(block.build(view), view)


def _fact(text: Inline, style: str) -> Markup:
    if style not in ("good", "bad", "warning"):
        return parts.text(text)
    dot = Markup('<span class="{}"><span class="dot" aria-hidden="true"></span>{}</span>')
    return dot.format(style, parts.text(text))


def parts_of(blocks: Iterable[Block], view: ModelView | None = None) -> Markup:
    """Return blocks as markup, one after the other."""
    return parts.together(*(_part(block, view) for block in _built(blocks, view)))


@singledispatch
def _part(_block: Block, _view: ModelView | None) -> Markup:
    """Return a block as markup; nothing for blocks of text and cards only."""
    return Markup("")


@_part.register(Verdict)
def _(block: Verdict, _view: ModelView | None) -> Markup:
    return parts.paragraph(block.line, _CLASSES.get(block.style, block.style))


@_part.register(Text)
def _(block: Text, _view: ModelView | None) -> Markup:
    return parts.paragraph(parts.text(block.text), _CLASSES.get(block.style, block.style))


@_part.register(Note)
def _(block: Note, _view: ModelView | None) -> Markup:
    return parts.note(block.text, "warning")


@_part.register(Listing)
def _(block: Listing, _view: ModelView | None) -> Markup:
    return parts.listing(block.values)


@_part.register(Table)
def _(block: Table, _view: ModelView | None) -> Markup:
    if not block.rows:
        return Markup("")
    drawn = parts.table(block.columns, block.rows, block.styles)
    return parts.details(block.fold, drawn) if block.fold else drawn


@_part.register(Next)
def _(block: Next, _view: ModelView | None) -> Markup:
    return parts.section("next", "Next", parts.commands(block.commands))


@_part.register(Verbatim)
def _(block: Verbatim, _view: ModelView | None) -> Markup:
    return parts.commands([block.text])


@_part.register(Pairs)
def _(block: Pairs, _view: ModelView | None) -> Markup:
    return parts.facts(block.pairs)


@_part.register(Section)
def _(block: Section, view: ModelView | None) -> Markup:
    return parts.section(block.name, block.title, parts_of(block.blocks, view))


@_part.register(Fold)
def _(block: Fold, view: ModelView | None) -> Markup:
    body = parts_of(block.blocks, view)
    return parts.details(block.summary, body, opened=block.opened) if body else body


@_part.register(Bars)
def _(block: Bars, _view: ModelView | None) -> Markup:
    drawn = parts.bars(block.title, block.unit, block.rows, full=block.full)
    if block.key is None:
        return drawn
    return parts.figure(drawn, Markup("{}{}").format(parts.key(block.key[0]), parts.text(block.key[1])))


@_part.register(Figures)
def _(block: Figures, _view: ModelView | None) -> Markup:
    return parts.side_by_side(*block.drawings)


@_part.register(Graph)
def _(block: Graph, view: ModelView | None) -> Markup:
    if view is None:
        return Markup("")
    return graph_section(view, block.colourings, _panel(block, view), block.focus)


def _panel(block: Graph, view: ModelView) -> Callable[[int], Markup]:
    panels = block.panels
    if panels is None:
        return lambda _index: Markup("")
    if callable(panels):
        return lambda index: parts_of(panels(index), view)
    return lambda index: parts_of(panels.get(index, ()), view)


@_part.register(Memory)
def _(_block: Memory, view: ModelView | None) -> Markup:
    return Markup("") if view is None else memory_section(view.model)
