"""Mfcc: cepstral coefficients of squared spectra, on the mel scale.

| operand     | shape                       | types   | quantization |
|-------------|-----------------------------|---------|--------------|
| spectrogram | (channels, frames, F >= 2)  | float32 | none         |
| rate        | one element                 | int32   | none         |
| y           | (channels, frames, C)       | float32 | none         |

Options: upper_frequency_limit, lower_frequency_limit (whole Hz), filterbank_channel_count, dct_coefficient_count (C).
A spectrum that ends below the upper limit gives zeros. All arithmetic is float64, rounded at the end.
Exactness: exact on the same libm (log, log1p and cos of float64).
Source: LiteRT 2.3, mfcc.cc; internal/mfcc.cc, mfcc_dct.cc, mfcc_mel_filterbank.cc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.custom_options import integer, options_of
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import integer as value_of
from tflq.engine.kernels.operands import require_rank
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.libm_double import cos, log, log1p
from tflq.typing import Array

_FLOOR = 1e-12  # of what goes into the logarithm


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
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


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse options that LiteRT's initialisation does not accept: they fail its run."""
    x = node.input(0)
    require_rank(node, x, 3)
    options, rate = options_of(node), value_of(node, 1)
    upper, lower = (np.float32(integer(options, f"{side}_frequency_limit")) for side in ("upper", "lower"))
    filters, coefficients = integer(options, "filterbank_channel_count"), integer(options, "dct_coefficient_count")
    node.check(filters >= 1, "filterbank_channel_count", expected="at least 1", got=filters)
    node.check(rate > 0, "sample rate", expected="positive", got=rate)
    node.check(x.shape[2] >= 2, "bins", x, expected="at least 2", got=x.shape[2])
    node.check(bool(0 <= lower < upper), "frequency limits", expected="0 <= lower < upper", got=(lower, upper))
    node.check(1 <= coefficients <= filters, "dct_coefficient_count", expected=f"1 to {filters}", got=coefficients)
    node.claim(8 * (3 * filters * (coefficients + 4) + 8 * x.shape[2]), "filters and cosines")
    first, last, bands, weights = filterbank(x.shape[2], rate, filters, float(lower), float(upper))
    shape = (*x.shape[:2], coefficients)
    cosines = transform(filters, coefficients)
    return Prepared((shape,), OpData(first, last, bands, weights, cosines, shape), eval_mfcc)


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


def eval_mfcc(data: OpData, x: Array, _: Array) -> Array:
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


KERNELS = (Kernel("Mfcc", "float32 int32 -> float32", prepare, shape_operands=(1,)),)
