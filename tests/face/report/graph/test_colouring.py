"""Shades that grow with their numbers, and legends that say where one ends."""

from __future__ import annotations

import math

from tflq.face.report.graph.colouring import ladder, scale, states
from tflq.face.report.wording import bytes_text, short


def shades(values: dict[int, float]) -> list[str]:
    return [mark.shade for mark in scale("size", values, "m").marks.values()]


def test_shades_grow_with_the_numbers() -> None:
    assert shades({0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5}) == ["clear", "hot2", "hot3", "hot4", "hot5", "hot5"]
    assert shades({0: 1, 1: 10, 2: 100, 3: 1000}) == ["hot1", "hot2", "hot4", "hot5"]
    assert shades({0: 7, 1: 7}) == ["hot5", "hot5"]
    assert shades({0: 0}) == ["clear"]
    assert shades({0: math.inf, 1: 1}) == ["hot5", "hot5"]


def test_a_legend_names_the_ends_of_its_shades() -> None:
    found = scale("largest difference", {0: 0, 1: 10}, "LSB")
    assert (found.name, found.legend) == ("largest difference, LSB", (("clear", "0 LSB"), ("hot5", "10 LSB")))
    legend = scale("size", {1: 1, 2: 1000}, "m", hue="cool").legend
    assert [shade for shade, _ in legend] == [f"cool{n}" for n in range(1, 6)]
    assert legend[-1] == ("cool5", "to 1,000 m")


def test_a_ladder_has_the_same_rungs_for_all() -> None:
    values = {0: -math.inf, 1: 10.0, 2: 49.9, 3: math.inf}
    found = ladder("ratio", values, "dB", (10, 20, 30, 40, 50), dict.fromkeys(values, "x"))
    assert [mark.shade for mark in found.marks.values()] == ["hot5", "hot4", "hot1", "clear"]
    assert found.legend[0] == ("hot5", "below 10 dB")
    assert found.legend[-1] == ("clear", "50 dB and more")


def test_states_are_named_once() -> None:
    found = states("status", {0: ("good", "exact"), 1: ("bad", "differs"), 2: ("good", "exact")})
    assert found.legend == (("good", "exact"), ("bad", "differs"))


def test_numbers_are_short() -> None:
    numbers = (0, 512, 9999, 12345, 999_999, 1_310_000, 0.00213, 2012.7, math.inf)
    assert list(map(short, numbers)) == ["0", "512", "9,999", "12.3 k", "1 M", "1.31 M", "0.00213", "2,013", "inf"]
    assert list(map(bytes_text, (812, 2048, 3_439_329))) == ["812 bytes", "2 KiB", "3.28 MiB"]
