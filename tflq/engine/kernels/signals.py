"""Spectra: AudioSpectrogram, Mfcc, RFFT2D, and Hadamard's transform.

AudioSpectrogram: (squared) magnitudes of the spectra of windows that slide along each channel.

| operand | shape                       | types   | quantization |
|---------|-----------------------------|---------|--------------|
| x       | (samples, channels)         | float32 | none         |
| y       | (channels, windows, F + 1)  | float32 | none         |

Options: window_size (from 2), stride (from 1), magnitude_squared. Windows are weighted by a periodic Hann function
and padded with zeros to 2 F samples, a power of two; what does not fill a window at the end is left out. All arithmetic
is float64; squares are rounded to float32 before the root is taken.
Exactness: exact on the same libm (cos and sin of float64).
Source: LiteRT 2.3, audio_spectrogram.cc; internal/spectrogram.cc ProcessCoreFFT.

Mfcc: cepstral coefficients of squared spectra, on the mel scale.

| operand     | shape                       | types   | quantization |
|-------------|-----------------------------|---------|--------------|
| spectrogram | (channels, frames, F >= 2)  | float32 | none         |
| rate        | one element                 | int32   | none         |
| y           | (channels, frames, C)       | float32 | none         |

Options: upper_frequency_limit, lower_frequency_limit (whole Hz), filterbank_channel_count, dct_coefficient_count (C).
A spectrum that ends below the upper limit gives zeros. All arithmetic is float64, rounded at the end.
Exactness: exact on the same libm (log, log1p and cos of float64).
Source: LiteRT 2.3, mfcc.cc; internal/mfcc.cc, mfcc_dct.cc, mfcc_mel_filterbank.cc.

RFFT2D: the two-dimensional Fourier transform of reals; half of the spectrum is given.

| operand    | shape                   | types     | quantization |
|------------|-------------------------|-----------|--------------|
| x          | ..., H, W               | float32   | none         |
| fft_length | 2                       | int32     | none         |
| y          | ..., FH, FW / 2 + 1     | complex64 | none         |

Options: none. fft_length = FH, FW: powers of two; the image is cut or padded with zeros at its far ends.
Where FW is 1, columns are not transformed, as in the source.
Exactness: exact on the same libm (cos and sin in float64).
Source: LiteRT 2.3 rfft2d.cc; fft2d 1.0 fftsg2d.c rdft2d.

aeq.hadamard_rotation: a Walsh-Hadamard transform of each run of elements, as ai-edge-quantizer puts into models.

| operand | shape                         | types          | quantization |
|---------|-------------------------------|----------------|--------------|
| x       | rank 2 or more                | float32, int32 | none         |
| y       | any of as many elements as x  | float32, int32 | none         |

Options: hadamard_size; another number than a power of two leaves x as it is. random_binary_vector does not count. The
bits of int32 are taken as those of float32.
Source: LiteRT 2.3, hadamard_rotation.cc. Of the resolvers only the optimized one has it, since LiteRT 1.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces, most
from tflq.engine.kernels.checks import integer as value_of
from tflq.engine.kernels.checks import integers, require_rank, require_rank_from
from tflq.engine.kernels.families.custom_options import flag, option_integer, options_of
from tflq.engine.kernels.kernel import SAME_LIBM, Call, Kernel, Node, Prepared, Shape, filling
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.fourier import (
    Points,
    leaf_turns,
    real_turns,
    transform_columns,
    transform_image,
    transform_rows,
    turns,
)
from tflq.engine.numerics.libm import cos, log, log1p
from tflq.model.ir import CARRIER
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
    size, stride = option_integer(options, "window_size"), option_integer(options, "stride")
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


_AUDIO_SPECTROGRAM = (Kernel("AudioSpectrogram", "float32 -> float32", prepare),)


_FLOOR = 1e-12  # of what goes into the logarithm


@dataclass(frozen=True, slots=True, eq=False)
class MfccData:
    """Bins `first` to `last` of a spectrum go into the filters.

    `bands[i]` is the filter on whose falling side bin i lies (-1: none), `weights[i]` its part there; the rest of it
    goes into the next filter. `cosines` has a row for each coefficient.
    """

    first: int
    last: int
    bands: Array
    weights: Array
    cosines: Array
    shape: Shape


def prepare_mfcc(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse options that LiteRT's initialisation does not accept: they fail its run."""
    x = node.input(0)
    require_rank(node, x, 3)
    options, rate = options_of(node), value_of(node, 1)
    upper, lower = (np.float32(option_integer(options, f"{side}_frequency_limit")) for side in ("upper", "lower"))
    filters, coefficients = (
        option_integer(options, "filterbank_channel_count"),
        option_integer(options, "dct_coefficient_count"),
    )
    node.check(filters >= 1, "filterbank_channel_count", expected="at least 1", got=filters)
    node.check(rate > 0, "sample rate", expected="positive", got=rate)
    node.check(x.shape[2] >= 2, "bins", x, expected="at least 2", got=x.shape[2])
    node.check(bool(0 <= lower < upper), "frequency limits", expected="0 <= lower < upper", got=(lower, upper))
    node.check(1 <= coefficients <= filters, "dct_coefficient_count", expected=f"1 to {filters}", got=coefficients)
    node.claim(8 * (3 * filters * (coefficients + 4) + 8 * x.shape[2]), "filters and cosines")
    first, last, bands, weights = filterbank(x.shape[2], rate, filters, float(lower), float(upper))
    shape = (*x.shape[:2], coefficients)
    cosines = transform(filters, coefficients)
    return Prepared((shape,), MfccData(first, last, bands, weights, cosines, shape), eval_mfcc)


def mel(frequency: Array) -> Array:
    """Source: FreqToMel."""
    return np.asarray(1127.0 * log1p(np.asarray(frequency, np.float64) / 700.0))


def filterbank(bins: int, rate: int, filters: int, lower: float, upper: float) -> tuple[int, int, Array, Array]:
    """Return first and last bin, bands and weights. Source: MfccMelFilterbank::Initialize."""
    low, high = float(mel(np.array(lower))), float(mel(np.array(upper)))
    spacing = (high - low) / float(filters + 1)
    centres = low + spacing * np.arange(1, filters + 2)
    step = 0.5 * rate / float(bins - 1)  # Hz
    first, last = int(1.5 + lower / step), int(upper / step)
    mels = mel(np.arange(bins) * step)
    bands = np.minimum(np.searchsorted(centres, mels, side="left"), filters) - 1
    left = np.where(bands >= 0, centres[np.maximum(bands, 0)], low)
    weights = (centres[bands + 1] - mels) / (centres[bands + 1] - left)
    return first, last, bands, weights


def transform(length: int, coefficients: int) -> Array:
    """Source: MfccDct::Initialize."""
    turn = math.atan(1.0) * 4.0 / length
    angles = (np.arange(coefficients) * turn)[:, None] * (np.arange(length) + 0.5)
    return math.sqrt(2.0 / length) * cos(angles)


def eval_mfcc(data: MfccData, x: Array, _: Array) -> Array:
    """Source: Mfcc::Compute. Sums go bin by bin and filter by filter."""
    if data.last >= x.shape[2]:
        return np.zeros(data.shape, np.float32)
    frames = np.sqrt(x.reshape(-1, x.shape[2]).astype(np.float64))
    filtered = np.zeros((len(frames), data.cosines.shape[1]))
    _filter(frames, data.weights, data.bands, data.first, data.last, filtered)
    levels = log(np.where(filtered < _FLOOR, _FLOOR, filtered))
    out = np.empty((len(frames), len(data.cosines)))
    _transform(levels, data.cosines, out)
    return out.astype(np.float32).reshape(data.shape)


@in_pieces(2, frames="r", out="r")
@compiled
def _filter(frames: Array, weights: Array, bands: Array, first: Int, last: Int, out: Array) -> None:
    """Prepare guarantees: `weights` and `bands` have an entry for every bin, bands are in [-1, filters), `out` is
    (frames, filters). Eval guarantees: `last` is a bin.
    """
    for frame in range(len(frames)):
        for i in range(first, last + 1):
            falling = frames[frame, i] * weights[i]
            band = bands[i]
            if band >= 0:
                out[frame, band] += falling
            if band + 1 < out.shape[1]:
                out[frame, band + 1] += frames[frame, i] - falling


@in_pieces(lambda levels, cosines, out: len(levels) * cosines.size, levels="r", out="r")
@compiled
def _transform(levels: Array, cosines: Array, out: Array) -> None:
    """Prepare guarantees: `levels` is (frames, filters), `cosines` (coefficients, filters), `out` (frames,
    coefficients).
    """
    for frame in range(len(levels)):
        for i in range(len(cosines)):
            total = 0.0
            for j in range(cosines.shape[1]):
                total += cosines[i, j] * levels[frame, j]
            out[frame, i] = total


_MFCC = (Kernel("Mfcc", "float32 int32 -> float32", prepare_mfcc, shape_operands=(1,)),)


#: Work of a transform for each number.
_EACH = 80


@dataclass(frozen=True, slots=True, eq=False)
class Rfft2DData:
    """Sizes in elements and the factors of both directions."""

    height: int
    width: int
    shape: Shape  # of the output
    rows: Points
    reals: Points
    columns: Points
    leaf: Points


def prepare_rfft2d(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse lengths that are no powers of two."""
    x, length = node.input(0), node.input(1)
    require_rank_from(node, x, 2)
    require_rank(node, length, 1)
    values = integers(node, 1)
    node.check(
        len(values) == 2 and all(v > 0 and v & (v - 1) == 0 for v in values),
        "fft_length",
        length,
        expected="two powers of two",
        got=list(values),
    )
    height, width = values
    node.claim(64 * (height + width), "factors of the transform")
    shape = (*x.shape[:-2], height, width // 2 + 1)
    data = Rfft2DData(height, width, shape, turns(width // 2), real_turns(width), turns(height), leaf_turns())
    return Prepared((shape,), data, evaluate, scratch=8 * height * (width + 4))


@filling(lambda data, *_: (data.shape, np.complex64))
def evaluate(data: Rfft2DData, out: Array, x: Array, fft_length: Array) -> Call:
    """Source: Rfft2dHelper. Rounding: float64 throughout, float32 at the end."""
    images = x.reshape(prod(x.shape[:-2]), *x.shape[-2:])[:, : data.height, : data.width]
    a = np.zeros((data.height, data.width + 2))
    spectra = out.view(np.float32).reshape(len(images), data.height, 2 * (data.width // 2 + 1))
    if data.width == 1 or a.size > most(_EACH):
        return partial(_one_by_one, data, images, a, spectra)
    room = a.view(np.complex128), np.empty(data.height, np.complex128)
    return fill_spectra.bound(images, spectra, a, *room, data.rows, data.reals, data.columns, data.leaf)


def _one_by_one(data: Rfft2DData, images: Array, a: Array, out: Array) -> None:
    for image, target in zip(images, out, strict=True):
        a[...] = 0
        a[: image.shape[0], : image.shape[1]] = image
        _transform_rfft2d(data, a)
        _untangle(a)
        _unpack(a)
        spread = a[:, : target.shape[1]]
        target[:, ::2], target[:, 1::2] = spread[:, ::2], -spread[:, 1::2]


@in_pieces(lambda images, out, a, *_: len(images) * a.size * _EACH, images="n", out="n")
@compiled
def fill_spectra(
    images: Array,
    out: Array,
    a: Array,
    z: Points,
    column: Points,
    rows: Points,
    reals: Points,
    columns: Points,
    leaf: Points,
) -> None:
    """Fill `out` (N, FH, FW + 2) with pairs of the spectra of `images` (N, at most FH, at most FW).

    `a` (FH, FW + 2) and `z` are the same memory, as numbers and as pairs; FW is at least 2. The steps are those of
    `_one_by_one`.

    Prepare guarantees: these shapes; `column` has FH points, and the tables are those of these sizes.
    """
    height, last = a.shape[0], a.shape[1] - 2
    half = height // 2
    for n in range(images.shape[0]):
        a[:] = 0
        for i in range(images.shape[1]):
            for j in range(images.shape[2]):
                a[i, j] = images[n, i, j]
        transform_image(z, column, rows, reals, columns, leaf)
        for i in range(1, half):
            low, high = a[i], a[height - i]
            for j in range(2):
                high[j] = 0.5 * (low[j] - high[j]) if j == 0 else 0.5 * (low[j] + high[j])
                low[j] -= high[j]
            high[last], high[last + 1] = high[1], high[0]
            low[last], low[last + 1] = high[last], -high[last + 1]
            high[0], high[1] = low[0], -low[1]
        nyquist, middle = a[0, 1], a[half, 1]
        a[0, last + 1] = a[0, 1] = 0
        a[half, last] = middle
        a[half, last + 1] = a[half, 1] = 0
        a[0, last] = nyquist
        for i in range(height):
            for j in range(0, last + 2, 2):
                out[n, i, j] = a[i, j]
                out[n, i, j + 1] = -a[i, j + 1]


def _transform_rfft2d(data: Rfft2DData, a: Array) -> None:
    """Source: rdft2d."""
    if data.width == 1:
        a[:, 1] = a[:, 0]
        a[:, 0] += 0.0  # takes the sign off a zero
        return
    z = a.view(np.complex128)
    transform_rows(z, data.rows, data.leaf, data.reals)
    transform_columns(z, data.width // 2, data.columns, data.leaf)


def _mirror(a: Array) -> tuple[Array, Array]:
    """Return rows 1 to half, and those that hold the negative frequencies of each."""
    half = a.shape[0] // 2
    return a[1:half], a[:half:-1][: max(half - 1, 0)]


def _untangle(a: Array) -> None:
    """Separate frequencies 0 and FW/2, which went through the columns as one complex number. Source: rdft2d_sub."""
    low, high = _mirror(a)
    high[:, 0] = 0.5 * (low[:, 0] - high[:, 0])
    low[:, 0] -= high[:, 0]
    high[:, 1] = 0.5 * (low[:, 1] + high[:, 1])
    low[:, 1] -= high[:, 1]


def _unpack(a: Array) -> None:
    """Give frequency FW/2 its own column, and every row its value. Source: Rfft2dReorder, except for the last signs."""
    half, last = a.shape[0] // 2, a.shape[1] - 2
    low, high = _mirror(a)
    real, imaginary = high[:, 0].copy(), high[:, 1].copy()
    high[:, last], high[:, last + 1] = imaginary, real
    low[:, last], low[:, last + 1] = imaginary, -real
    high[:, 0], high[:, 1] = low[:, 0], -low[:, 1]
    nyquist = a[0, 1]
    a[0, last + 1] = a[0, 1] = 0
    a[half, last] = a[half, 1]
    a[half, last + 1] = a[half, 1] = 0
    a[0, last] = nyquist


_RFFT2D = (
    Kernel("RFFT2D", "float32 int32 -> complex64", prepare_rfft2d, (1, 1), shape_operands=(1,), exactness=SAME_LIBM),
)


@dataclass(frozen=True, slots=True, eq=False)
class HadamardRotationData:
    """Output shape and type; elements of a run, how many runs are transformed, and the factor, 1 / sqrt(size)."""

    shape: Shape
    dtype: np.dtype[np.generic]
    size: int
    runs: int
    factor: np.float32


def prepare_hadamard_rotation(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Keep the output's declared shape. The factor is a float64 root and quotient, rounded to float32."""
    x, y = node.input(0), node.outputs[0]
    require_rank_from(node, x, 2)
    node.check(prod(y.shape) == prod(x.shape), "number of elements", y, expected=prod(x.shape), got=prod(y.shape))
    size = option_integer(options_of(node), "hadamard_size")
    node.check(size > 0, "custom option hadamard_size", expected="1 or more", got=size)
    rows = x.shape[:3] if len(x.shape) == 3 else x.shape[:2]  # of higher ranks only the first two axes count
    runs = prod(rows[:-1]) * (rows[-1] // size) if size & (size - 1) == 0 else 0
    data = HadamardRotationData(y.shape, CARRIER[y.type], size, runs, np.float32(1 / np.sqrt(np.float64(size))))
    return Prepared((y.shape,), data, evaluate_hadamard_rotation, work=prod(x.shape) * size.bit_length())


def evaluate_hadamard_rotation(data: HadamardRotationData, x: Array) -> Array:
    """Source: Eval, FWHTFast. Rounding: one float32 sum or difference for each butterfly, then one product."""
    y = x.reshape(-1).copy().view(np.float32)
    block = y[: data.runs * data.size].reshape(data.runs, data.size)
    half = 1
    while half < data.size:
        pairs = block.reshape(data.runs, data.size // (2 * half), 2, half)
        first, second = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
        pairs[:, :, 0], pairs[:, :, 1] = first + second, first - second
        half *= 2
    block *= data.factor
    return y.view(data.dtype).reshape(data.shape)


_HADAMARD_ROTATION = (
    Kernel("aeq.hadamard_rotation", "float32|int32 -> float32|int32", prepare_hadamard_rotation, (1, 1)),
)

#: The rows of all operators above.
KERNELS = (*_AUDIO_SPECTROGRAM, *_MFCC, *_RFFT2D, *_HADAMARD_ROTATION)
