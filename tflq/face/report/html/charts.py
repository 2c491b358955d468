"""Charts. Colours are classes of the style sheet; words are beside the drawings, so that both fit every screen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from tflq.face.report.html.page import text
from tflq.face.report.wording import short
from tflq.texts import printable
from tflq.typing import Array

#: Shades of a scale, from faint to full; the style sheet has a class for each.
LEVELS = 5
#: Cells of a heat map along an axis; more are taken together.
MOST_CELLS = 96
#: Classes of a histogram of many values.
CLASSES = 64
#: Distances to both sides of 0 that a histogram shows at least.
_NEAR = 2
#: Classes of a column chart of which each one is labelled.
_LABELLED = 7

_COLUMN = Markup(
    '<div title="{}"><span class="of">{}</span><span class="column {}" style="height:{:.1f}%"></span>'
    '<span class="at">{}</span></div>'
)
_PLOT = Markup(
    '<div class="plot"><div class="up"><span>{}</span><span>{}</span></div>'
    '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}"><title>{}</title>{}</svg>'
    '<div class="along">{}</div><div class="unit">{}</div></div>'
)


def histogram(counts: Sequence[tuple[int, int]], title: str, reach: int) -> Markup:
    """Return columns of elements by distance: `counts` are (distance, elements); `reach` and beyond share a column.

    The axis spans what occurs and at least 2 to both sides of 0: a bias shows by where 0 is.
    """
    known = dict(counts)
    if not known:
        return Markup("")
    distances = range(min(-_NEAR, *known), max(_NEAR, *known) + 1)
    return columns([(_distance(d, reach), known.get(d, 0), _side(d)) for d in distances], title)


def _distance(distance: int, reach: int) -> str:
    if abs(distance) < reach:
        return f"{distance:+d}" if distance else "0"
    return f"{'≥' if distance > 0 else '≤'} {distance:+d}"


def _side(distance: int) -> str:
    return "above" if distance > 0 else "below" if distance < 0 else "plain"


def columns(classes: Sequence[tuple[str, int, str]], title: str) -> Markup:
    """Return upright columns of (label, count, class of colour) over the whole width, with counts that fit."""
    if not classes:
        return Markup("")
    largest = max(count for _, count, _ in classes) or 1
    every = -(-len(classes) // _LABELLED)
    first = next((k for k, (_, _, style) in enumerate(classes) if style == "plain"), 0) % every  # 0 has a label
    drawn = [
        _COLUMN.format(
            printable(f"{label}: {count:,}"),
            short(count) if count and len(classes) <= 2 * _LABELLED else "",
            style,
            max(78 * count / largest, 1 if count else 0),
            printable(label) if number % every == first else "",
        )
        for number, (label, count, style) in enumerate(classes)
    ]
    said = "; ".join(f"{label}: {count:,}" for label, count, _ in classes if count)
    frame = Markup('<div class="columns" role="img" aria-label="{}">{}</div>')
    return frame.format(text(printable(f"{title}: {said}", 1000)), Markup("").join(drawn))


def distribution(
    values: Array,
    title: str,
    unit: str,
    limits: tuple[float, float] | None = None,
    clipped: tuple[bool, bool] = (True, True),
) -> Markup:
    """Return a histogram of numbers in at most CLASSES classes; clipped ones have their own colour.

    Args:
        values: The numbers, of any shape.
        title: What they are.
        unit: What the axis is in.
        limits: The ends of the axis; the smallest and the largest number if there are none.
        clipped: Whether a number at the lower limit, and one at the upper, has been clipped.
    """
    numbers = values.reshape(-1)
    if numbers.dtype.kind == "f":
        numbers = numbers[np.isfinite(numbers)]
    if not numbers.size:
        return Markup("")
    low, high = limits or (float(numbers.min()), float(numbers.max()))
    span = (high - low) or 1.0
    whole = numbers.dtype.kind in "iu" and span < CLASSES
    bins = int(span) + 1 if whole else CLASSES
    edges = (low - 0.5, high + 0.5) if whole else (low, low + span)
    counts, _ = np.histogram(numbers, bins=bins, range=edges)
    tallest = counts.max() or 1
    bodies = "".join(
        f"M{i} 100v{-max(100 * c / tallest, 0.8):.1f}h.92V100z" for i, c in enumerate(counts.tolist()) if c
    )
    drawing = Markup('<path class="cool5" d="{}"/>').format(bodies)
    said = f"{title}: {numbers.size:,} numbers from {short(float(numbers.min()))} to {short(float(numbers.max()))}"
    if limits is not None:
        at_ends = int(np.count_nonzero(numbers <= low)), int(np.count_nonzero(numbers >= high))
        for count, at, is_clip in zip(at_ends, (0, bins - 1), clipped, strict=True):
            if count and is_clip:
                height = max(100 * count / tallest, 0.8)
                drawing += Markup('<path class="bad" d="M{} 100v{:.1f}h.92V100z"/>').format(at, -height)
        said += f"; {at_ends[0]:,} at the low end, {at_ends[1]:,} at the high end"
    ends = [short(low), *([short(0.0)] if low < 0 < high and abs(low + high) < 0.2 * span else []), short(high)]
    return plot(drawing, (bins, 100), said, (f"{tallest:,}", "0"), ends, f"{unit}, n = {numbers.size:,}")


def line(values: Sequence[float], title: str, up: str, along: tuple[str, str], unit: str) -> Markup:
    """Return a value for each step, as stairs; `up` labels the largest, `along` the first and the last step."""
    if not values:
        return Markup("")
    largest = max(values) or 1
    path = "".join(f"L{i} {100 - 100 * v / largest:.1f}H{i + 1}" for i, v in enumerate(values))
    drawing = Markup('<path class="cool2" d="M0 100{0}V100z"/><path class="line" d="M0 {1:.1f}{0}"/>')
    return plot(
        drawing.format(path, 100 - 100 * values[0] / largest), (len(values), 100), title, (up, "0"), along, unit
    )


def scatter(
    points: Sequence[tuple[float, float, str]],
    title: str,
    up: tuple[str, str],
    along: tuple[str, str],
    unit: str,
    floor: float = math.inf,
) -> Markup:
    """Return points (x, y, class), joined in their order; each axis runs from its smallest to its largest number.

    Args:
        points: Finite numbers.
        title: What the points are.
        up: Labels of the largest and the smallest y.
        along: Labels of the smallest and the largest x.
        unit: What both axes are in.
        floor: The upright axis begins there, if no point is lower.
    """
    if not points:
        return Markup("")
    xs, ys = [x for x, _, _ in points], [y for _, y, _ in points]
    low = min(*ys, floor)
    wide, tall = (max(xs) - min(xs)) or 1.0, (max(ys) - low) or 1.0
    placed = [(3 + 94 * (x - min(xs)) / wide, 93 - 86 * (y - low) / tall, style) for x, y, style in points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in placed)
    drawing = Markup('<path class="line" d="M{}"/>').format(path)
    for x, y, style in placed:
        drawing += Markup('<path class="point {}" d="M{:.1f} {:.1f}h0"/>').format(style, x, y)
    return plot(drawing, (100, 100), title, up, along, unit)


def plot(
    drawing: Markup, size: tuple[float, float], title: str, up: tuple[str, str], along: Sequence[str], unit: str
) -> Markup:
    """Return a drawing stretched to the full width, with the ends of both axes beside it and the unit below."""
    labels = Markup("").join(Markup("<span>{}</span>").format(text(label)) for label in along)
    said = text(printable(title, 1000))
    return _PLOT.format(text(up[0]), text(up[1]), size[0], size[1], said, said, drawing, labels, text(unit))


def heat_map(values: Array, title: str, *, signed: bool = True) -> Markup:
    """Return values (rows, columns) as shades, one path for each shade; large maps show the means of blocks.

    Args:
        values: Above and below 0 in two hues, or at least 0 in one.
        title: What a cell is, for those who do not see it.
        signed: Whether values below 0 are meant to occur.
    """
    drawn = means_of_blocks(values, MOST_CELLS)
    rows, width = drawn.shape
    largest = float(np.abs(drawn).max(initial=0))
    frame = '<svg class="heat" viewBox="0 0 {0} {1}" role="img" aria-label="{2}"><title>{2}</title>'
    parts = [Markup(frame).format(width, rows, text(printable(title, 1000)))]
    parts.append(Markup('<rect width="{}" height="{}"/>').format(width, rows))
    if largest:
        level = np.ceil(np.abs(drawn) / largest * LEVELS).astype(int)
        for sign, hue in ((1, "hot"), (-1, "cool")) if signed else ((1, "hot"),):
            for shade in range(1, LEVELS + 1):
                cells = np.argwhere((level == shade) & (np.sign(drawn) == sign)).tolist()
                if cells:
                    path = "".join(f"M{x} {y}h1v1h-1z" for y, x in cells)
                    parts.append(Markup('<path class="{}{}" d="{}"/>').format(hue, shade, path))
    return Markup("").join([*parts, Markup("</svg>")])


def means_of_blocks(values: Array, most: int) -> Array:
    """Return `values` reduced to at most `most` rows and columns by the mean of each block, as float64."""
    rows, width = values.shape
    tall, wide = max(1, -(-rows // most)), max(1, -(-width // most))
    padded = np.pad(values.astype(np.float64), ((0, -rows % tall), (0, -width % wide)), constant_values=np.nan)
    blocks = padded.reshape(padded.shape[0] // tall, tall, padded.shape[1] // wide, wide)
    return np.asarray(np.nanmean(blocks, axis=(1, 3)))
