"""Ranges as a picture: what the reference's values span, and what the codes of the other model can represent."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from tflq.face.report.blocks import Block, Figures, Fold, Operator
from tflq.face.report.html import parts
from tflq.face.report.numbers import counted
from tflq.quantization.judge.comparison import Comparison
from tflq.quantization.judge.spans import Span

#: Rows that are shown before the rest is folded.
_SHOWN = 20
_ROW = Markup(
    '<tr><th scope="row">{}</th><td>{}{}</td><td class="number">{}</td><td class="number">{}</td>'
    '<td class="number">{}</td></tr>'
)
_HEAD = Markup(
    "<thead><tr><th scope=col>operator</th><th scope=col>upper: values in float; lower: range of the codes</th>"
    "<th scope=col>values</th><th scope=col>codes</th><th scope=col>cut off</th></tr></thead>"
)


def ranges_blocks(comparison: Comparison) -> Iterator[Block]:
    """Yield the picture of the ranges of quantized tensors in order of execution; nothing if there are none."""
    spans = comparison.ranges
    if not spans:
        return
    caption = Markup("{}values; {}codes; {}values beyond them; each row has its own scale; n = {} tensors").format(
        parts.key("plain"), parts.key("good"), parts.key("above"), len(spans)
    )
    yield Figures([parts.figure(_drawn(spans[:_SHOWN]), caption)])
    if len(spans) > _SHOWN:
        rest = spans[_SHOWN:]
        yield Fold(f"and {counted(len(rest), 'more tensor')}", [Figures([parts.figure(_drawn(rest), "")])])


def _drawn(spans: tuple[Span, ...]) -> Markup:
    body = Markup("").join(map(_row, spans))
    return Markup('<table class="bars" aria-label="ranges of values and codes">{}<tbody>{}</tbody></table>').format(
        _HEAD, body
    )


def _row(span: Span) -> Markup:
    low, high = min(span.low, span.seen[0], 0.0), max(span.high, span.seen[1], 0.0)
    room = (high - low) or 1.0

    def bar(begin: float, end: float, style: str) -> Markup:
        left, width = 100 * (begin - low) / room, 100 * max(end - begin, 0.0) / room
        return Markup('<span class="bar {}" style="display:block;margin-left:{:.1f}%;width:{:.1f}%"></span>').format(
            style, min(left, 99.5), max(min(width, 100 - left), 0.5)
        )

    beyond = cut_off(span)
    return _ROW.format(
        parts.text(Operator(span.index, span.op)),
        bar(*span.seen, "above" if beyond else "plain"),
        bar(span.low, span.high, "good"),
        f"{span.seen[0]:.3g} to {span.seen[1]:.3g}",
        f"{span.low:.3g} to {span.high:.3g}",
        f"{beyond:.1%}" if beyond else "",
    )


def cut_off(span: Span) -> float:
    """Return the share of the width of the values that lies beyond the codes, without the half step at each end."""
    step = (span.high - span.low) / 255
    beyond = max(span.low - span.seen[0] - step / 2, 0.0) + max(span.seen[1] - span.high - step / 2, 0.0)
    width = span.seen[1] - span.seen[0]
    return beyond / width if width > 0 else 0.0
