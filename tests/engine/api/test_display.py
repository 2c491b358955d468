"""What results show of themselves: three lines in a console, markup that escapes every name in a notebook."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.hostile import NAMES
from tflq.devices.suites.run import SuiteOrder, make_suite
from tflq.face.report.blocks import Bar, Bars, Block, Brief, Report, Section, Text
from tflq.face.report.matrices import MatrixBlock, MatrixColumn, MatrixMark, MatrixRow, Strip
from tflq.face.report.render.html import COLOURS, card_html, picture
from tflq.model.ir import Model, view

GOLDEN = suites.ROOT / "golden" / "models"
INT8, FLOAT = GOLDEN / "digits_mobilenet_int8.tflite", GOLDEN / "digits_mobilenet_float.tflite"
MARKUP = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</pre></details>")


class Markup(HTMLParser):
    """Elements and their attributes; whether they are closed as they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def with_evil_names(path: object, names: tuple[str, ...] = (*MARKUP, *NAMES)) -> Model:
    model = tflq.load(path)  # type: ignore[arg-type]
    graph = view(model)
    tensors = tuple(replace(t, name=names[i % len(names)]) for i, t in enumerate(graph.tensors))
    return replace(model, subgraphs=(replace(graph.record, tensors=tensors),))


def dump_of(model: Model, profile: str) -> dict[int, Any]:
    device = tflq.Interpreter(model_content=model, profile=profile, experimental_preserve_all_tensors=True)
    device.allocate_tensors()
    device.set_tensor(0, np.random.default_rng(5).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8))
    device.invoke()
    graph = view(model)
    return {t: device.get_tensor(t) for t in (*graph.inputs, *(t for o in graph.ops for t in o.outputs))}


def check(result: Any) -> None:
    """Three lines that can be printed; HTML of a few elements that no text out of a file has added to."""
    lines = repr(result).split("\n")
    assert len(lines) == 3
    assert all(line.strip() and line.isprintable() for line in lines)
    made = Markup(result._repr_html_())
    assert made.open == []
    assert made.elements <= {"div", "b", "br", "span", "details", "summary", "pre"}
    assert made.attributes <= {"style"}
    assert len(result._repr_html_()) < 200_000


def test_models_and_what_is_read_of_them() -> None:
    evil, other = with_evil_names(INT8), with_evil_names(FLOAT)
    for result in (
        evil,
        tflq.Interpreter(model_content=evil),
        tflq.inspect(evil),
        tflq.diff(other, evil),
        tflq.diff(evil, evil),
        tflq.lint(evil, "tflm"),
        tflq.lint(suites.ROOT / "golden" / "singleop" / "models" / "add_u8_0.tflite", "tflm"),
        tflq.Recipe(mode="int16x8"),
        tflq.Calibration(other, np.zeros((2, 8, 8, 1), np.float32)),
    ):
        check(result)


@pytest.mark.slow
def test_profiles_beside_each_other() -> None:
    for result in (
        tflq.compare_profiles("litert-ref", "litert-opt"),
        tflq.compare_profiles("tflm", "tflm"),
        tflq.profile_effects(with_evil_names(INT8), "litert-ref", ["tflm", "litert-opt"]),
        tflq.profile_effects(INT8, "litert-ref", ["litert-ref"]),
    ):
        check(result)


def test_a_model_without_a_graph() -> None:
    check(replace(tflq.load(INT8), subgraphs=()))


@pytest.mark.slow
def test_what_is_found_of_a_device() -> None:
    evil = with_evil_names(INT8)
    other, same = dump_of(evil, "litert-opt"), dump_of(evil, "litert-ref")
    for result in (
        tflq.explain(evil, other),
        tflq.explain(evil, same),
        tflq.explain(evil, {0: same[0]}),
        tflq.fit(evil, other),
        tflq.fit(evil, {0: same[0]}),
        tflq.reduce(evil, other),
        tflq.reduce(evil, check=lambda model, sample: True),
        tflq.discriminate(evil, other),
        tflq.prove(evil, ["litert-ref", "litert-opt"]),
    ):
        check(result)


def saved(folder: Path, name: str, model: Model, profile: str) -> str:
    np.savez(folder / name, **{str(t): value for t, value in dump_of(model, profile).items()})  # type: ignore[arg-type]
    return str(folder / name)


@pytest.mark.slow
def test_every_verb_has_a_card(tmp_path: Path) -> None:
    evil = with_evil_names(INT8)
    (tmp_path / "evil.tflite").write_bytes(tflq.save(evil))
    recorded = suites.ROOT / "golden" / "singleop" / "recorded"
    conv = suites.ROOT / "golden" / "singleop" / "models" / "tie_conv_i8_0.tflite"
    suite = str(tmp_path / "suite.npz")
    make_suite(suite, SuiteOrder(every=200))
    drift = tflq.diff_goldens(conv, recorded / "tie_conv_i8_0.npz", recorded / "tie_conv_i8_0@litert-opt.npz")
    for result in (
        tflq.why(tmp_path / "evil.tflite", saved(tmp_path, "opt.npz", evil, "litert-opt")),
        tflq.why(tmp_path / "evil.tflite", saved(tmp_path, "ref.npz", evil, "litert-ref")),
        tflq.run(evil),
        tflq.bench(evil, against=(), seconds=0),
        tflq.conform(suite, "profile:tflm"),
        drift,
        tflq.examine(),
        tflq.profile_releases(evil, "2.3"),
        tflq.learn("profile:litert-ref", operators=["RELU"], work=tmp_path / "work"),
    ):
        check(result)


def test_a_card_has_a_picture_and_red_for_a_bad_result() -> None:
    single = suites.ROOT / "golden" / "singleop"
    model, given = tflq.load(single / "models/quantize_i8_0.tflite"), np.load(single / "recorded/quantize_i8_0.npz")
    other = np.load(single / "recorded/quantize_i8_0@litert-opt.npz")
    good, bad = (
        tflq.explain(model, {0: given["s0_in0"], 1: output})._repr_html_()
        for output in (given["s0_out0"], other["s0_out0"])
    )
    red, green = "#e03131", "#00883a"
    assert good.startswith(f'<div><b style="color:{green}">')
    assert bad.startswith(f'<div><b style="color:{red}">')
    squares = [f"background:{colour}" for colour in (red, green)]
    assert [[card.count(square) for square in squares] for card in (good, bad)] == [[0, 1], [1, 0]]
    assert "font-family:ui-monospace" in bad


@pytest.mark.parametrize("style", ["good", "bad", "warning"])
def test_verdicts_of_cards_are_legible_on_white_and_on_black(style: str) -> None:
    channels = [int(COLOURS[style][k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in channels]
    own = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]  # WCAG 2.1
    assert min(1.05 / (own + 0.05), (own + 0.05) / 0.05) >= 4.5


def test_a_card_has_names_whole() -> None:
    name = "a/" * 400 + "end"
    made = card_html(Report("verb", [Brief(name, "then", "what")]))
    assert name in made


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        (Bars("side", "ms", [Bar("<b>", 1.0, "1 ms"), Bar("x", float("inf"), "?"), Bar("y", 0.0, "0")]), "ms by side"),
        (Strip("operators", ["good"] * 1000), "operators"),
        (
            MatrixBlock(
                "profiles", [MatrixColumn("ADD", ("0",))], [MatrixRow(("<i>", "b"), (MatrixMark("=", "good"),))], []
            ),
            "2 profiles",
        ),
        (Section("a", "b", [Strip("inside", ["bad"])]), "inside"),
    ],
)
def test_a_picture_is_drawn_of_each_kind(drawn: Block, words: str) -> None:
    made = str(picture([Text("first"), drawn]))
    assert words in made
    assert "<b>" not in made
    assert "<i>" not in made
    assert len(made) < 100_000
    assert Markup(made).open == []
    assert "%" not in made


def test_nothing_to_draw_is_nothing() -> None:
    assert picture([Text("x"), Bars("a", "b", []), Strip("c", [])]) == ""


@pytest.mark.slow
def test_what_is_measured() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    evil, source = with_evil_names(INT8, MARKUP), with_evil_names(FLOAT, MARKUP)  # LiteRT fails on the other names
    rows = np.random.default_rng(0).random((8, 8, 8, 1), np.float32)
    made = tflq.quantize(source, rows, "fast")
    for result in (
        tflq.verify(evil),
        tflq.verify(evil, "litert-opt", profile="litert-ref"),
        tflq.verify(evil, "litert-opt", profile="litert-ref", mode="cumulative"),
        tflq.record(evil),
        tflq.compare(source, evil, rows),
        made,
        made.report,
    ):
        check(result)


def test_a_long_report_ends() -> None:
    lines = [Text(f"line {i}") for i in range(10_000)]
    made = card_html(Report("verb", [Brief("where", "then", "what"), *lines]))
    assert made.count("line ") == 400
    assert made.endswith("...</pre></details></div>")


def test_a_result_of_each_class_finds_its_builder() -> None:
    """A class names its builder in a text, which no import checks."""
    named = re.compile(r'@display_by\("([\w.]+):(\w+)"[,)]')
    found = [match for path in (suites.ROOT / "tflq").rglob("*.py") for match in named.findall(path.read_text())]
    assert len(found) > 15
    for module, function in found:
        assert callable(getattr(import_module(f"tflq.face.report.verbs.{module}"), function)), module


def test_an_error_of_a_report_shows_in_the_text_and_is_raised_by_the_card() -> None:
    """`repr` must not raise: it is called while other errors are written."""
    broken = replace(tflq.load(suites.ROOT / "golden" / "singleop" / "models" / "relu_i8_1.tflite"), buffers=7)
    assert repr(broken) == "<Model, whose report failed: TypeError: 'int' object is not iterable>"
    with pytest.raises(TypeError):
        broken._repr_html_()
