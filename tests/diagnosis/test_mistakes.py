"""Mistakes in a convolution, an average pool and a table, planted by scalar code of this file and named by explain."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support import suites
from support.dense_device import array_of, parameters
from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.explanation import explain_operator
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES
from tflq.model.ir import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    Record,
    Subgraph,
    TensorSpec,
    TensorType,
    view,
)

pytestmark = pytest.mark.slow

Array = NDArray[Any]
MODELS = suites.ROOT / "golden" / "singleop" / "models"
REF = PROFILES["litert-ref"]


def given(path: Path, type_: Any = np.int8) -> tuple[Model, dict[int, Array]]:
    """A model of one operator, inputs that reach every code, and the reference's results."""
    model = load(path)
    graph = view(model)
    rng = np.random.default_rng(5)
    x = {t: rng.integers(-128, 128, graph.tensors[t].shape).astype(type_) for t in graph.inputs}
    return model, dict(run(make_plan(model, REF), x, keep_all=True).values)


def names_of(model: Model, values: dict[int, Array], made: Array) -> list[str]:
    """Names of the causes that reproduce what a device made."""
    result = view(model).op(0).outputs[0]
    dump = Dump("", {**values, result: made})
    return [name for h in explain_operator(OperatorCase(model, (dump,), 0, REF)).exact for name in (h.name, *h.also)]


def rescaled(total: int, real: float) -> int:
    """Half up in the high product, half away from zero in the shift to the right."""
    fraction, shift = math.frexp(real)
    high = (total * math.floor(fraction * 2**31 + 0.5) + (1 << 30)) >> 31
    right = -shift
    assert right > 0
    return int(math.copysign((abs(high) + (1 << right - 1)) >> right, high))


def unsigned(code: int, other: bool) -> int:
    return code & 255 if other else code


def held(total: int, bits: int) -> int:
    return min(max(total, -(1 << bits - 1)), (1 << bits - 1) - 1)


def convolved(model: Model, x: Array, device: dict[str, Any]) -> Array:
    """CONV_2D with SAME padding, stride 2 and RELU6, one element at a time."""
    graph = view(model)
    operator = graph.op(0)
    xs, ws, bs, ys = (graph.tensors[t] for t in (*operator.inputs, *operator.outputs))
    w, bias = array_of(model, ws, np.int8), array_of(model, bs, np.int32).tolist()
    if device.get("filter") == "HWIO":
        w = w.reshape(5, 5, 3, 7).transpose(3, 0, 1, 2)
    if device.get("input") == "NCHW":
        x = x.reshape(x.shape[0], x.shape[3], *x.shape[1:3]).transpose(0, 2, 3, 1)
    if "shifted" in device:
        row = w[device["shifted"]].reshape(-1)
        w = w.copy()
        w[device["shifted"]] = np.concatenate([row[-1:], row[:-1]]).reshape(w.shape[1:])
    for channel in range(*device.get("without_bias", (0, 0))):
        bias[channel] = 0
    step = device.get("step", 2)
    xq, wq, yq = map(parameters, (xs, ws, ys))
    zero, y_zero = int(xq.zero_point[0]), int(yq.zero_point[0])
    x_zero = zero * device.get("zero", 1)
    scales = np.roll(wq.scale, device.get("roll", 0)).tolist()
    out = np.zeros(ys.shape, np.int8)
    top, left = (max((o - 1) * 2 + 5 - n, 0) for o, n in zip(ys.shape[1:3], x.shape[1:3], strict=True))
    top, left = (-(-p // 2) if device.get("side") else p // 2 for p in (top, left))
    six = math.floor(float(np.float32(6) / yq.scale[0]) + 0.5) + y_zero
    for n, oy, ox, o in product(*map(range, ys.shape)):
        total = bias[o] if device.get("first") else 0
        for ky, kx in product(range(5), range(5)):
            row, column = oy * step - top + ky, ox * step - left + kx
            inside = 0 <= row < x.shape[1] and 0 <= column < x.shape[2]
            for c in range(3):
                weight = unsigned(int(w[o, ky, kx, c]), device.get("weights", False))
                if inside:
                    value = unsigned(int(x[n, row, column, c]), device.get("codes", False)) - x_zero
                else:
                    value = device["padding"] - zero if "padding" in device else 0
                total = held(total + value * weight, device.get("bits", 62))
        total = (
            total if device.get("first") else held(total + int(bias[o] * device.get("bias", 1)), device.get("bits", 62))
        )
        code = rescaled(total, float(xq.scale[0]) * scales[o] / float(yq.scale[0])) + y_zero
        code += dict([device["offset"]]).get(o, 0) if "offset" in device else 0
        low, high = device.get("clamp", (max(-128, y_zero), min(127, six)))
        out[n, oy, ox, o] = np.int64(min(max(code, low), high)).astype(np.int8)
    return out


@pytest.mark.parametrize(
    ("device", "cause"),
    [
        ({"codes": True}, "input codes taken for the other signedness"),
        ({"weights": True}, "weights taken for the other signedness"),
        ({"bits": 16}, "accumulator of 16 bits that saturates after each tap, bias last"),
        ({"bits": 16, "first": True}, "accumulator of 16 bits that saturates after each tap, bias first"),
        ({"padding": 0}, "padding stored as 0"),
        ({"padding": -128}, "padding stored as the lowest code"),
        ({"side": True}, "SAME padding on the other side (window)"),
        ({"filter": "HWIO"}, "filter read as HWIO"),
        ({"input": "NCHW"}, "input 0 read as NCHW"),
        ({"zero": 0}, "zero point of input 0 ignored"),
        ({"zero": -1}, "zero point of input 0 with the wrong sign"),
        ({"roll": 1}, "scales of channels: each the previous one's"),
        ({"bias": 0}, "bias missing"),
        ({"bias": 2}, "bias added twice: scaled by 2"),
        ({"clamp": (-128, 127)}, "no activation in place of RELU6"),
        ({"clamp": (-(2**31), 2**31)}, "no clamp: codes wrap (output.pipeline)"),
        ({"clamp": (0, 255)}, "clamp of the unsigned type (output.pipeline)"),
        ({"step": 1}, "stride of 1 in place of its own"),
        ({"offset": (2, 9)}, "offset of +9 in channel 2"),
        ({"shifted": 3}, "weights of channel 3 shifted forwards by one"),
        ({"without_bias": (4, 7)}, "bias missing in channels 4 to 6"),
    ],
)
def test_a_convolution(device: dict[str, Any], cause: str) -> None:
    model, values = given(MODELS / "conv_i8_1.tflite")
    x, result = (values[t] for t in (view(model).inputs[0], view(model).outputs[0]))
    np.testing.assert_array_equal(convolved(model, x, {}), result)
    made = convolved(model, x, device)
    assert (made != result).any()
    assert cause in names_of(model, values, made)


@pytest.mark.parametrize(
    ("device", "causes"),
    [
        ({"bias": 0, "roll": 1}, {"bias missing", "scales of channels: each the previous one's"}),
        ({"zero": -1, "offset": (2, 5)}, {"zero point of input 0 with the wrong sign", "offset of +5 in channel 2"}),
        ({"input": "NCHW", "bias": 0}, {"input 0 read as NCHW", "bias missing"}),
        (
            {"bits": 16, "roll": 1},
            {
                "accumulator of 16 bits that saturates after each tap, bias last",
                "scales of channels: each the previous one's",
            },
        ),
        ({"padding": 0, "step": 1}, {"padding stored as 0", "stride of 1 in place of its own"}),
    ],
)
def test_two_mistakes_at_once(device: dict[str, Any], causes: set[str]) -> None:
    model, values = given(MODELS / "conv_i8_1.tflite")
    made = convolved(model, values[view(model).inputs[0]], device)
    assert causes in [set(name.split("; and ")) for name in names_of(model, values, made)]


def pooled(x: Array, zero: int, rounding: str, padding: int | None) -> Array:
    """AVERAGE_POOL_2D of 3 x 3, stride 1, SAME. `padding` is a code that counts, or None."""
    out = np.zeros_like(x)
    for n, oy, ox, c in product(*map(range, x.shape)):
        seen = [
            int(x[n, y, k, c]) if 0 <= y < x.shape[1] and 0 <= k < x.shape[2] else padding
            for y, k in product(range(oy - 1, oy + 2), range(ox - 1, ox + 2))
        ]
        taps = [code for code in seen if code is not None]
        mean = sum(taps) / len(taps)
        away = math.floor(abs(mean) + 0.5) * (1 if mean > 0 else -1)
        out[n, oy, ox, c] = {"floor": math.floor(mean), "trunc": math.trunc(mean), "away": away}[rounding]
    return out


@pytest.mark.parametrize(
    ("rounding", "padding", "cause"),
    [
        ("floor", None, "average of codes rounded towards minus infinity"),
        ("trunc", None, "average of codes rounded towards zero"),
        ("away", 0, "padding stored as 0"),
        ("away", -18, "padding stored as its zero point"),
    ],
)
def test_an_average_pool(rounding: str, padding: int | None, cause: str) -> None:
    model, values = given(MODELS / "average_pool_2d_i8_3.tflite")
    x, result = (values[t] for t in (view(model).inputs[0], view(model).outputs[0]))
    np.testing.assert_array_equal(pooled(x, -18, "away", None), result)
    assert cause in names_of(model, values, pooled(x, -18, rounding, padding))


@pytest.mark.parametrize(
    ("index", "value", "cause"),
    [
        (1, 0, "table index off by one up"),
        (-1, 0, "table index off by one down"),
        (0, 1, "table value off by one up"),
        (0, -1, "table value off by one down"),
    ],
)
def test_a_table(index: int, value: int, cause: str) -> None:
    """The table is what the reference makes of every code; the device's is off in its index or its values."""
    model = load(MODELS / "logistic_i8_0.tflite")
    graph = view(model)
    x = np.resize(np.arange(-128, 128, dtype=np.int8), graph.tensors[graph.inputs[0]].shape)
    values = dict(run(make_plan(model, REF), {graph.inputs[0]: x}, keep_all=True).values)
    table = dict(zip(x.reshape(-1).tolist(), values[graph.outputs[0]].reshape(-1).tolist(), strict=True))
    assert len(table) == 256
    made = [min(max(table[min(max(code + index, -128), 127)] + value, -128), 127) for code in x.reshape(-1).tolist()]
    assert cause in names_of(model, values, np.array(made, np.int8).reshape(x.shape))


def test_sums_of_a_pool_that_leave_16_bits() -> None:
    """300 taps of codes near the end of their type: the sum wraps, the quotient is of what is left."""
    halves = Quantization(np.array([0.5], np.float32), np.array([-3], np.int64))
    tensors = tuple(
        TensorSpec(name, TensorType.INT8, shape, quantization=halves)
        for name, shape in (("x", (1, 15, 20, 3)), ("y", (1, 1, 1, 3)))
    )
    options = {"filter_height": 15, "filter_width": 20, "stride_h": 1, "stride_w": 1, "padding": 1}
    pool = Operator(0, (0,), (1,), options=Record("Pool2DOptions", options))
    model = Model(3, (OperatorCode(1, "AVERAGE_POOL_2D"),), (Subgraph(tensors, (0,), (1,), (pool,)),), (Buffer(),))
    x = np.random.default_rng(1).integers(112, 128, (1, 15, 20, 3)).astype(np.int8)
    values = dict(run(make_plan(model, REF), {0: x}, keep_all=True).values)
    sums = [sum(int(code) for code in x[..., c].reshape(-1)) for c in range(3)]
    wrapped = [(total + 2**15) % 2**16 - 2**15 for total in sums]
    made = [math.copysign(math.floor(abs(total) / 300 + 0.5), total) for total in wrapped]
    names = names_of(model, values, np.array(made, np.int8).reshape(1, 1, 1, 3))
    assert "average of codes rounded half away from zero, sum of 16 bits that wraps" in names


def test_a_batch_of_which_one_item_is_computed() -> None:
    model, values = given(MODELS / "average_pool_2d_i8_1.tflite")
    result = values[view(model).outputs[0]]
    assert result.shape[0] > 1
    made = result.copy()
    made[1:] = 7
    assert "only the first item of the batch computed, the others hold 7" in names_of(model, values, made)


@pytest.mark.parametrize(
    ("signs", "cause"),
    [((-1, 1), "zero point of input 0 with the wrong sign"), ((1, -1), "zero point of input 1 with the wrong sign")],
)
def test_zero_points_that_are_no_codes(signs: tuple[int, int], cause: str) -> None:
    model, values = given(MODELS / "fc_u8_4.tflite", np.uint8)
    graph = view(model)
    operator = graph.op(0)
    xs, ws, bs, ys = (graph.tensors[t] for t in (*operator.inputs, *operator.outputs))
    x, w, bias = values[operator.inputs[0]], array_of(model, ws, np.uint8), array_of(model, bs, np.int32)
    (xq, wq, yq), result = map(parameters, (xs, ws, ys)), values[operator.outputs[0]]
    real = float(xq.scale[0]) * float(wq.scale[0]) / float(yq.scale[0])

    def computed(x_sign: int, w_sign: int) -> Array:
        left = x.reshape(-1, w.shape[1]).astype(np.int64) - x_sign * int(xq.zero_point[0])
        sums = left @ (w.astype(np.int64) - w_sign * int(wq.zero_point[0])).T + bias
        codes = [rescaled(int(total), real) + int(yq.zero_point[0]) for total in sums.reshape(-1)]
        return np.clip(codes, 0, 255).astype(np.uint8).reshape(result.shape)

    np.testing.assert_array_equal(computed(1, 1), result)
    made = computed(*signs)
    assert (made != result).any()
    assert cause in names_of(model, values, made)
