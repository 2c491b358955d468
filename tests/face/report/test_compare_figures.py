"""Pictures on the pages of `compare` and `quantize`: ranges, bars below 0, the course of ratios, titles of axes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pytest

from tflq.face.report.blocks import Bar, Figures, Fold
from tflq.face.report.html.page import bars
from tflq.face.report.matrices import Strip
from tflq.face.report.verbs.compare import compare_card, confusion, course_figure, cut_off, ranges_blocks, tensor_bars
from tflq.face.report.verbs.compare_texts import decibels
from tflq.quantization.judge.comparison import Fidelities, Span
from tflq.quantization.judge.detections import DecisionAgreement, Fidelity


def fidelity(index: int, ratio: float) -> Fidelity:
    signal = {math.inf: (1.0, 0.0), -math.inf: (0.0, 1.0)}.get(ratio, (10 ** (ratio / 10), 1.0))
    return Fidelity(f"t{index}", "CONV_2D", index, elements=1, power=signal[0], noise=signal[1])


def comparison(ratios: Sequence[float] = (), spans: Sequence[Span] = ()) -> Fidelities:
    tensors = tuple(fidelity(k, ratio) for k, ratio in enumerate(ratios))
    return Fidelities(1, (), tensors, 0, None, ranges=tuple(spans))


def styles(drawn: str) -> list[tuple[float, float]]:
    """Return where each bar begins and ends, in percent."""
    found = re.findall(r"(?:margin-left:([\d.-]+)%;)?width:([\d.-]+)%", drawn)
    return [(float(left or 0), float(left or 0) + float(width)) for left, width in found]


def test_bars_below_0_extend_to_the_left() -> None:
    drawn = styles(bars("operator", "dB", [Bar("a", -10.0, ""), Bar("b", 0.0, ""), Bar("c", 30.0, "")]))
    assert drawn == [(0.0, 25.0), (25.0, 25.0), (25.0, 100.0)]
    assert styles(bars("operator", "dB", [Bar("a", -5.0, "")])) == [(0.0, 100.0)]
    endless = styles(bars("operator", "dB", [Bar("a", -10.0, ""), Bar("b", math.inf, "")], full=10.0))
    assert endless == [(0.0, 50.0), (50.0, 100.0)]
    assert styles(bars("operator", "dB", [Bar("a", 1.0, ""), Bar("b", 4.0, "")])) == [(0.0, 25.0), (0.0, 100.0)]


def test_a_negative_ratio_has_a_bar_of_its_own() -> None:
    rows = tensor_bars(comparison([30.0, -6.0, math.inf, -math.inf])).rows
    assert [(row.value, row.text) for row in rows] == [
        (0.0, "all noise"),
        (pytest.approx(-6.0), "-6.0 dB"),
        (pytest.approx(30.0), "30.0 dB"),
        (math.inf, "no noise"),
    ]


def drawing(block: object) -> str:
    assert isinstance(block, Figures)
    return "".join(map(str, block.drawings))


def test_ranges_are_drawn_to_the_scale_of_their_row() -> None:
    exact = Span("a", "CONV_2D", 0, 0.0, 4.0, (0.0, 4.0))
    wide = Span("b", "ADD", 1, -8.0, 8.0, (-2.0, 2.0))
    cut = Span("c", "MUL", 2, -1.0, 1.0, (-2.0, 2.0))
    (picture,) = ranges_blocks(comparison(spans=[exact, wide, cut]))
    drawn = styles(drawing(picture))
    assert drawn == [(0, 100), (0, 100), (37.5, 62.5), (0, 100), (0, 100), (25, 75)]
    assert cut_off(exact) == cut_off(wide) == 0
    assert cut_off(cut) == pytest.approx(0.5, abs=0.01)
    assert re.findall(r'class="bar (\w+)"', drawing(picture)) == ["plain", "good", "plain", "good", "above", "good"]
    assert "-8 to 8" in drawing(picture)


def test_many_ranges_are_folded_and_none_draw_nothing() -> None:
    spans = [Span("a", "CONV_2D", k, 0.0, 0.0, (0.0, 0.0)) for k in range(45)]
    picture, rest = ranges_blocks(comparison(spans=spans))
    assert drawing(picture).count('scope="row"') == 20
    assert isinstance(rest, Fold)
    assert list(ranges_blocks(comparison())) == []


def test_the_headline_figure_is_the_course_of_ratios() -> None:
    drawn = drawing(course_figure(comparison([40.0, 10.0, math.inf, 30.0])))
    assert drawn.count("point") == 3
    assert "40.0 dB" in drawn
    assert "0.0 dB" in drawn  # the axis begins there
    assert drawing(course_figure(comparison([40.0, math.inf]))) == ""
    assert drawing(course_figure(comparison())) == ""


@pytest.mark.parametrize(("label", "title"), [(1, "right class"), (None, "the reference&#39;s class")])
def test_the_confusion_matrix_names_its_axes(label: int | None, title: str) -> None:
    import numpy as np

    agreement = DecisionAgreement()
    agreement.add(np.array([0.1, 0.9]), np.array([0.8, 0.2]), label)
    (matrix,) = confusion(agreement)
    drawn = drawing(matrix)
    assert f"<th scope=col>{title}</th>" in drawn
    assert "<th scope=colgroup colspan=2>class of the other model</th>" in drawn


def test_a_ratio_of_nearly_0_has_no_sign() -> None:
    assert decibels(-0.01) == decibels(0.01) == "0.0 dB"
    assert (decibels(-0.06), decibels(math.inf), decibels(-math.inf)) == ("-0.1 dB", "equal", "-∞ dB")


def test_a_card_has_a_square_for_each_tensor() -> None:
    strip = next(b for b in compare_card(comparison([35.0, 25.0, -3.0])).blocks if isinstance(b, Strip))
    assert strip.styles == ["good", "warning", "bad"]
