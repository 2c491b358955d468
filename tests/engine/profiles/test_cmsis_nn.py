"""The profiles of TensorFlow Lite Micro with CMSIS-NN's and ESP-NN's kernels: dumps of the libraries, and formulas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.running import run
from support.single_op import T, build
from tflq.comparison.evidence.dumps import load_dumps
from tflq.comparison.results import over_samples
from tflq.diagnosis.localization import localize_samples
from tflq.engine.numerics.multiplier import quantize_multiplier
from tflq.engine.profiles import by_name
from tflq.errors import UndefinedResultError

Array = np.ndarray[Any, Any]
BUILDS = {"cmsis_double": "tflm-cmsis-nn", "cmsis_single": "tflm-cmsis-nn-single", "espnn": "tflm-esp-nn"}
#: Dumps of faults that TensorFlow Lite Micro does not reach, or that belong to one chip's kernel.
FAULTS = ("espnn_conv_dilation", "espnn_s3_avgpool")


def test_every_operator_of_the_recorded_devices(shared: Path) -> None:
    index = json.loads((shared / "devices" / "index.json").read_text(encoding="utf-8"))
    compared = 0
    for entry in index:
        build_name = next((b for b in BUILDS if entry["dump"].startswith(b)), None)
        if build_name is None or Path(entry["dump"]).stem in FAULTS:
            continue
        model = tflq.load(shared / entry["model"])
        dumps = load_dumps(model, shared / "devices" / entry["dump"], None, None)
        for operator in over_samples(localize_samples(model, dumps, by_name(BUILDS[build_name]))):
            for difference in operator.differences.values():
                compared += difference.elements
                assert (difference.differing, difference.problem) == (0, ""), (entry["dump"], operator)
    assert compared > 100_000


@pytest.mark.parametrize("same", [True, False])
def test_broadcast_products_are_not_the_library_s(same: bool) -> None:
    """MUL int8: once, half up, where shapes are equal; by TensorFlow Lite Micro, twice, where they are not."""
    rng = np.random.default_rng(3)
    b_shape = (6, 50) if same else (1, 50)
    model = build("MUL", [T("int8", (6, 50), 0.25), T("int8", b_shape, 0.25)], [T("int8", (6, 50), 1.0)])
    a, b = rng.integers(-40, 41, (6, 50), np.int8), rng.integers(-40, 41, b_shape, np.int8)
    (got,) = run(model, [a, b], "tflm-cmsis-nn-single")
    product = a.astype(np.int64) * b  # LSB of 1/16
    once = (product + 8) >> 4
    high, below = (product + 1) >> 1, np.int64(7)  # 2**30 in Q31, then 3 bits, half away from zero
    twice = (high >> 3) + ((high & below) > (3 + (high < 0)))
    assert quantize_multiplier(0.0625) == (2**30, -3)
    assert (once != twice).any()
    assert np.array_equal(got, np.clip(once if same else twice, -128, 127))


def test_weights_with_a_zero_point_in_a_pointwise_convolution() -> None:
    """Three dimensions and a depth of four or eight: the zero point of the weights is not looked at."""
    rng = np.random.default_rng(4)
    for shape, depth, seen in (((2, 3), 8, False), ((2, 3), 6, True), ((6,), 8, True)):
        x = T("int8", (*shape, depth), 0.5, 3)
        w = T("int8", (5, depth), 0.25, 7, value=rng.integers(-50, 51, (5, depth), np.int8))
        options = ("FullyConnectedOptions", {"keep_num_dims": True})
        model = build("FULLY_CONNECTED", [x, w], [T("int8", (*shape, 5), 16.0, -1)], options, version=4)
        codes = rng.integers(-128, 128, (*shape, depth), np.int8)
        (got,) = run(model, [codes], "tflm-cmsis-nn-single")
        assert w.value is not None
        sums = (codes.astype(np.int64) - 3) @ (w.value.astype(np.int64) - 7 * seen).T
        assert np.array_equal(got, np.clip(((sums + 64) >> 7) - 1, -128, 127)), (shape, depth)


@pytest.mark.parametrize(("profile", "lowest"), [("tflm", -20), ("tflm-cmsis-nn", -50), ("tflm-cmsis-nn-single", -50)])
def test_a_transposed_convolution_ignores_the_fused_activation(profile: str, lowest: int) -> None:
    """One weight of 1: the code of the input less 30, in LSB of the input, which a RELU would keep from -20 up."""
    shape, w = T("int32", (4,), value=np.array([1, 1, 2, 1])), T("int8", (1, 1, 1, 1), 1.0, value=np.ones((1, 1, 1, 1)))
    options = ("TransposeConvOptions", {"padding": 1, "stride_w": 1, "stride_h": 1, "fused_activation_function": 1})
    y = T("int8", (1, 1, 2, 1), 1.0, -20)
    model = build("TRANSPOSE_CONV", [shape, w, T("int8", (1, 1, 2, 1), 1.0)], [y], options, version=4)
    (got,) = run(model, [np.array([-30, 30], np.int8).reshape(1, 1, 2, 1)], profile)
    assert got.reshape(-1).tolist() == [lowest, 10]


def test_16_bits_with_a_bias_of_32_bits_are_refused() -> None:
    w = T("int8", (1, 1, 1, 2), 0.5, value=np.ones((1, 1, 1, 2), np.int8))
    bias = T("int32", (1,), 0.25, value=np.ones(1, np.int32))
    options = ("Conv2DOptions", {"stride_w": 1, "stride_h": 1})
    model = build("CONV_2D", [T("int16", (1, 2, 2, 2), 0.5), w, bias], [T("int16", (1, 2, 2, 1), 0.5)], options)
    with pytest.raises(UndefinedResultError, match="scratch buffer"):
        run(model, [np.zeros((1, 2, 2, 2), np.int16)], "tflm-cmsis-nn")


@pytest.mark.parametrize(
    ("built", "own", "other"),
    [("double", "tflm-cmsis-nn", "tflm-cmsis-nn-single"), ("single", "tflm-cmsis-nn-single", "tflm-cmsis-nn")],
)
def test_what_the_library_itself_computes(built: str, own: str, other: str) -> None:
    """Dumps of tools/make_cmsis_dump.py: 16 operators of CMSIS-NN 99f736a, compiled with each rounding."""
    golden = suites.ROOT / "golden"
    model = tflq.load(golden / "models" / "digits_mobilenet_int8.tflite")
    dumps = load_dumps(model, golden / "dumps" / f"digits_mobilenet_int8.cmsis_{built}.npz")
    found = localize_samples(model, dumps, by_name(own))[0]
    assert sum(bool(o.differences) for o in found) == 16
    assert not any(o.differs for o in found)
    assert sum(o.differs for o in localize_samples(model, dumps, by_name(other))[0]) > 8
