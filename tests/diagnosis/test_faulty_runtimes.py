"""Faults that real runtimes have, planted by scalar code of this file: each is among the causes, by its name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.devices import REF, dump, explained, names_of, one, twice_rounded
from support.each import each
from support.single_op import T
from tflq.engine.interpreter import make_plan, run
from tflq.model.ir import Model, view

Array = NDArray[Any]
CODES = np.arange(256, dtype=np.uint8)


def own(model: Model, *inputs: Array) -> Array:
    """Return what the profile makes of inputs."""
    graph = view(model)
    return run(make_plan(model, REF), dict(zip(graph.inputs, inputs, strict=True))).values[graph.outputs[0]]


def leaky(x: np.float32, y: np.float32, alpha: float) -> Model:
    options = ("LeakyReluOptions", {"alpha": alpha})
    return one("LEAKY_RELU", [T("uint8", (256,), x, 100)], T("uint8", (256,), y, 30), options)


def leaky_codes(above: float, below: float) -> Array:
    """The reference's fixed-point arithmetic with those multipliers."""
    made = [30 + twice_rounded(int(c) - 100, above if c >= 100 else below) for c in CODES]
    return np.clip(made, 0, 255).astype(np.uint8)


def parting_scales() -> tuple[np.float32, np.float32]:
    """Scales whose quotient in float32 gives other codes than in float64: 1.5 plus less than half a unit of float32."""
    for k in range(1, 4000):
        y = np.float32(0.02 + k * 1e-6)
        x = np.float32(np.float32(1.5) * y)
        in_float32, in_float64 = float(np.float64(x / y)), float(np.float64(x) / np.float64(y))
        codes = [leaky_codes(m, m * 0.5) for m in (in_float32, in_float64)]
        if in_float32 != in_float64 and (codes[0] != codes[1]).sum() >= 12:
            return x, y
    raise AssertionError("no such scales")


@pytest.mark.slow
def test_a_multiplier_in_float64() -> None:
    x, y = parting_scales()
    wide = np.float64(x) / np.float64(y)
    model = leaky(x, y, 0.5)
    made = leaky_codes(float(wide), float(np.float64(x) * np.float64(np.float32(0.5)) / np.float64(y)))
    found = explained(model, dump(model, [CODES], [made]))
    assert found.first is not None
    assert "multiplier computed in float64" in names_of(found)


@each("options", [(False, True), (True, False), (False, False)])
@each(
    ("name", "place"),
    [
        ("floor", lambda i, size, count: math.floor(i * size / count)),
        ("half up", lambda i, size, count: math.floor((2 * i * size + count) / (2 * count))),
        ("centre", lambda i, size, count: math.floor((2 * i + 1) * size / (2 * count))),
        ("corners", lambda i, size, count: math.floor((2 * i * (size - 1) + count - 1) / (2 * (count - 1)))),
    ],
)
def test_positions_of_the_nearest_pixel(options: tuple[bool, bool], name: str, place: Any) -> None:
    align, half = options
    table = ("ResizeNearestNeighborOptions", {"align_corners": align, "half_pixel_centers": half})
    size = T("int32", (2,), value=np.array([9, 5], np.int32))
    model = one(
        "RESIZE_NEAREST_NEIGHBOR", [T("int8", (1, 6, 7, 2), 0.1, 0), size], T("int8", (1, 9, 5, 2), 0.1, 0), table
    )
    x = np.random.default_rng(0).permutation(np.arange(84)).astype(np.int8).reshape(1, 6, 7, 2)
    rows, columns = ([min(place(i, s, n), s - 1) for i in range(n)] for s, n in ((6, 9), (7, 5)))
    made = x[:, rows][:, :, columns]
    found = explained(model, dump(model, [x], [made]))
    if np.array_equal(made, own(model, x)):
        assert found.first is None
        return
    names = names_of(found)
    expected = {
        "floor": "ignored" if align or half else "rounded down",
        "half up": "rounded half up",
        "centre": "half_pixel_centers taken",
        "corners": "align_corners taken",
    }[name]
    assert any(expected in one_name for one_name in names), names


@pytest.mark.slow
def test_negative_biases_that_lose_their_sign() -> None:
    rng = np.random.default_rng(1)
    weights = rng.integers(-127, 128, (6, 3, 3, 4))
    bias = np.array([-90_000, 70_000, 10, -50_000, -3, 90_000], np.int64)
    model = one(
        "CONV_2D",
        [
            T("int16", (1, 5, 5, 4), 0.001, 0),
            T("int8", (6, 3, 3, 4), [0.01] * 6, 0, 0, weights),
            T("int64", (6,), [1e-5] * 6, 0, 0, bias),
        ],
        T("int16", (1, 5, 5, 6), 0.002, 0),
        ("Conv2DOptions", {"padding": 0, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}),
    )
    x = rng.integers(-20_000, 20_000, (1, 5, 5, 4)).astype(np.int16)
    made = own(model, x).copy()
    made[..., bias < 0] = 32767  # 2**48 LSB of accumulator more
    found = explained(model, dump(model, [x], [made]))
    assert any(name.startswith("sign of negative biases lost") for name in names_of(found))


def test_results_of_one_sign_only() -> None:
    axes = T("int32", (1,), value=np.array([1], np.int32))
    options = ("ReducerOptions", {"keep_dims": False})
    model = one("REDUCE_MAX", [T("int8", (40, 3), 0.1, 4), axes], T("int8", (40,), 0.1, 4), options)
    x = np.random.default_rng(2).integers(-128, 128, (40, 3)).astype(np.int8)
    made = np.minimum(own(model, x), -1).astype(np.int8)
    found = explained(model, dump(model, [x], [made]))
    assert "results of one sign only: the smaller of the result and -1" in names_of(found)


def test_a_shift_that_empties_the_register() -> None:
    scales = np.float32(3e15), np.float32(2e15), np.float32(1e-3)
    model = one(
        "MUL",
        [T("uint8", (1, 256), scales[0], 10), T("uint8", (1, 256), scales[1], 20)],
        T("uint8", (1, 256), scales[2], 7),
        ("MulOptions", {"fused_activation_function": 0}),
    )
    rng = np.random.default_rng(4)
    a, b = (rng.integers(0, 256, (1, 256)).astype(np.uint8) for _ in range(2))
    found = explained(model, dump(model, [a, b], [np.full((1, 256), 7, np.uint8)]))
    assert "litert-opt" in names_of(found)
    assert "shift of 32 or more to the left gives 0" not in names_of(found)  # a constant shows no arithmetic


@pytest.mark.slow
def test_pixels_with_a_scale_of_their_own() -> None:
    """Weights of 1 and -1, pixels of one value each: quantized per pixel they are exact, per image they are not."""
    weights = np.where(np.arange(64).reshape(8, 1, 1, 8) % 3, 127, -127)
    model = one(
        "CONV_2D",
        [
            T("float32", (1, 4, 4, 8)),
            T("int8", (8, 1, 1, 8), [1 / 128] * 8, 0, 0, weights),
            T("float32", (8,), value=np.zeros(8, np.float32)),
        ],
        T("float32", (1, 4, 4, 8)),
        ("Conv2DOptions", {"padding": 1, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}),
    )
    x = np.random.default_rng(5).normal(0, 3, (1, 4, 4, 8)).astype(np.float32)
    made = np.empty((1, 4, 4, 8), np.float32)
    for row, column in np.ndindex(4, 4):
        pixel = x[0, row, column]
        scale = np.float32(np.abs(pixel).max() / np.float32(127))
        codes = [int(math.copysign(math.floor(abs(float(v * (np.float32(1) / scale))) + 0.5), v)) for v in pixel]
        sums = weights.reshape(8, 8) @ np.array(codes)
        made[0, row, column] = sums.astype(np.float32) * (scale * np.float32(1 / 128))
    found = explained(model, dump(model, [x], [made]))
    assert any(name.startswith("quantized per pixel") for name in names_of(found))
