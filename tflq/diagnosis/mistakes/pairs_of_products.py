"""Products of unsigned and signed bytes that are added in pairs with 16 bits: x86's vpmaddubsw without VNNI.

Codes of an input without a sign (an int8 code plus 128) times codes of weights; each pair of neighbouring channels
saturates, sums are exact. Zero points are corrected by sums of weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tflq.diagnosis.mistakes.device import Device, Mistaken
from tflq.diagnosis.mistakes.taps import Contraction, input_of, right_contraction
from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile
from tflq.typing import Array

#: The greatest number of products.
_MOST = 1 << 25


def mistaken_pairs(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield a convolution or dense layer whose pairs of products saturate."""
    if alone.op.builtin == "DEPTHWISE_CONV_2D":
        return
    contraction = right_contraction(alone, profile)
    if contraction is None or contraction.weights.dtype != np.int8:
        return
    x = contraction.image(input_of(alone))
    at, products = contraction.window, contraction.weights.size
    if len(x) * at.out_h * at.out_w * products > _MOST:
        return
    yield "pairs of products saturate at 16 bits, as those of vpmaddubsw", _device(contraction)


def _device(contraction: Contraction) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        (tensor,) = alone.got
        sums = _sums(contraction, contraction.image(input_of(alone)))
        bias = contraction.output.bias[: len(contraction.weights)].astype(np.int64)
        codes = contraction.output.pipeline(sums + bias, np.zeros_like(bias)).reshape(contraction.shape)
        return {tensor: codes}

    return device


def _sums(contraction: Contraction, x: Array) -> Array:
    """Return the sums (N, out_h, out_w, O), less the terms of the zero point."""
    at, w = contraction.window, contraction.weights.astype(np.int64)
    offset = 128 if x.dtype == np.int8 else 0
    zero = contraction.input_zero_point + offset
    share = len(w) // (x.shape[3] // w.shape[3])  # outputs per group
    first = np.arange(len(w)) // share * w.shape[3]
    sums = np.zeros((len(x), at.out_h, at.out_w, len(w)), np.int64)
    for ky in range(w.shape[1]):
        rows = np.arange(at.out_h) * at.stride_h - at.pad_top + ky * at.dilation_h
        for kx in range(w.shape[2]):
            columns = np.arange(at.out_w) * at.stride_w - at.pad_left + kx * at.dilation_w
            inside = ((rows >= 0) & (rows < x.shape[1]))[:, None] & ((columns >= 0) & (columns < x.shape[2]))
            read = x[:, rows.clip(0, x.shape[1] - 1)][:, :, columns.clip(0, x.shape[2] - 1)].astype(np.int64) + offset
            read = np.where(inside[None, :, :, None], read, zero)
            sums += _pair(read, w[:, ky, kx], first)
    corrected: Array = sums - zero * w.reshape(len(w), -1).sum(1)
    return corrected


def _pair(read: Array, w: Array, first: Array) -> Array:
    """Return the sums of one tap, (N, out_h, out_w, O): pairs of channels, from the `first` of each group, saturate."""
    total = np.zeros((*read.shape[:3], len(w)), np.int64)
    for c in range(0, w.shape[1], 2):
        pair = read[..., first + c] * w[:, c]
        if c + 1 < w.shape[1]:
            pair = pair + read[..., first + c + 1] * w[:, c + 1]
        total += np.clip(pair, -(2**15), 2**15 - 1)
    return total
