"""Pages: whole, in order, escaped, and quiet in a browser; charts: drawn to scale."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from markupsafe import Markup

from support import suites
from tflq.api.files import load
from tflq.diagnosis.dump import Dump
from tflq.diagnosis.findings import Findings, investigate
from tflq.interpreter import make_plan, run
from tflq.ir import Model
from tflq.profiles import by_name
from tflq.report.explain.page import as_map, explain_page
from tflq.report.html.charts import SHADES, bar_chart, farthest, farthest_of_blocks, heat_map, histogram

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Sections in order, references to elsewhere, and tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sections: list[str] = []
        self.references: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action")]
        if tag == "section":
            self.sections.append(given.get("id") or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def of_another_profile(model: Model, profile: str) -> Findings:
    graph = model.subgraphs[0]
    rng = np.random.default_rng(2)
    inputs = {
        t: rng.integers(-128, 128, graph.tensors[t].shape).astype(np.int8)
        if graph.tensors[t].type.label == "int8"
        else rng.random(graph.tensors[t].shape).astype(graph.tensors[t].type.label)
        for t in graph.inputs
    }
    values = run(make_plan(model, by_name(profile)), inputs, keep_all=True).values
    return investigate(model, [Dump("", values)], by_name("litert-ref"))


@pytest.fixture(scope="module")
def found() -> Findings:
    return of_another_profile(load(MODEL), "litert-opt")


def test_a_page_is_whole_and_in_order(found: Findings) -> None:
    page = explain_page("a model.tflite", "dump.npz", found)
    reader = read(page)
    assert reader.sections == ["first", "cause", "element", "next", "growth", "operators"]
    assert [r for r in reader.references if not r.startswith("data:")] == []
    assert not re.search(r"@import|url\(", page)
    assert "prefers-color-scheme: dark" in page
    text = " ".join(reader.texts)
    assert "tflq explain 'a model.tflite' --dump dump.npz --profile litert-opt" in text
    assert text.count("CONV_2D") > 2


def test_what_comes_from_outside_is_escaped(found: Findings) -> None:
    assert found.divergence is not None
    named = replace(found, divergence=replace(found.divergence, name="<script>alert(1)</script>"), unknown=("<b>",))
    page = explain_page("<i>.tflite", 'x" onload="y', named)
    assert "<script" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert read(page).sections


def test_a_page_of_nothing_that_differs() -> None:
    found = of_another_profile(load(MODEL), "litert-ref")
    reader = read(explain_page("m.tflite", "d.npz", found))
    assert (found.verdict, reader.sections) == ("same", ["operators"])


def test_a_browser_shows_it_without_complaint(found: Findings, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    page = tmp_path / "page.html"
    page.write_text(explain_page("m.tflite", "d.npz", found), encoding="utf-8")
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    for scheme in ("0", "1"):
        done = subprocess.run(
            [browser, *arguments, f"--blink-settings=preferredColorScheme={scheme}", page.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert "CONSOLE" not in done.stderr
        assert done.stdout.count("<svg") == 3


def heights(chart: Markup) -> list[float]:
    return [float(h) for h in re.findall(r'<rect class="[a-z]*"[^>]* height="([\d.]+)"', chart)]


def test_bars_are_as_tall_as_their_values() -> None:
    drawn = heights(bar_chart([("a", 1, "plain"), ("b", 4, "plain"), ("c", 0, "plain"), ("d", 2, "plain")], "bars"))
    assert drawn == [24, 96, 0, 48]
    assert bar_chart([], "none") == ""


def test_a_histogram_reaches_as_far_to_both_sides() -> None:
    chart = histogram([(-1, 5), (3, 2)], "distances", 16)
    assert re.findall(r"<title>([+-]\d): (\d+)", chart) == [
        ("-3", "0"),
        ("-2", "0"),
        ("-1", "5"),
        ("+1", "0"),
        ("+2", "0"),
        ("+3", "2"),
    ]
    assert "≥ +16" in histogram([(16, 1)], "distances", 16)
    assert histogram([], "nothing", 16) == ""


def test_a_heat_map_draws_each_cell_once() -> None:
    values = np.array([[0, 5, -5], [1, 0, -1]])
    drawn = heat_map(values, "map")
    assert f'class="above s{SHADES}" d="M1 0' in drawn
    assert f'class="below s{SHADES}" d="M2 0' in drawn
    assert 'class="above s1" d="M0 1' in drawn
    assert len(re.findall(r"M\d+ \d+h1", drawn)) == np.count_nonzero(values)
    assert "<path" not in heat_map(np.zeros((2, 2)), "nothing")


def test_blocks_show_what_is_farthest_from_zero() -> None:
    values = np.zeros((5, 4))
    values[0, 1], values[1, 0], values[4, 3] = 2, -3, 1
    assert farthest_of_blocks(values, 3).tolist() == [[-3, 0], [0, 0], [0, 1]]
    assert farthest(np.array([[1, -1], [0, 0]])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 8, 6, 3), (8, 6)),
        ((4, 10), (4, 10)),
        ((1, 10), (1, 16)),
        ((1, 40), (3, 16)),
        ((1, 1, 1, 1000), (16, 64)),
        ((), (1, 16)),
    ],
)
def test_every_shape_has_a_map(shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    values, what = as_map(np.ones(shape))
    assert values.shape == expected
    assert what
    assert values.sum() == min(np.prod(shape), np.prod(expected))
