"""Products with constant matrices: the same codes on the integer units, with sums in between, and as floats."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.engine.kernels.families import contraction
from tflq.engine.kernels.families.contraction import (
    FloatProducts,
    FusedProducts,
    Output,
    Patches,
    PlainRows,
    SummedProducts,
    products,
)
from tflq.engine.kernels.geometry.windows import Axis, Window
from tflq.engine.microkernels import kernel as forms
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stage_roundings import DoubleRounding
from tflq.engine.numerics.stages import OutputPipeline, repeat

pytestmark = pytest.mark.skipif(forms.choose(False) is None, reason="no form for this machine")


def window(height, width, kernel, stride, dilation, before):
    axes = []
    for size in (height, width):
        reach = (kernel - 1) * dilation + 1
        axes.append(Axis(size, kernel, stride, dilation, (size + 2 * before - reach) // stride + 1, before))
    return Window.over(*axes)


def convolved(x, zero_point, weights, at, groups):
    """Sums of a convolution, one tap after the other; `weights` (O, KH, KW, C / G), centred."""
    filters, depth = weights.shape[0], weights.shape[3]
    sums = np.zeros((x.shape[0], at.out_h, at.out_w, filters), np.int64)
    for index in np.ndindex(sums.shape):
        n, oy, ox, o = index
        first = o // (filters // groups) * depth
        for ky, kx in np.ndindex(at.kernel_h, at.kernel_w):
            y = oy * at.stride_h - at.pad_top + ky * at.dilation_h
            column = ox * at.stride_w - at.pad_left + kx * at.dilation_w
            if 0 <= y < at.height and 0 <= column < at.width:
                pixel = x[n, y, column, first : first + depth].astype(np.int64) - zero_point
                sums[index] += pixel @ weights[o, ky, kx]
    return sums


class OwnStage(DoubleRounding):
    """A stage that no micro-kernel knows."""

    __slots__ = ()

    def vector_steps(self, largest):
        return None


def target(stage, channels, code, rng):
    info = np.iinfo(code)
    bias = rng.integers(-500, 500, channels).astype(np.int32)
    pipeline = OutputPipeline(
        stage.of(rng.uniform(0.001, 0.01, channels)), ZeroPoint(3), Clamp(int(info.min), int(info.max)), code
    )
    return Output(repeat(bias), pipeline), bias


CONVOLUTIONS = [
    # height, width, channels, groups, filters, kernel, stride, dilation, padding
    (9, 8, 3, 1, 20, 3, 2, 1, 1),
    (7, 7, 6, 2, 8, 3, 1, 2, 2),
    (5, 6, 4, 4, 4, 2, 1, 1, 0),
    (4, 4, 5, 1, 33, 1, 2, 1, 0),
]


@pytest.mark.slow
@pytest.mark.parametrize("way", [FusedProducts, SummedProducts, FloatProducts])
@pytest.mark.parametrize("codes", [np.uint8, np.int8])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_patches(case, codes, way, monkeypatch):
    height, width, channels, groups, filters, kernel, stride, dilation, before = case
    rng = np.random.default_rng(channels)
    at = window(height, width, kernel, stride, dilation, before)
    info = np.iinfo(codes)
    x = rng.integers(info.min, info.max, (2, height, width, channels), endpoint=True).astype(codes)
    weights = rng.integers(-128, 128, (filters, kernel, kernel, channels // groups)).astype(np.int16)
    output, bias = target(OwnStage if way is SummedProducts else DoubleRounding, filters, np.dtype(codes), rng)
    if way is FloatProducts:
        monkeypatch.setattr(contraction, "fuse", lambda *_: ())
        monkeypatch.setattr(contraction, "summed", lambda *_: ())
    zero_point = int(info.min) + 100
    rows = Patches(zero_point, at, channels // groups)
    matrices = np.split(weights.reshape(filters, -1).T, groups, axis=1)
    want = convolved(x, zero_point, weights, at, groups)
    count = want.size // filters
    made = products(rows, matrices, np.dtype(codes), count, output)
    assert isinstance(made, way)
    out = np.zeros((count, filters), codes)
    made.into(x, out)()
    np.testing.assert_array_equal(out, output.pipeline(want.reshape(count, filters), bias))


@pytest.mark.parametrize("way", [FusedProducts, SummedProducts, FloatProducts])
@pytest.mark.parametrize("rows", [0, 1, 2, 5, 100])
def test_plain_rows(rows, way, monkeypatch):
    """Values behind the last whole row are not read."""
    rng = np.random.default_rng(rows)
    x = rng.integers(-128, 128, rows * 37 + 4).astype(np.int8)
    weights = rng.integers(-128, 128, (37, 21)).astype(np.int16)
    output, bias = target(OwnStage if way is SummedProducts else DoubleRounding, 21, np.dtype(np.int8), rng)
    if way is FloatProducts:
        monkeypatch.setattr(contraction, "fuse", lambda *_: ())
        monkeypatch.setattr(contraction, "summed", lambda *_: ())
    made = products(PlainRows(-7, rows, 37), [weights], np.dtype(np.int8), rows, output)
    assert isinstance(made, way)
    out = np.zeros((rows, 21), np.int8)
    made.into(x, out)()
    sums = (x[: rows * 37].reshape(rows, 37).astype(np.int64) + 7) @ weights.astype(np.int64)
    np.testing.assert_array_equal(out, output.pipeline(sums, bias))
