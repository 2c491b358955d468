"""Small charts as inline SVG. Colours are classes of the style sheet, so that they follow light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from tflq.escaping import printable, shown

Array = NDArray[Any]

#: Shades of a heat map, for each sign.
SHADES = 5
#: Cells of a heat map along an axis; more are taken together.
MOST_CELLS = 96

#: Pixels of the longer side of a heat map, of the smallest cell and of the largest.
_SIDE, _CELL_SIZES = 384, (4, 48)

_CELL = "M{} {}h1v1h-1z"
_BAR = Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{}" height="{:.1f}"/>')
_TEXT = Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>')


def histogram(counts: Sequence[tuple[int, int]], title: str, reach: int) -> Markup:
    """Elements by whole-number distance: `counts` are (distance, elements), `reach` and beyond share a class."""
    known = dict(counts)
    if not known:
        return Markup("")
    farthest_off = max(map(abs, known))  # as far to both sides: a bias shows
    distances = [d for d in range(-farthest_off, farthest_off + 1) if d != 0 or d in known]
    return bar_chart([(_distance(d, reach), known.get(d, 0), _side(d)) for d in distances], title)


def _distance(distance: int, reach: int) -> str:
    if abs(distance) < reach:
        return f"{distance:+d}"
    return f"{'≥' if distance > 0 else '≤'} {distance:+d}"


def _side(distance: int) -> str:
    return "above" if distance > 0 else "below"


def bar_chart(bars: Sequence[tuple[str, float, str]], title: str) -> Markup:
    """Upright bars of (label, value >= 0, class), their values above them, or in tooltips where bars are narrow."""
    if not bars:
        return Markup("")
    width = max(14, min(56, 640 // len(bars)))
    top, height, foot = 16, 96, 16
    largest = max(value for _, value, _ in bars) or 1
    every = -(-24 // width)  # labels that fit side by side
    parts = [_head(width * len(bars), top + height + foot, title, 1)]
    for i, (label, value, kind) in enumerate(bars):
        tall = max(height * value / largest, 1.5 if value else 0)
        middle = i * width + width / 2
        parts.append(Markup("<g><title>{}: {}</title>").format(shown(label), _number(value)))
        parts.append(_BAR.format(kind, i * width + 1, top + height - tall, width - 2, tall))
        if value and width >= 28:
            parts.append(_TEXT.format("", middle, top + height - tall - 3, _number(value)))
        if i % every == 0:
            parts.append(_TEXT.format("axis", middle, top + height + 12, shown(label)))
        parts.append(Markup("</g>"))
    return Markup("").join([*parts, Markup("</svg>")])


def heat_map(values: Array, title: str) -> Markup:
    """Signed values (rows, columns) as shades: one path a shade. Large maps show the farthest value of each block."""
    seen = farthest_of_blocks(values, MOST_CELLS)
    rows, columns = seen.shape
    largest = float(np.abs(seen).max(initial=0))
    cell = min(max(_SIDE // max(rows, columns), _CELL_SIZES[0]), _CELL_SIZES[1])
    parts = [_head(columns, rows, title, cell)]
    parts.append(Markup('<rect class="ground" width="{}" height="{}"/>').format(columns, rows))
    if largest:
        shade = np.ceil(np.abs(seen) / largest * SHADES).astype(int)
        for sign, kind in ((1, "above"), (-1, "below")):
            for level in range(1, SHADES + 1):
                places = np.argwhere((shade == level) & (np.sign(seen) == sign))
                path = "".join(_CELL.format(x, y) for y, x in places.tolist())
                if path:
                    parts.append(Markup('<path class="{} s{}" d="{}"/>').format(kind, level, path))
    return Markup("").join([*parts, Markup("</svg>")])


def farthest_of_blocks(values: Array, most: int) -> Array:
    """At most `most` rows and columns: of each block of cells the value farthest from 0, as float64."""
    rows, columns = values.shape
    tall, wide = max(1, -(-rows // most)), max(1, -(-columns // most))
    padded = np.pad(values.astype(np.float64), ((0, -rows % tall), (0, -columns % wide)))
    blocks = padded.reshape(padded.shape[0] // tall, tall, padded.shape[1] // wide, wide).transpose(0, 2, 1, 3)
    return farthest(blocks.reshape(*blocks.shape[:2], -1))


def farthest(values: Array) -> Array:
    """Along the last axis, the value farthest from 0; 0 where there is none."""
    high, low = values.max(axis=-1, initial=0), values.min(axis=-1, initial=0)
    return np.asarray(np.where(high >= -low, high, low))


def _head(width: int, height: int, title: str, scale: int) -> Markup:
    """The opening tag and title; a unit of the drawing is `scale` pixels where there is room."""
    opening = Markup('<svg viewBox="0 0 {} {}" style="width:{}px" role="img" aria-label="{}"><title>{}</title>')
    return opening.format(width, height, width * scale, printable(title), printable(title))


def _number(value: float) -> Markup:
    return escape(f"{value:,}" if isinstance(value, int) or value == int(value) else f"{value:.3g}")
