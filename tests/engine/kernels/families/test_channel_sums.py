"""Loops for sums over taps, channel by channel: both ways against sums over a padded image."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from tflq.engine.kernels.depthwise_conv_2d import tap_offsets
from tflq.engine.kernels.families.channel_sums import TAPS_AT_ONCE, accumulate, convolution
from tflq.engine.kernels.geometry.windows import Padding, Window, axis, slab_into, slab_shape
from tflq.engine.microkernels.taps import tap_sums
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stage_roundings import DoubleRounding
from tflq.engine.numerics.stages import OutputPipeline
from tflq.typing import Array

ZERO, TIMES = 5, 2
PIPELINE = OutputPipeline(DoubleRounding.of(np.full(6, 0.0123)), ZeroPoint(-3), Clamp(-120, 127), np.dtype(np.int8))


def cases() -> list[Window]:
    made = []
    for padding in Padding:
        for stride, dilation in ((1, 1), (2, 1), (1, 2), (3, 2)):
            sides = axis(padding, 9, 3, stride, dilation), axis(padding, 7, 2, stride, dilation)
            assert sides[0] is not None
            assert sides[1] is not None
            made.append(Window.over(*sides))
    return made


def exact(x: Array, w: Array, at: Window) -> Array:
    """Sums of centred codes times weights (taps, C * times), with the image in the middle of zeros."""
    wide = np.zeros((len(x), at.height + 40, at.width + 40, w.shape[1]), np.int64)
    wide[:, 20 : 20 + at.height, 20 : 20 + at.width] = np.repeat(x.astype(np.int64) - ZERO, TIMES, axis=3)
    sums = np.zeros((len(x), at.out_h, at.out_w, w.shape[1]), np.int64)
    for tap in range(at.taps):
        top = 20 - at.pad_top + tap // at.kernel_w * at.dilation_h
        left = 20 - at.pad_left + tap % at.kernel_w * at.dilation_w
        rows = slice(top, top + at.out_h * at.stride_h, at.stride_h)
        sums += wide[:, rows, left : left + at.out_w * at.stride_w : at.stride_w] * w[tap]
    return sums


def operands(at: Window) -> tuple[Array, Array]:
    random = np.random.default_rng(at.stride_h + at.pad_top)
    x = random.integers(-128, 128, (2, at.height, at.width, 3)).astype(np.int8)
    return x, random.integers(-128, 128, (at.taps, 3 * TIMES)).astype(np.int16)


@each("at", cases())
@each("rows", [1, 2, 100])
def test_slabs_of_any_number_of_rows_give_the_same_codes(at: Window, rows: int) -> None:
    x, w = operands(at)
    offsets, bias = tap_offsets(at, w.shape[1])[: at.taps], np.arange(w.shape[1], dtype=np.int32) * 100
    taps = tap_sums(x.dtype, ZERO, w, offsets, bias, PIPELINE)
    if taps is None:
        pytest.skip("no form of int16 pairs for this machine")
    out = np.empty((len(x), at.out_h, at.out_w, w.shape[1]), np.int8)
    rows = min(rows, at.out_h)
    convolution(taps, x, at, TIMES, ZERO, rows, out)()
    np.testing.assert_array_equal(out, PIPELINE(exact(x, w, at), bias))


@pytest.mark.parametrize("at", cases())
def test_plain_loops_give_the_same_sums(at: Window) -> None:
    x, w = operands(at)
    offsets = tap_offsets(at, w.shape[1])
    weights = np.zeros((len(offsets), w.shape[1]), np.int16)
    weights[: at.taps] = w
    assert len(offsets) % TAPS_AT_ONCE == 0
    slab = np.empty((*slab_shape(at, at.out_h), w.shape[1]), np.int16)
    sums = np.empty((at.out_h, at.out_w, w.shape[1]), np.int32)
    slab_into(x[1], ZERO, 0, at, -at.pad_top, TIMES, slab)
    accumulate(slab.reshape(-1), slab[0].size * at.stride_h, weights, offsets, 0, 0, sums)
    np.testing.assert_array_equal(sums, exact(x, w, at)[1])
