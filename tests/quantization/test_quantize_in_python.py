"""`tflq.quantize` and `tflq.compare` as Python users call them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import tflq
from support import suites
from support.float_graphs import FloatGraph
from tflq.errors import CalibrationError, FormatError, ModelError, UnknownNameError
from tflq.model.ir import Model, SignatureDef, view
from tflq.quantization.frontier import STEPS
from tflq.quantization.recipe import Methods

GOLDEN = suites.ROOT / "golden" / "models" / "digits_autoencoder_float.tflite"
RECIPE = tflq.Recipe()


def rows(count: int = 9) -> np.ndarray:
    scaled = suites.digits().images[:count]
    graph = view(tflq.load(GOLDEN))
    return scaled.reshape(count, *graph.tensors[graph.inputs[0]].shape)


def bytes_of(model: Any, calibration: Any, folder: Path) -> bytes:
    tflq.quantize(model, calibration, RECIPE).save(folder / "out.tflite")
    return (folder / "out.tflite").read_bytes()


MODELS: dict[str, Callable[[], Any]] = {
    "path": lambda: GOLDEN,
    "string": lambda: str(GOLDEN),
    "bytes": GOLDEN.read_bytes,
    "Model": lambda: tflq.load(GOLDEN),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_is_a_path_bytes_or_a_model(kind: str, tmp_path: Path) -> None:
    assert bytes_of(MODELS[kind](), list(rows()), tmp_path) == bytes_of(GOLDEN, list(rows()), tmp_path)


def npz(folder: Path) -> Path:
    np.savez(folder / "x.npz", x=rows()[:, 0])
    return folder / "x.npz"


def name_of_input() -> str:
    graph = view(tflq.load(GOLDEN))
    return graph.tensors[graph.inputs[0]].name or ""


CALIBRATIONS: dict[str, Callable[[Path], Any]] = {
    "lists": lambda _: [[row] for row in rows()],
    "a generator": lambda _: ([row] for row in rows()),
    "a function": lambda _: lambda: ([row] for row in rows()),
    "dicts by tensor name": lambda _: [{name_of_input(): row} for row in rows()],
    "an npz": npz,
    "the path of an npz as a string": lambda folder: str(npz(folder)),
    "stacked rows": lambda _: rows()[:, 0],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CALIBRATIONS)
def test_calibration_is_any_iterable_of_samples_or_a_file(kind: str, tmp_path: Path) -> None:
    made = bytes_of(GOLDEN, CALIBRATIONS[kind](tmp_path), tmp_path)
    assert made == bytes_of(GOLDEN, [[row] for row in rows()], tmp_path)


def two_inputs() -> Model:
    graph = FloatGraph(0)
    a, b = graph.given(1, 4), graph.given(1, 4)
    made = graph.op("MUL", [a, b], {"fused_activation_function": 0})[0]
    signature = SignatureDef("serving_default", (("right", b), ("left", a)), (("product", made),))
    return replace(graph.model([made]), signature_defs=(signature,))


def test_inputs_go_by_the_names_of_the_signature(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(0, 1, (9, 2, 1, 4)).astype(np.float32)
    x[:, 1] *= 50
    by_name = [{"right": b, "left": a} for a, b in x]
    in_order = [[a, b] for a, b in x]
    assert bytes_of(two_inputs(), by_name, tmp_path) == bytes_of(two_inputs(), in_order, tmp_path)
    model = tflq.load(tmp_path / "out.tflite")
    assert [name for name, _ in (model.signature_defs or ())[0].inputs] == ["right", "left"]
    with pytest.raises(CalibrationError, match=r"sample 1, middle: there is no input of that name"):
        tflq.quantize(two_inputs(), [by_name[0], {"middle": x[1, 0], "left": x[1, 1]}], RECIPE)


def test_a_result_has_a_model_a_report_and_is_saved(tmp_path: Path) -> None:
    result = tflq.quantize(GOLDEN, list(rows()), recipe="fast")
    assert result.save(tmp_path / "m.tflite") == (tmp_path / "m.tflite").stat().st_size
    assert tflq.save(result.model) == (tmp_path / "m.tflite").read_bytes()
    assert [t.type for t in view(tflq.load(tmp_path / "m.tflite")).tensors] == [
        t.type for t in view(result.model).tensors
    ]
    assert result.report.ranking[0].sqnr == max(c.sqnr for c in result.report.ranking)
    again = tflq.compare(GOLDEN, tmp_path / "m.tflite", list(rows()))
    assert again.sqnr == result.report.comparison.sqnr


def test_progress_is_told_and_blas_has_one_thread() -> None:
    told: list[tuple[str, int, int]] = []
    threads: set[int] = set()

    def tell(*words: Any) -> None:
        told.append(words)
        if len(told) < 200:
            threads.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

    tflq.quantize(GOLDEN, list(rows()), "fast", tell)
    assert threads <= {1}
    begun, _, work = next(words for words in told if words[0].startswith("configuration"))
    race = [(what, done) for what, done, total in told if total == work]
    assert begun == f"configuration 1 of at most {work // STEPS}"
    assert [done for _, done in race] == sorted(done for _, done in race)
    assert any(": observing sample " in what for what, _ in race)
    assert any(": refining operator 2 of " in what for what, _ in race)
    assert told[-1] == ("comparing sample", len(list(rows())), len(list(rows())))


def test_a_model_that_is_integer_already_is_refused_with_the_reason() -> None:
    integer = GOLDEN.with_name("digits_mobilenet_int8.tflite")
    graph = view(tflq.load(integer))
    sample = np.zeros(graph.tensors[graph.inputs[0]].shape, np.int8)
    with pytest.raises(ModelError, match="is integer already: none of its 20 operators computes with floats"):
        tflq.quantize(integer, [[sample]] * 8)


def test_what_cannot_be_a_model_or_a_recipe_is_refused() -> None:
    with pytest.raises(FormatError):
        tflq.quantize(b"no model", list(rows()))
    with pytest.raises(UnknownNameError, match="balanced"):
        tflq.quantize(GOLDEN, list(rows()), "quick")
    with pytest.raises(TypeError, match="a path, the bytes of a model or a Model"):
        tflq.quantize(7, list(rows()))  # type: ignore[arg-type]


def test_tensors_that_were_equalized_are_held_against_their_own_values(tmp_path: Path) -> None:
    """Per-tensor figures of one skewed model: with the original they would count factors as noise."""
    graph = FloatGraph(0)
    x = graph.given(1, 6, 6, 3)
    weights = np.random.default_rng(0).normal(0, 0.4, (8, 3, 3, 3)).astype(np.float32)
    factors = np.exp2(np.arange(8) - 4).astype(np.float32)
    options = {"padding": 0, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    first = [x, graph.constant(weights * factors[:, None, None, None]), graph.bias(8)]
    inner = graph.op("CONV_2D", first, {**options, "fused_activation_function": 1})[0]
    last = np.random.default_rng(1).normal(0, 0.4, (2, 3, 3, 8)).astype(np.float32) / factors
    made = graph.op(
        "CONV_2D", [inner, graph.constant(last), graph.bias(2)], {**options, "fused_activation_function": 0}
    )
    data = [[row] for row in np.random.default_rng(2).normal(0, 1, (9, 1, 6, 6, 3)).astype(np.float32)]
    result = tflq.quantize(graph.model(made), data, tflq.Recipe(candidates=(Methods(0.5),)))
    found = {tensor.name: tensor.sqnr for tensor in result.report.comparison.tensors}
    assert found[f"t{inner}/equalized"] > 25
    by_others = tflq.compare(graph.model(made), result.model, data)
    assert by_others.unmatched == 1
    assert by_others.sqnr == result.report.comparison.sqnr


CLASSIFIER = GOLDEN.parent / "digits_mobilenet_float.tflite"


def digits(count: int) -> tuple[np.ndarray, list[int]]:
    with np.load(GOLDEN.parent / "digits_test.npz") as file:
        return file["images"][:count].reshape(count, 8, 8, 1), [int(label) for label in file["labels"][:count]]


def test_mean_std_and_labels_are_taken(tmp_path: Path) -> None:
    """Stored numbers are scaled as if they had been handed in scaled; accuracy counts the right classes."""
    images, labels = digits(8)
    scaled = (images.astype(np.float32) / np.float32(16)).astype(np.float32)
    plain = tflq.quantize(CLASSIFIER, scaled, RECIPE)
    found = tflq.quantize(CLASSIFIER, images, RECIPE, mean=0, std=[16], labels=labels)
    assert tflq.save(found.model) == tflq.save(plain.model)
    agreement = found.report.comparison.agreement
    assert agreement is not None
    assert agreement.accuracies is not None
    before = tflq.compare(CLASSIFIER, CLASSIFIER, scaled, labels).agreement
    assert before is not None
    assert before.accuracies is not None
    assert agreement.accuracies[0] == before.accuracies[0]


def test_labels_must_be_as_many_as_samples() -> None:
    images, labels = digits(8)
    with pytest.raises(tflq.TflqError, match="number of labels: expected 8, got 7"):
        tflq.quantize(CLASSIFIER, images, RECIPE, std=16, labels=labels[:-1])


def test_a_notebook_unfolds_ranking_and_losses() -> None:
    result = tflq.quantize(GOLDEN, list(rows()), "fast")
    shown = result._repr_html_()
    assert f"of {len(result.report.ranking)} by " in shown
    assert "Where most is lost" in shown
    assert len(repr(result).splitlines()) == 3
