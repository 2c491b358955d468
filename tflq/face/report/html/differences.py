"""Figures of differences, and matrices of profiles, on pages.

Figures of differences: their distribution, their place in the image and channels; colourings of operators.

A matrix of profiles and operators on a page: a coloured table whose rows unfold to the names of their profiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from tflq.comparison.inspection.difference import HISTOGRAM_REACH, Difference
from tflq.face.report.graph.colouring import Colouring, scale, states
from tflq.face.report.html.charts import MOST_CELLS, heat_map, histogram, means_of_blocks, plot
from tflq.face.report.html.page import details, figure, key, text, together
from tflq.face.report.matrices import MatrixBlock, MatrixColumn, MatrixRow
from tflq.face.report.wording import counted, short
from tflq.typing import Array

#: Elements of a row of the map of a tensor without height and width, and of a larger one.
_ROW, _LONG_ROW = 16, 64
#: Channels that are drawn one by one; more are taken together.
_CHANNELS = 512


def difference_colourings(
    differences: Mapping[int, Sequence[Difference]], statuses: Mapping[int, tuple[str, str]]
) -> tuple[Colouring, Colouring, Colouring]:
    """Return colourings of operators by the largest difference, by the share of differing elements, and by status.

    Args:
        differences: By operator, those of the results of operators that were compared.
        statuses: (shade, text) of every operator.
    """
    units = sorted({d.unit for parts in differences.values() for d in parts if d.unit})
    farthest = {op: max(parts, key=lambda d: d.largest) for op, parts in differences.items() if parts}
    largest = {op: float(d.largest) for op, d in farthest.items()}
    far = {op: f"{d.largest:,} {d.unit}" if d.largest else _apart(d) for op, d in farthest.items()}
    shares = {
        op: 100 * sum(d.differing for d in parts) / (sum(d.elements for d in parts) or 1)
        for op, parts in differences.items()
        if parts
    }
    texts = {op: f"{_percent(share)} differ" if share else "0" for op, share in shares.items()}
    return (
        scale("largest difference", largest, " or ".join(units), texts=far),
        scale("elements that differ", shares, "%", texts=texts),
        states("status", statuses),
    )


def _apart(d: Difference) -> str:
    return "0" if d.same else d.problem or f"{d.differing:,} differ"


def _percent(share: float) -> str:
    return f"{share:.3g} %" if share >= 0.01 else "< 0.01 %"


def distance_figure(d: Difference, tensor: str, sides: str) -> Markup:
    """Return a chart of differing elements by distance; `sides` names the difference, as in "dump - profile"."""
    chart = histogram(d.histogram, f"elements by distance, {tensor}", HISTOGRAM_REACH)
    return figure(chart, f"{tensor}: differing elements by {sides}, {d.unit}; n = {d.differing:,} of {d.elements:,}")


def error_figures(error: Array, tensor: str, unit: str) -> Iterator[Markup]:
    """Yield charts of where a tensor's differences lie: over the image, and over the channels.

    Args:
        error: got - expected, of the tensor's shape.
        tensor: Its index and name.
        unit: What `error` is in.
    """
    if error.ndim == 4 and max(error.shape[1:3]) > 1:
        height, width = error.shape[1:3]
        differing = np.count_nonzero(error, axis=(0, 3))
        counts = means_of_blocks(differing, MOST_CELLS)
        way = np.where(means_of_blocks(error.sum(axis=(0, 3)), MOST_CELLS) < 0, -1, 1)
        each = error.shape[0] * error.shape[3]
        size = f"{height} × {width} cells, {each:,} elements each"
        said = f"{tensor}: elements that differ at each place; {size}; the fullest has {int(differing.max()):,}"
        caption = Markup("{}; {}above {}below 0 on average").format(text(said), key("above"), key("below"))
        yield figure(heat_map(counts * way, said), caption)
    else:
        rows, what = as_rows(error)
        yield _map_figure(rows, f"{tensor}: {what}", unit)
    if error.ndim > 1 and error.shape[-1] > 1:
        yield channel_figure(error, tensor)


def _map_figure(values: Array, said: str, unit: str) -> Markup:
    largest = short(float(np.abs(means_of_blocks(values, 96)).max(initial=0)))
    caption = Markup("{}; {}above {}below 0; the fullest colour is {} {}").format(
        text(said), key("above"), key("below"), largest, text(unit)
    )
    return figure(heat_map(values, said), caption)


def as_rows(error: Array) -> tuple[Array, str]:
    """Return the differences of a tensor that is no image as (rows, columns), and the meaning of a cell."""
    flat = error.reshape(-1)
    if error.ndim > 1 and 1 < error.shape[-1] <= 2 * _LONG_ROW and flat.size > error.shape[-1]:
        return flat.reshape(-1, error.shape[-1]), "a column for each channel"
    row = _ROW if flat.size <= _ROW**2 else _LONG_ROW
    return np.pad(flat, (0, -flat.size % row)).reshape(-1, row), f"elements in order, {row} a row"


def channel_figure(error: Array, tensor: str) -> Markup:
    """Return a chart of the elements above and below in each channel (the last axis), which shows a channel's bias."""
    channels = error.shape[-1]
    together = -(-channels // _CHANNELS)
    rows = error.reshape(-1, channels)
    above, below = (
        np.add.reduceat(np.count_nonzero(side, axis=0), np.arange(0, channels, together))
        for side in (rows > 0, rows < 0)
    )
    most = int(max(above.max(), below.max())) or 1
    up = "".join(f"M{i} 100v{-100 * n / most:.1f}h.9V100z" for i, n in enumerate(above.tolist()) if n)
    down = "".join(f"M{i} 100v{100 * n / most:.1f}h.9V100z" for i, n in enumerate(below.tolist()) if n)
    drawing = Markup('<path class="above" d="{}"/><path class="below" d="{}"/>').format(up, down)
    each = f"{rows.shape[0]:,} elements a channel" + (f", {together} channels a column" if together > 1 else "")
    said = f"{tensor}: elements that differ in each channel"
    ends = (f"{most:,} above", f"{most:,} below")
    chart = plot(drawing, (len(above), 200), said, ends, ("channel 0", f"channel {channels - 1}"), each)
    return figure(chart, said)


#: Most columns that are drawn, and names that are listed before the others are folded.
_COLUMNS, _NAMES = 60, 3


def matrix_table(matrix: MatrixBlock) -> Markup:
    """Return the table with its key. It scrolls sideways if it is too wide."""
    columns = matrix.columns[:_COLUMNS]
    head = Markup("").join(_head(column) for column in columns)
    body = Markup("\n").join(_row(row) for row in matrix.rows)
    table = Markup(
        '<div class="scroll" tabindex="0" role="group" aria-label="{}"><table class="matrix profiles">\n'
        "<thead><tr><th scope=col>profiles</th>{}</tr></thead>\n<tbody>\n{}\n</tbody></table></div>"
    ).format(matrix.title, head, body)
    meanings = [
        Markup("{}<b>{}</b> {}").format(key(mark.style), text(mark.text), text(said)) for mark, said in matrix.key
    ]
    left = len(matrix.columns) - len(columns)
    if left:
        meanings.append(text(f"{counted(left, 'column')} more are in --json"))
    return figure(table, Markup(" &ensp; ").join(meanings))


def _head(column: MatrixColumn) -> Markup:
    """Return the head of a column: the type, and the operators or their number."""
    places = column.places[0] if len(column.places) == 1 else f"{len(column.places)} of them"
    return Markup('<th scope=col title="{}"><span>{} <small>{}</small></span></th>').format(
        f"{column.op} {', '.join(column.places)}", text(column.op), text(places)
    )


def _row(row: MatrixRow) -> Markup:
    shown, rest = row.names[:_NAMES], row.names[_NAMES:]
    names = _names(shown)
    if rest:
        names = together(names, details(f"and {len(rest)} more", _names(rest)))
    label = Markup("<b>{}</b> {}").format(counted(len(row.names), "profile"), names) if len(row.names) > 1 else names
    cells = Markup("").join(
        Markup('<td class="{}">{}</td>').format(mark.style, text(mark.text)) for mark in row.marks[:_COLUMNS]
    )
    return Markup("<tr><th scope=row>{}</th>{}</tr>").format(label, cells)


def _names(names: Sequence[str]) -> Markup:
    """Return names with commas; no line breaks inside one."""
    return Markup(", ").join(Markup('<span class="whole">{}</span>').format(name) for name in names)
