"""A warning of inputs that a quantized model cannot represent: for forgotten mean and std, never for good data."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tflq
from support import commands, suites
from tflq.comparison.inputs.prepare import Outside, watch
from tflq.errors import InputWarning
from tflq.model.ir import Quantization, TensorSpec, TensorType

MODELS = suites.ROOT / "golden" / "models"
PAIR = (str(MODELS / "digits_mobilenet_float.tflite"), str(MODELS / "digits_mobilenet_int8.tflite"))


def scaled_by(*scales: float) -> Quantization:
    return Quantization(np.array(scales, np.float32), np.zeros(len(scales), np.int64))


#: Codes from -1 to 0.992, as MobileNets have them.
SPEC = TensorSpec("x", TensorType.INT8, (1, 100), quantization=scaled_by(1 / 128))


def digits(count: int = 12) -> NDArray[np.float32]:
    with np.load(MODELS / "digits_test.npz") as file:
        return np.asarray(file["images"][:count], np.float32)


def warned(values: Any, spec: TensorSpec = SPEC, *, has_scaling: bool = False) -> list[str]:
    samples = [{0: np.asarray(value, np.float32)} for value in np.atleast_2d(values)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [id(s) for s in watch(samples, {0: spec}, has_scaling=has_scaling)] == [id(s) for s in samples]
    return [str(one.message) for one in caught]


def test_forgotten_scaling_is_named_with_the_range() -> None:
    (text,) = warned(np.linspace(0, 255, 100))
    assert text.startswith("x: 99 % of its values are far outside [-1, 0.9922]")
    assert "they saturate: the model was calibrated on other samples" in text
    assert "would spread" not in text  # these are no pixels: not whole numbers
    (pixels,) = warned(np.arange(156, 256))
    assert "were mean and std forgotten (--mean, --std)?" in pixels
    assert "--mean 128 --std 128 would spread 0 to 255 over all codes" in pixels
    (scaled,) = warned(np.arange(156, 256), has_scaling=True)
    assert scaled.endswith("are mean and std right?")


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(-1, 1, 100),
        np.ones(100),  # white images: one LSB beyond the last code
        np.zeros(100),
        np.append(np.linspace(-1, 0.9, 99), 400.0),  # one outlier of a hundred
        np.empty(0),
        np.empty((3, 0)),
    ],
)
def test_good_data_and_single_outliers_are_silent(values: NDArray[np.float64]) -> None:
    assert warned(values) == []


def test_outliers_are_counted_over_all_samples() -> None:
    one = np.append(np.linspace(-1, 0.9, 98), [7.0, 8.0])
    assert warned([one, np.zeros(100)]) == []
    assert len(warned([one, one])) == 1


@pytest.mark.parametrize("quantization", [None, scaled_by(), scaled_by(0.5, 0.5), scaled_by(0), scaled_by(np.nan)])
def test_inputs_without_one_scale_have_no_range(quantization: Quantization | None) -> None:
    assert Outside.of(TensorSpec("x", TensorType.INT8, (1, 4), quantization=quantization)) is None
    assert Outside.of(TensorSpec("x", TensorType.FLOAT32, (1, 4))) is None


@pytest.mark.parametrize("infinite", [np.inf, -np.inf, np.nan])
def test_odd_numbers_do_not_break_the_count(infinite: float) -> None:
    assert len(warned(np.full(100, infinite))) == (0 if np.isnan(infinite) else 1)


def test_compare_warns_of_raw_numbers_only() -> None:
    with pytest.warns(InputWarning, match="far outside"):
        tflq.compare(*PAIR, digits())
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        tflq.compare(*PAIR, digits() / 16)


def test_a_float_input_that_quantize_reads_has_the_range_of_its_codes() -> None:
    made = tflq.quantize(PAIR[0], digits(8) / 16, tflq.Recipe(input_type=TensorType.FLOAT32), jobs=1)
    with pytest.warns(InputWarning, match="far outside"):
        tflq.compare(PAIR[0], made.model, digits())


def test_requantizing_warns_of_samples_beyond_the_input() -> None:
    with pytest.warns(InputWarning, match="far outside"):
        tflq.quantize(PAIR[1], digits(8), "fast", requantize=True, jobs=1)


def test_the_warning_is_in_the_document_and_on_standard_error(tmp_path: Path) -> None:
    np.save(tmp_path / "raw.npy", digits())
    words = ["compare", *PAIR, "--inputs", str(tmp_path / "raw.npy")]
    plain = commands.tflq(*words)
    assert (plain.exit_code, plain.stderr.count("tflq: warning:"), "far outside" in plain.stderr) == (0, 1, True)
    document = json.loads(commands.tflq(*words, "--json").stdout)
    (fact,) = [fact for fact in document["facts"] if fact["kind"] == "outside-range"]
    assert fact["values"]["outside"] > 0.01 * fact["values"]["elements"]
    scaled = commands.tflq(*words, "--std", "16")
    assert (scaled.exit_code, "far outside" in scaled.stderr) == (0, False)
    several = commands.tflq(*words[:3], PAIR[1], *words[3:])
    assert several.stderr.count("far outside") == 1
