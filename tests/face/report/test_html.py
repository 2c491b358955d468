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

from support import suites
from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.findings import Findings, investigate
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.face.report.blocks import Bar
from tflq.face.report.graph.drawing import view_of
from tflq.face.report.html.charts import LEVELS, distribution, heat_map, histogram, line, means_of_blocks, scatter
from tflq.face.report.html.differences import as_rows, channel_figure, error_figures
from tflq.face.report.html.page import bars
from tflq.face.report.render.html import page_of, parts_of
from tflq.face.report.verbs.compare import outputs_section
from tflq.face.report.verbs.explain import explain_report
from tflq.model.ir import Model, view
from tflq.quantization.judge.comparison import Fidelities
from tflq.quantization.judge.detections import DecisionAgreement

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
VIEW = view_of(MODEL)
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
    graph = view(model)
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
    page = page_of(explain_report(found, "a model.tflite", "dump.npz"), VIEW)
    reader = read(page)
    assert reader.sections == ["first", "cause", "element", "next", "graph", "growth", "operators"]
    assert [r for r in reader.references if not r.startswith(("data:", "#"))] == []
    assert not re.search(r"@import|url\(", page)
    assert "prefers-color-scheme: dark" in page
    text = " ".join(reader.texts)
    assert "tflq explain 'a model.tflite' --dump dump.npz --profile litert-opt" in text
    assert text.count("CONV_2D") > 2


def test_what_comes_from_outside_is_escaped(found: Findings) -> None:
    assert found.divergence is not None
    named = replace(found, divergence=replace(found.divergence, name="<script>alert(1)</script>"), unknown=("<b>",))
    page = page_of(explain_report(named, "<i>.tflite", 'x" onload="y'), VIEW)
    assert page.count("<script") == 1
    assert "<script>alert" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert read(page).sections


def test_a_page_of_nothing_that_differs() -> None:
    found = of_another_profile(load(MODEL), "litert-ref")
    reader = read(page_of(explain_report(found, "m.tflite", "d.npz"), VIEW))
    assert (found.verdict, reader.sections) == ("same", ["graph", "operators"])


def test_a_browser_shows_it_without_complaint(found: Findings, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    page = tmp_path / "page.html"
    page.write_text(page_of(explain_report(found, "m.tflite", "d.npz"), VIEW), encoding="utf-8")
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    for scheme in ("0", "1"):
        done = subprocess.run(
            [browser, *arguments, f"--blink-settings=preferredColorScheme={scheme}", page.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert "CONSOLE" not in done.stderr
        assert done.stdout.count("<svg") > 3


def test_bars_are_as_long_as_their_values() -> None:
    rows = [Bar("a", 1, "1"), Bar("b", 4, "4"), Bar("c", 0, "0"), Bar("<d>", 2, "2")]
    drawn = bars("letter", "size, m", rows)
    assert re.findall(r"width:([\d.]+)%", drawn) == ["25.0", "100.0", "0.0", "50.0"]
    assert re.findall(r"width:([\d.]+)%", bars("letter", "size, m", rows, full=8))[1] == "50.0"
    assert ("&lt;d&gt;" in drawn, "size, m" in drawn) == (True, True)
    assert bars("letter", "size", []) == ""


def test_a_histogram_shows_both_sides_of_0() -> None:
    chart = histogram([(-1, 5), (3, 2)], "distances", 16)
    assert re.findall(r'title="([+-]?\d): (\d+)', chart) == [
        ("-2", "0"),
        ("-1", "5"),
        ("0", "0"),
        ("+1", "0"),
        ("+2", "0"),
        ("+3", "2"),
    ]
    assert re.findall(r"height:([\d.]+)%", chart) == ["0.0", "78.0", "0.0", "0.0", "0.0", "31.2"]
    wide = histogram([(-16, 1), (16, 1)], "distances", 16)
    labels = re.findall(r'class="at">([^<]*)<', wide)
    assert "≥ +16" in histogram([(16, 1)], "distances", 16)
    assert len(list(filter(None, labels))) <= 7, "each has the room of several columns"
    assert labels[16] == "0"
    assert histogram([], "nothing", 16) == ""


def test_a_distribution_marks_what_is_clipped() -> None:
    codes = np.array([-128] * 5 + [0] * 3 + [127], np.int8)
    chart = distribution(codes, "codes", "int8 codes", (-128.0, 127.0))
    assert "5 at the low end, 1 at the high end" in chart
    assert chart.count('class="bad"') == 2
    assert "n = 9" in chart
    assert 'class="bad"' not in distribution(np.array([1.0, 2.0]), "reals", "V")
    assert distribution(np.array([np.nan]), "none", "V") == ""


def test_a_distribution_counts_every_number_once() -> None:
    heights = [float(h) for h in re.findall(r"100v-([\d.]+)h", distribution(np.arange(8, dtype=np.int32), "n", "u"))]
    assert heights == [100.0] * 8


def test_a_line_is_as_high_as_its_values() -> None:
    chart = line([1, 4, 2], "steps", "4 bytes", ("first", "last"), "step")
    assert re.search(r'class="line" d="M0 75\.0L0 75\.0H1L1 0\.0H2L2 50\.0H3"', chart)
    assert "4 bytes" in chart
    assert line([], "none", "", ("", ""), "") == ""


def test_a_heat_map_draws_each_cell_once() -> None:
    values = np.array([[0, 5, -5], [1, 0, -1]])
    drawn = heat_map(values, "map")
    assert f'class="hot{LEVELS}" d="M1 0' in drawn
    assert f'class="cool{LEVELS}" d="M2 0' in drawn
    assert 'class="hot1" d="M0 1' in drawn
    assert len(re.findall(r"M\d+ \d+h1", drawn)) == np.count_nonzero(values)
    assert "<path" not in heat_map(np.zeros((2, 2)), "nothing")


def test_blocks_are_means_of_what_they_hold() -> None:
    values = np.zeros((5, 4))
    values[0, 1], values[1, 0], values[4, 3] = 2, -4, 1
    assert means_of_blocks(values, 3).tolist() == [[-0.5, 0], [0, 0], [0, 0.5]]


def test_channels_show_both_ways() -> None:
    error = np.zeros((1, 2, 2, 3))
    error[0, 0, :, 0], error[0, 1, 1, 2] = 1, -1
    chart = channel_figure(error, "tensor 1")
    assert re.findall(r'class="(above|below)" d="(M[^"]*)"', chart) == [
        ("above", "M0 100v-100.0h.9V100z"),
        ("below", "M2 100v50.0h.9V100z"),
    ]
    assert "2 above" in chart


@pytest.mark.parametrize(
    ("shape", "figures"),
    [((1, 8, 6, 3), 2), ((1, 8, 6, 1), 1), ((4, 10), 2), ((1, 10), 2), ((1, 1, 1, 1000), 2), ((40,), 1), ((), 1)],
)
def test_every_shape_has_its_pictures(shape: tuple[int, ...], figures: int) -> None:
    assert len(list(error_figures(np.ones(shape), "tensor 1", "LSB"))) == figures


@pytest.mark.parametrize(
    ("shape", "expected"), [((4, 10), (4, 10)), ((1, 40), (3, 16)), ((1, 1000), (16, 64)), ((64, 1), (4, 16))]
)
def test_what_is_no_image_is_laid_out_in_rows(shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    values, _ = as_rows(np.ones(shape))
    assert values.shape == expected
    assert values.sum() == np.prod(shape)


def test_a_confusion_matrix_counts_every_sample() -> None:
    found = DecisionAgreement()
    for label, winner in ((0, 0), (0, 1), (1, 1), (1, 1)):
        scores = np.zeros(3)
        scores[winner] = 1
        found.add(np.array([0.5, 0.3, 0.2]), scores, label)
    section = parts_of([outputs_section(Fidelities(4, (), (), 0, found))], VIEW)
    assert re.findall(r'<td class="([a-z]+\d?)">(\d*)</td>', section) == [
        ("cool3", "1"),
        ("hot3", "1"),
        ("clear", ""),
        ("cool5", "2"),
    ]
    assert "rows: right class" in section


def test_points_span_both_axes() -> None:
    chart = scatter([(10, 1, "plain"), (30, 5, "above"), (20, 3, "plain")], "budget", ("5", "1"), ("10", "30"), "bytes")
    assert re.findall(r'class="point (\w+)" d="M([\d.]+) ([\d.]+)h0"', chart) == [
        ("plain", "3.0", "93.0"),
        ("above", "97.0", "7.0"),
        ("plain", "50.0", "50.0"),
    ]
    assert scatter([], "none", ("", ""), ("", ""), "") == ""


def test_the_map_counts_what_differs_and_shows_the_side_of_the_mean() -> None:
    error = np.zeros((1, 2, 2, 4))
    error[0, 0, 1, :2], error[0, 1, 0, 0], error[0, 1, 1] = -1, 5, [1, -1, 0, 0]
    drawn = next(error_figures(error, "tensor 1", "LSB"))
    assert re.findall(r'class="(hot\d|cool\d)" d="([^"]*)"', drawn) == [
        ("hot3", "M0 1h1v1h-1z"),
        ("hot5", "M1 1h1v1h-1z"),  # both sides: not lost, though their mean is 0
        ("cool5", "M1 0h1v1h-1z"),
    ]
    assert "the fullest has 2" in drawn


@pytest.mark.parametrize(("count", "shown", "folded"), [(24, 24, 0), (25, 16, 9)])
def test_many_bars_are_folded_and_counted(count: int, shown: int, folded: int) -> None:
    drawn = bars("letter", "m", [Bar(f"n{i}", i, str(i)) for i in range(count)])
    first, _, rest = drawn.partition("<details>")
    assert (first.count("<tr><th"), rest.count("<tr><th")) == (shown + 1, folded + 1 if folded else 0)
    assert (f"and {folded} more" in rest) == bool(folded)
    assert re.findall(r"width:([\d.]+)%", drawn)[-1] == "100.0"  # one scale for all


def test_the_headline_of_an_explanation_has_the_cause(found: Findings) -> None:
    page = page_of(explain_report(found, "m.tflite", "d.npz"), VIEW)
    headline = re.search(r"<h1>(.*?)</h1>", page)
    assert headline is not None
    assert headline[1].startswith('<span class="verdict bad">DIFFERS</span>')
    assert "cause: litert-opt" in headline[1]
