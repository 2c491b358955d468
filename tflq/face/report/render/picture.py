"""The picture of a card: a small drawing of a report that needs no style sheet, as notebooks strip them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from markupsafe import Markup

from tflq.face.report import blocks, pictures
from tflq.face.report.blocks import Block, plain
from tflq.face.report.html.parts import text
from tflq.face.report.numbers import counted

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
            case pictures.Strip(styles=styles) if styles:
                return _strip(block)
            case pictures.Matrix(rows=rows) if rows:
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


def _strip(block: pictures.Strip) -> Markup:
    squares = Markup("").join(map(_square, block.styles[:_SQUARES]))
    return _frame(squares, block.title)


def _matrix(block: pictures.Matrix) -> Markup:
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
