"""`tflq quantize` and `tflq compare`: exit codes, lines, documents, pages, and what bad input is told."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support import suites
from support.commands import document, tflq, validate
from support.float_graphs import FloatGraph
from tflq.engine.api.files import load, save
from tflq.face.report.verbs.quantize_texts import plain_text
from tflq.model.ir import view
from tflq.quantization.recipe import PRESETS, Methods

pytestmark = pytest.mark.slow

GOLDEN = suites.ROOT / "golden" / "models"
FLOAT, INT8 = (GOLDEN / f"digits_mobilenet_{kind}.tflite" for kind in ("float", "int8"))
SHAPE = (8, 8, 1)


def images(count: int) -> np.ndarray:
    return suites.digits().images[:count].reshape(-1, *SHAPE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calibration rows, labels, and what `tflq quantize` makes of the float model."""
    home = tmp_path_factory.mktemp("quantize")
    with np.load(GOLDEN / "digits_test.npz") as file:
        np.savez(home / "rows.npz", x=images(24), y=file["labels"][:24])
    words = ["--calibration", home / "rows.npz", "--recipe", "fast", "-o", home / "int8.tflite"]
    result = tflq("quantize", FLOAT, *words, "--sensitivity", "--html", home / "page.html", "--json")
    assert result.exit_code == 0, result.output
    (home / "report.json").write_text(result.stdout)
    return home


def test_the_document_says_what_was_made(folder: Path) -> None:
    found = json.loads((folder / "report.json").read_text())
    for kind, part in (("quantize", found), ("recipe", found["recipe"])):
        validate(part, kind)
    assert found["output"]["size"] == (folder / "int8.tflite").stat().st_size
    assert found["comparison"]["samples"] == 24
    assert len(found["ranking"]) == len(found["recipe"]["candidates"])
    assert {s["operator"] for s in found["sensitivities"]} <= set(range(len(view(load(FLOAT)).ops)))
    if found["check"]["reason"] is None:
        assert (found["check"]["verdict"], found["check"]["differing"]) == ("same", 0)


def test_the_model_has_int8_edges_and_no_float_operator(folder: Path) -> None:
    graph = view(load(folder / "int8.tflite"))
    assert {graph.tensors[t].type.label for t in (*graph.inputs, *graph.outputs)} == {"int8"}
    assert all(graph.tensors[t].type.label != "float32" for o in graph.ops for t in o.outputs)


def test_the_page_stands_alone(folder: Path) -> None:
    page = (folder / "page.html").read_text()
    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections == ["choice", "outputs", "graph", "tensors", "sensitivity", "next", "recipe"]
    assert not re.search(r'(src|href)="(?!data:|#)|@import|url\(', page)
    assert page.count('class="bars"') == 4  # configurations, tensors, ranges, sensitivities


def test_a_browser_shows_the_page_without_complaint(folder: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run(
        [browser, *options, (folder / "page.html").as_uri()], capture_output=True, text=True, timeout=120, check=False
    )
    assert "CONSOLE" not in done.stderr
    assert '<g class="box cool' in done.stdout or '<g class="box hot' in done.stdout


def test_the_first_screen(folder: Path) -> None:
    out = folder / "screen.tflite"
    result = tflq("quantize", FLOAT, "--calibration", folder / "rows.npz", "--recipe", "fast", "-o", out)
    assert result.exit_code == 0
    first = result.stdout.splitlines()
    figures = r"(SQNR of the outputs [\d.]+ dB|same top-1 as in float in [\d.]+% of \d+ samples .*)"
    assert re.fullmatch(rf"{out}: {figures}, .*(fitted to|cross-validated)", first[0])
    assert first[1].startswith(f"int8, int8 in, int8 out, {FLOAT.stat().st_size:,} to ")
    assert f"Best of {len(PRESETS['fast'].candidates)} by " in result.stdout
    assert first[-1] == f"Next: tflq compare {FLOAT} {out} --inputs OTHER_SAMPLES"


def test_options_replace_what_the_recipe_says(folder: Path) -> None:
    out = folder / "mixed.tflite"
    words = ["--mode", "int16x8", "--input-type", "float32", "--keep-float", "SOFTMAX", "--json"]
    result = tflq("quantize", FLOAT, "--calibration", folder / "rows.npz", "--recipe", "fast", "-o", out, *words)
    found = document(result, "quantize")
    assert found["recipe"]["mode"] == "int16x8"
    assert [(o["op"], o["text"]) for o in found["kept_float"]] == [("SOFTMAX", "asked for")]
    model = load(out)
    graph = view(model)
    assert graph.tensors[graph.inputs[0]].type.label == "float32"
    kinds = {o.builtin: graph.tensors[o.outputs[0]].type.label for o in graph.ops}
    assert (kinds["SOFTMAX"], kinds["CONV_2D"]) == ("float32", "int16")


def test_a_budget_spares_the_most_sensitive(folder: Path) -> None:
    out = folder / "budget.tflite"
    words = ["--budget", "sqnr>=60, spared=float", "--json"]
    result = tflq("quantize", FLOAT, "--calibration", folder / "rows.npz", "--recipe", "fast", "-o", out, *words)
    found = document(result, "quantize")
    assert result.exit_code in (0, 5)
    assert found["comparison"]["sqnr"] >= 60
    spared = {o["index"] for o in found["spared"]}
    assert spared == {s["operator"] for s in found["sensitivities"][: len(spared)]}
    assert spared == {o["index"] for o in found["kept_float"]}


def test_an_operator_without_an_integer_kernel_stays_in_float_and_is_named(tmp_path: Path) -> None:
    graph = FloatGraph(1)
    made = graph.unary("RELU", graph.unary("COS", graph.unary("RELU", graph.given(1, 4))))
    save(graph.model([made]), tmp_path / "m.tflite")
    np.save(tmp_path / "rows.npy", np.linspace(-1, 1, 40, dtype=np.float32).reshape(10, 4))
    words = ["--calibration", tmp_path / "rows.npy", "--recipe", "fast", "-o", tmp_path / "out.tflite"]
    result = tflq("quantize", tmp_path / "m.tflite", *words)
    assert result.exit_code in (0, 5)
    assert "stays in float: 1 COS (LiteRT has no integer kernel for it)" in result.stdout


def saved(folder: Path, rows: Any) -> Path:
    np.save(folder / "bad.npy", rows)
    return folder / "bad.npy"


def with_nan(count: int, sample: int) -> np.ndarray:
    rows = images(count)
    rows[sample, 2, 3, 0] = np.nan
    return rows


BAD_DATA: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "shape": (lambda: np.zeros((3, 7, 8, 1), np.float32), {"sample": 0}, "shape does not match"),
    "nan": (lambda: with_nan(9, 5), {"sample": 5}, "holds nan at [0, 2, 3, 0]"),
    "integers": (lambda: np.ones((3, *SHAPE), np.uint8), {"sample": 0}, "mean and std"),
    "empty": (lambda: np.zeros((0, *SHAPE), np.float32), {"sample": None}, "there are no samples"),
    "zero": (lambda: np.zeros((9, *SHAPE), np.float32), {"sample": None}, "is 0 in all samples"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_samples_are_told_by_tensor_and_number(name: str, tmp_path: Path) -> None:
    make, facts, message = BAD_DATA[name]
    words = ["quantize", FLOAT, "--calibration", saved(tmp_path, make()), "-o", tmp_path / "out.tflite"]
    found = document(tflq(*words, "--json"), "error")
    assert (found["kind"], found["exit_code"]) == ("CalibrationError", 2)
    assert message in found["message"]
    assert found["facts"]["sample"] == facts["sample"]
    if name != "empty":
        assert found["facts"]["name"] == view(load(FLOAT)).tensors[view(load(FLOAT)).inputs[0]].name
    assert not (tmp_path / "out.tflite").exists()


def test_activations_that_never_change_are_no_error(tmp_path: Path) -> None:
    rows = np.repeat(images(1), 9, axis=0)
    words = ["--calibration", saved(tmp_path, rows), "--recipe", "fast", "-o", tmp_path / "out.tflite"]
    assert tflq("quantize", FLOAT, *words).exit_code == 0


def test_samples_far_beyond_the_others_are_pointed_out(tmp_path: Path) -> None:
    rows = images(12)
    rows[7] *= 100
    words = ["--calibration", saved(tmp_path, rows), "--recipe", "fast", "-o", tmp_path / "out.tflite"]
    assert "more than ten times the median: 7" in tflq("quantize", FLOAT, *words).stdout


def test_mean_and_std_say_what_stored_numbers_stand_for(tmp_path: Path) -> None:
    floats = images(9)
    save_as = {"floats": floats, "integers": np.round(floats * 16 + 3).astype(np.uint8)}
    made = []
    for name, rows in save_as.items():
        np.save(tmp_path / f"{name}.npy", rows)
        scaling = ["--mean", "3", "--std", "16"] if name == "integers" else []
        words = ["--calibration", tmp_path / f"{name}.npy", "--recipe", "fast", "-o", tmp_path / f"{name}.tflite"]
        done = tflq("quantize", FLOAT, *words, *scaling)
        assert done.exit_code == 0
        assert (" --mean 3 --std 16" in done.stdout) == (name == "integers")
        made.append((tmp_path / f"{name}.tflite").read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--recipe", "fastest"], "no preset 'fastest'; did you mean fast?; there are: fast"),
        (["--recipe", "no-such.json"], "No such file"),
        (["--mode", "int4"], "no mode 'int4'"),
        (["--input-type", "int32"], "no input_type 'int32'"),
        (["--keep-float", "nobody"], "'nobody'"),
        (["--budget", "sqnr>35"], "no bound 'sqnr>35'"),
        (["--mean", "a"], "'a' is not a number"),
        (["--std", "0"], "std not 0"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_misuse_is_told_before_work_begins(words: list[str], message: str, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    result = tflq("quantize", FLOAT, "--calibration", folder / "rows.npz", "-o", out, *words)
    assert (result.exit_code, out.exists()) == (2, False)
    assert message in result.stderr


def test_a_file_is_replaced_only_on_demand(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    out.write_bytes(b"mine")
    words = ["quantize", FLOAT, "--calibration", folder / "rows.npz", "--recipe", "fast", "-o", out]
    result = tflq(*words)
    assert (result.exit_code, out.read_bytes()) == (2, b"mine")
    assert "--force" in result.stderr
    assert tflq(*words, "-f").exit_code == 0
    assert out.read_bytes() == (folder / "int8.tflite").read_bytes()


def test_compare_takes_any_pair(folder: Path, tmp_path: Path) -> None:
    words = ["compare", FLOAT, INT8, "--inputs", folder / "rows.npz"]
    found = document(tflq(*words, "--json"), "compare")
    assert (found["reference"]["path"], found["comparison"]["samples"]) == (str(FLOAT), 24)
    assert found["comparison"]["agreement"]["accuracy"] is None
    result = tflq(*words, "--labels", folder / "rows.npz", "--all", "--html", tmp_path / "page.html")
    assert (result.exit_code, "accuracy" in result.stdout) == (0, True)
    page = (tmp_path / "page.html").read_text()
    assert re.findall(r'<section id="(\w+)"', page)[:3] == ["outputs", "graph", "tensors"]
    assert "<svg" in page


def test_compare_takes_two_integer_models(folder: Path, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(-128, 128, (4, *SHAPE), np.int8)
    words = ["compare", INT8, folder / "int8.tflite", "--inputs", saved(tmp_path, rows)]
    found = document(tflq(*words, "--json"), "compare")
    assert (found["comparison"]["samples"], found["comparison"]["unmatched"]) == (4, 0)
    same = document(tflq("compare", INT8, INT8, "--inputs", saved(tmp_path, rows), "--json"), "compare")
    assert same["comparison"]["sqnr"] == "Infinity"


@pytest.mark.parametrize("labels", ["1 2 3", "1 " * 25, "a b", ""])
def test_labels_are_one_a_sample(labels: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text(labels)
    words = ["--inputs", folder / "rows.npz", "--labels", tmp_path / "labels.txt"]
    result = tflq("compare", FLOAT, INT8, *words)
    assert result.exit_code == 2
    assert "labels" in result.stderr


def test_models_with_other_inputs_cannot_be_compared(folder: Path) -> None:
    result = tflq("compare", FLOAT, GOLDEN / "digits_autoencoder_int8.tflite", "--inputs", folder / "rows.npz")
    assert result.exit_code == 2
    assert "inputs" in result.stderr or "outputs" in result.stderr


def test_several_runtimes_are_told_of_on_screen_in_the_document_and_on_the_page(folder: Path) -> None:
    out, page = folder / "several.tflite", folder / "several.html"
    recipe = folder / "one.json"
    recipe.write_text('{"candidates": [{}, {"equalize": 0.5}]}')
    words = ["quantize", FLOAT, "--calibration", folder / "rows.npz", "--recipe", recipe, "-f", "-o", out]
    words += ["--runtimes", "litert-xnnpack,tflm"]
    found = document(tflq(*words, "--html", page, "--json"), "quantize")
    told = found["runtimes"]
    assert told["runtimes"] == ["litert-xnnpack", "tflm"]
    assert (found["recipe"]["profile"], found["recipe"]["runtimes"]) == ("litert-xnnpack", ["tflm"])
    assert len(told["operators"]) == len(view(load(out)).ops)
    assert all(candidate["differing"] is not None for candidate in found["ranking"])
    first = tflq(*words).stdout
    assert f"{told['differing'][0]:,} on tflm of {told['elements']:,} elements of the outputs" in first
    worst = max(told["operators"], key=lambda o: o["differing"][0] / o["elements"])
    assert re.search(rf"{worst['index']} +{worst['op']} +{worst['elements']:,} +{worst['differing'][0]:,}", first)
    assert '<section id="runtimes"' in page.read_text()
    assert "Where runtimes differ" in page.read_text()


def test_without_further_runtimes_nothing_is_said_of_them(folder: Path) -> None:
    assert json.loads((folder / "report.json").read_text())["runtimes"] is None


def test_images_without_mean_and_std_are_warned_of(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    photos = tmp_path / "photos"
    photos.mkdir()
    for k in range(8):
        values = np.random.default_rng(k).integers(0, 256, (8, 8), dtype=np.uint8)
        images.fromarray(values).save(photos / f"{k}.png")
    float_model = GOLDEN / "digits_mobilenet_float.tflite"
    words = ["quantize", float_model, "--calibration", photos, "--recipe", "fast", "-q"]
    plain = tflq(*words, "-o", tmp_path / "a.tflite")
    assert "warning: images enter as 0 to 255, which few models take" in plain.stderr
    assert "images enter" not in tflq(*words, "--std", "255", "-o", tmp_path / "b.tflite").stderr
    assert "images enter" not in tflq(*words, "--std", "1", "-o", tmp_path / "c.tflite").stderr


def test_one_operator_in_float_wins_back_what_is_said(tmp_path: Path) -> None:
    source = GOLDEN / "digits_autoencoder_float.tflite"
    with np.load(GOLDEN / "digits_test.npz") as digits:
        np.save(tmp_path / "x.npy", digits["images"][:60].astype(np.float32) / 16)
    words = ["quantize", source, "--calibration", tmp_path / "x.npy", "--recipe", "fast"]
    found = document(tflq(*words, "--sensitivity", "-o", tmp_path / "a.tflite", "--json"), "quantize")
    won = found["wins_back"]
    assert won is not None
    again = document(tflq(*words, "--keep-float", won["operator"], "-o", tmp_path / "b.tflite", "--json"), "quantize")
    assert again["comparison"]["sqnr"] >= found["comparison"]["sqnr"] + 0.5
    assert again["output"]["size"] > found["output"]["size"]
    text = tflq(*words, "--sensitivity", "-f", "-o", tmp_path / "a.tflite").stdout
    named = f"gains most in float, of {won['tried']} operators tried: {won['operator']} {won['op']}; "
    assert f"{named}--keep-float {won['operator']} gives outputs of" in text
    assert "gains most" not in tflq(*words, "-f", "-o", tmp_path / "a.tflite").stdout


def test_a_coarse_operator_has_its_reason_and_what_advice_would_try(tmp_path: Path) -> None:
    graph = FloatGraph(3)
    plain = {"fused_activation_function": 0}
    small = graph.op("MUL", [graph.given(1, 16), graph.constant([0.05])], plain)[0]
    large = graph.op("MUL", [graph.unary("TANH", small), graph.constant([20.0])], plain)[0]
    save(graph.model([large]), tmp_path / "f.tflite")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(32, 1, 16)).astype(np.float32))
    words = ("quantize", tmp_path / "f.tflite", "--calibration", tmp_path / "x.npy", "-o", tmp_path / "q.tflite", "-f")
    done = tflq(*words, "--recipe", "fast")
    assert done.exit_code == 0, done.output
    (line,) = re.findall("--advise would try (.*), and say what each wins back", done.stdout)
    assert re.findall("`([^`]*)`", line)[0] == "--keep-float 1"
    assert "1 TANH is coarse: its kernel fixes the output's scale at 1/128, and its values, -0.1" in done.stdout
    advised = tflq(*words, "--recipe", "fast", "--advise", "--json")
    tried = [" ".join(trial["options"]) for trial in json.loads(advised.stdout)["advice"]["trials"]]
    assert sorted(tried) == sorted(re.findall("`([^`]*)`", line))
    assert "--advise would try" not in tflq(*words, "--recipe", "fast", "--keep-float", "1").stdout


def test_plain_min_max_stands_beside_the_best() -> None:
    def row(equalize: float | None, ratio: float) -> Any:
        score = None if ratio < 0 else SimpleNamespace(sqnr=ratio, samples=8, divergences=None)
        return SimpleNamespace(
            methods=Methods(equalize), score=score, sqnr=ratio, divergence=math.nan, agreement=0.5, error="", left=None
        )

    best = [row(0.5, 31.0), row(0.6, 30.0), row(0.7, 29.0)]
    report: Any = SimpleNamespace(ranking=[*best, row(0.8, 28.0), row(None, 25.5)])
    assert plain_text(report, 3) == "Plain min-max, place 5: scores 25.5 dB, same top-1 50.0%"
    assert plain_text(report, 5) == ""  # a listed row has it
    assert plain_text(SimpleNamespace(ranking=best), 3) == ""  # type: ignore[arg-type]
