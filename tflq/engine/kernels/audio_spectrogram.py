"""AudioSpectrogram: (squared) magnitudes of the spectra of windows that slide along each channel.

| operand | shape                       | types   | quantization |
|---------|-----------------------------|---------|--------------|
| x       | (samples, channels)         | float32 | none         |
| y       | (channels, windows, F + 1)  | float32 | none         |

Options: window_size (from 2), stride (from 1), magnitude_squared. Windows are weighted by a periodic Hann function
and padded with zeros to 2 F samples, a power of two; what does not fill a window at the end is left out. All arithmetic
is float64; squares are rounded to float32 before the root is taken.
Exactness: exact on the same libm (cos and sin of float64).
Source: LiteRT 2.3, audio_spectrogram.cc; internal/spectrogram.cc ProcessCoreFFT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.custom_options import flag, integer, options_of
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import require_rank
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.fourier import transform_rows
from tflq.engine.numerics.fourier_turns import Points, leaf_turns, real_turns, turns
from tflq.engine.numerics.libm_double import cos
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """`length` samples are transformed at a time, those of the window and zeros behind them."""

    window: Array
    stride: int
    length: int
    squared: bool
    shape: Shape
    turns: Points
    leaf: Points
    reals: Points


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare windows, which begin at every stride."""
    x, options = node.input(0), options_of(node)
    require_rank(node, x, 2)
    size, stride = integer(options, "window_size"), integer(options, "stride")
    node.check(size >= 2, "window_size", expected="at least 2", got=size)
    node.check(stride >= 1, "stride", expected="at least 1", got=stride)
    samples, channels = x.shape
    windows = 1 + (samples - size) // stride if samples >= size else 0
    length = 1 << (size - 1).bit_length()
    shape = (channels, windows, 1 + length // 2)
    node.claim(64 * length, "factors of the transform")
    pi = math.atan(1.0) * 4.0
    hann = 0.5 - 0.5 * cos(2.0 * pi * np.arange(size) / size)
    data = OpData(
        window=hann,
        stride=stride,
        length=length,
        squared=flag(options, "magnitude_squared"),
        shape=shape,
        turns=turns(length // 2),
        leaf=leaf_turns(),
        reals=real_turns(length),
    )
    return Prepared((shape,), data, eval_spectrogram, scratch=8 * channels * windows * (length + 2 + 2 * size))


def eval_spectrogram(data: OpData, x: Array) -> Array:
    """Source: Spectrogram::ComputeSquaredMagnitudeSpectrogram."""
    if 0 in data.shape:
        return np.zeros(data.shape, np.float32)
    size = len(data.window)
    slices = np.lib.stride_tricks.sliding_window_view(x.T, size, axis=1)[:, :: data.stride]
    padded = np.zeros((*data.shape[:2], data.length + 2))
    padded[..., :size] = slices * data.window
    points = padded.view(np.complex128)
    transform_rows(points.reshape(-1, points.shape[-1]), data.turns, data.leaf, data.reals)
    points[..., -1] = points[..., 0].imag
    points[..., 0] = points[..., 0].real
    squares = (points.real * points.real + points.imag * points.imag).astype(np.float32)
    return squares if data.squared else np.sqrt(squares)


KERNELS = (Kernel("AudioSpectrogram", "float32 -> float32", prepare),)
