"""Convolutions and dense products, with scales and biases that matter.

CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and TRANSPOSE_CONV, with scales that test their roundings.

Sums that need every bit of their register: many taps of one sign, and biases far beyond 24 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tflq.devices.grids.directed import drawn_scale, of_bits, parting_sum
from tflq.devices.suites.draft import CODES, KINDS, Draft, Sample, T, samples_of, zero_point
from tflq.typing import Array

KERNELS = ((1, 1), (3, 3), (2, 3), (5, 1))
ACTIVATIONS = {0: "no activation", 1: "RELU", 3: "RELU6"}
SAME, VALID = 0, 1
FILTERS = 6


@dataclass(frozen=True, slots=True)
class Regime:
    """Scales of one kind. `gain` is the approximate number of output codes over which the sums spread."""

    aim: str
    gain: float = 60.0
    powers: bool = False  # scales are powers of two
    channelwise: bool = False
    ends: bool = False  # zero points at the ends of their range


REGIMES = (
    Regime("ties: multipliers that are powers of two", powers=True),
    Regime("odd multipliers"),
    Regime("a multiplier a channel", channelwise=True),
    Regime("saturation: sums far beyond the output's range", gain=4000.0),
    Regime("small multipliers: large shifts", gain=2.0, channelwise=True),
    Regime("zero points at the ends", ends=True, powers=True),
)


class ContractionScales:
    """Draws of tensors for one regime."""

    def __init__(self, rng: np.random.Generator, regime: Regime, kind: str) -> None:
        self.rng, self.regime, self.kind = rng, regime, kind

    def scale(self, low: float, high: float) -> float:
        """Return a float32 scale between two powers of two."""
        exponent = self.rng.uniform(low, high)
        return float(np.float32(2.0 ** (round(exponent) if self.regime.powers else exponent)))

    def zero(self, kind: str) -> int:
        """Return a zero point of activations."""
        if self.regime.ends and kind != "int16":
            return int(self.rng.choice(CODES[kind]))
        return zero_point(self.rng, kind)

    def image(self, shape: tuple[int, ...]) -> T:
        """Return the input activations."""
        return T(self.kind, shape, self.scale(-8, -4), self.zero(self.kind))

    def weights(self, shape: tuple[int, ...], axis: int) -> T:
        """Return constant weights that include the ends of the range."""
        kind = "uint8" if self.kind == "uint8" else "int8"
        low, high = CODES[kind]
        value = self.rng.integers(low + (kind == "int8"), high + 1, shape)
        value.reshape(-1)[:2] = (high, low + (kind == "int8"))[: value.size]
        if kind == "uint8":
            return T(kind, shape, self.scale(-9, -5), int(self.rng.integers(90, 160)), value=value)
        if self.regime.channelwise:
            scales = [self.scale(-11, -5) for _ in range(shape[axis])]
            return T(kind, shape, scales, [0] * shape[axis], axis, value)
        return T(kind, shape, self.scale(-9, -5), 0, value=value)

    def bias(self, x: T, w: T, channels: int) -> T:
        """Return a constant bias, in the scale of the sums."""
        scales = np.atleast_1d(np.asarray(w.scale, np.float32)) * np.float32(x.scale)
        reach = 200_000 if self.kind == "int16" else 4_000
        value = self.rng.integers(-reach, reach, channels)
        kind = "int64" if self.kind == "int16" else "int32"
        several = len(scales) > 1
        scale: Any = scales if several else float(scales[0])
        return T(kind, (channels,), scale, [0] * len(scales) if several else 0, 0, value)

    def result(self, x: T, w: T, shape: tuple[int, ...], length: int) -> T:
        """Return the output tensor; its scale spreads sums of `length` products over about `gain` codes."""
        spread = {"int8": 5500.0, "uint8": 5500.0, "int16": 1.4e6}[self.kind] * length**0.5
        gain = self.regime.gain * (256 if self.kind == "int16" else 1)
        real = float(np.mean(np.asarray(w.scale))) * float(x.scale) * spread / gain
        exponent = np.log2(real) + self.rng.uniform(-0.5, 0.5)
        scale = float(np.float32(2.0 ** (round(exponent) if self.regime.powers else exponent)))
        return T(self.kind, shape, scale, self.zero(self.kind))


def drafts(seed: int) -> Iterator[Draft]:
    """Yield all four operators."""
    rng = np.random.default_rng([seed, 1])
    for regime, kind in product(REGIMES, KINDS):
        scales = ContractionScales(rng, regime, kind)
        for activation in ACTIVATIONS:
            yield from _windows(scales, activation)
            yield from _dense(scales, activation)
        yield from _transpose(scales)


def _aim(scales: ContractionScales, activation: int, more: str = "") -> str:
    return "; ".join(filter(None, (scales.regime.aim, more, ACTIVATIONS[activation])))


def _windows(scales: ContractionScales, activation: int) -> Iterator[Draft]:
    forms = [(k, s, p, 1, 1) for k, s, p in product(KERNELS, (1, 2), (SAME, VALID))]
    forms += [((3, 3), 1, p, 2, 1) for p in (SAME, VALID)] + [((3, 3), 1, SAME, 1, 2)]
    for kernel, stride, padding, dilation, several in forms:
        options = {
            "padding": padding,
            "stride_h": stride,
            "stride_w": stride,
            "dilation_h_factor": dilation,
            "dilation_w_factor": dilation,
            "fused_activation_function": activation,
        }
        height, width = 6, 5
        reach = [(k - 1) * dilation + 1 for k in kernel]
        out = [outputs(n, r, stride, padding) for n, r in zip((height, width), reach, strict=True)]
        more = f"dilation {dilation}" if dilation > 1 else "groups or several filters a channel" if several > 1 else ""
        x = scales.image((1, height, width, 4))
        w = scales.weights((FILTERS, *kernel, 4 // several), 0)
        y = scales.result(x, w, (1, *out, FILTERS), kernel[0] * kernel[1] * 4 // several)
        yield _draft("CONV_2D", scales, _aim(scales, activation, more), x, w, y, ("Conv2DOptions", options), 5)
        w = scales.weights((1, *kernel, 4 * several), 3)
        y = scales.result(x, w, (1, *out, 4 * several), kernel[0] * kernel[1])
        chosen = ("DepthwiseConv2DOptions", {**options, "depth_multiplier": several})
        yield _draft("DEPTHWISE_CONV_2D", scales, _aim(scales, activation, more), x, w, y, chosen, 5)


def outputs(size: int, reach: int, stride: int, padding: int) -> int:
    """Return the number of positions of a window along one axis."""
    return -(-size // stride) if padding == SAME else (size - reach) // stride + 1


def _dense(scales: ContractionScales, activation: int) -> Iterator[Draft]:
    for depth, units, rows in product((1, 3, 8, 33, 64), (1, 5, 16), (1, 3)):
        x = scales.image((rows, depth))
        w = scales.weights((units, depth), 0)
        y = scales.result(x, w, (rows, units), depth)
        options = {"fused_activation_function": activation, "weights_format": 0, "keep_num_dims": False}
        aim = _aim(scales, activation)
        yield _draft("FULLY_CONNECTED", scales, aim, x, w, y, ("FullyConnectedOptions", options), 5)


def _transpose(scales: ContractionScales) -> Iterator[Draft]:
    for kernel, stride, padding in product(((2, 2), (3, 3)), (1, 2), (SAME, VALID)):
        small = (3, 2)
        whole = [n * stride if padding == SAME else (n - 1) * stride + k for n, k in zip(small, kernel, strict=True)]
        x, w = scales.image((1, *small, 4)), scales.weights((FILTERS, *kernel, 4), 0)
        y = scales.result(x, w, (1, *whole, FILTERS), 8)
        shape = T("int32", (4,), value=np.array([1, *whole, FILTERS]))
        bias = scales.bias(x, w, FILTERS)
        inputs = (shape, w, x, bias)
        options = {"padding": padding, "stride_h": stride, "stride_w": stride, "fused_activation_function": 0}
        aim = scales.regime.aim
        chosen = ("TransposeConvOptions", options)
        yield Draft("TRANSPOSE_CONV", aim, inputs, (y,), samples_of(scales.rng, inputs), chosen, 3)


def _draft(op: str, scales: ContractionScales, aim: str, x: T, w: T, y: T, options: Any, version: int) -> Draft:
    inputs = (x, w, scales.bias(x, w, int(y.shape[-1])))
    return Draft(op, aim, inputs, (y,), samples_of(scales.rng, inputs), options, version)


_VALID = 1
#: Number of draws of scales until a bias alone distinguishes the right multiplier from less precise ones.
_DRAWS = 40_000
#: How the aims of these cases begin.
BEYOND = "sums beyond"
_LONG, _BIASED = f"{BEYOND} 24 bits: many taps", f"{BEYOND} 24 bits: bias"
#: By operator: shapes of activations, weights and output; options; the weights' axis of channels.
_WINDOW = {"padding": _VALID, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
_FORMS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], int, tuple[str, dict[str, Any]]], ...] = (
    ("CONV_2D", (1, 4, 4, 64), (4, 3, 3, 64), (1, 2, 2, 4), 0, ("Conv2DOptions", _WINDOW)),
    (
        "DEPTHWISE_CONV_2D",
        (1, 18, 17, 4),
        (1, 17, 17, 4),
        (1, 2, 1, 4),
        3,
        ("DepthwiseConv2DOptions", {**_WINDOW, "depth_multiplier": 1}),
    ),
    ("FULLY_CONNECTED", (2, 640), (4, 640), (2, 4), 0, ("FullyConnectedOptions", {"weights_format": 0})),
)


def extremes_drafts(seed: int, _turn: int = 0, only: str = "") -> Iterator[Draft]:
    """Yield contractions, then averages over large windows; of all operators, or of one."""
    rng = np.random.default_rng([seed, 6])
    for kind in KINDS:
        for op, image, filters, made, axis, options in (form for form in _FORMS if only in ("", form[0])):
            for aim in (_LONG, _BIASED):
                yield _contraction(rng, kind, aim, op, image, filters, made, axis, options)
        if only in ("", "AVERAGE_POOL_2D"):
            yield _average(rng, kind)


def _contraction(
    rng: np.random.Generator,
    kind: str,
    aim: str,
    op: str,
    image: tuple[int, ...],
    filters: tuple[int, ...],
    made: tuple[int, ...],
    axis: int,
    options: tuple[str, dict[str, Any]],
) -> Draft:
    """Return a contraction: channel 0 has only the highest weights, channel 1 only the lowest, the others any."""
    x = T(kind, image, drawn_scale(rng, -8, -5), zero_point(rng, kind))
    low, high = (0, 255) if kind == "uint8" else (-127, 127)
    value = rng.integers(low, high + 1, filters)
    channels = np.moveaxis(value, axis, 0)
    if aim == _LONG:
        channels[0], channels[1] = high, low
    taps, codes = value.size // filters[axis], CODES[kind]
    reach = taps * 127 * (codes[1] - codes[0]) if aim == _LONG else 2**30
    for _ in range(_DRAWS):
        weight, output = drawn_scale(rng, -9, -6), 0.4 * 2.0 ** rng.uniform(-0.5, 0.5)
        product = float(np.float32(float(x.scale) * weight))
        made_scale = float(np.float32(product * reach / (output * (codes[1] - codes[0]))))
        real = float(x.scale) * weight / made_scale
        reals = (float(np.float32(product) / np.float32(made_scale)), of_bits(14)(real), of_bits(31)(real))
        right, *others = (_multiplier(r, kind) for r in (real, *reals[: 2 if kind == "int16" else 3]))
        if aim == _LONG or right not in others:
            parting = [parting_sum(right, other) for other in others]
            if aim == _LONG or None not in parting:
                break
    w = T("uint8" if kind == "uint8" else "int8", filters, weight, 128 * (kind == "uint8"), value=value)
    y = T(kind, made, made_scale, zero_point(rng, kind))
    largest = 2**25 if aim == _BIASED else 2**10
    offsets = rng.integers(-largest, largest, filters[axis])
    if aim == _BIASED:
        chosen = [offset if total is None else total for total, offset in zip(parting, offsets, strict=False)]
        offsets[: len(chosen)] = chosen
    bias = T("int64" if kind == "int16" else "int32", offsets.shape, product, 0, value=offsets)
    inputs = (x, w, bias)
    flat = np.full(image, x.zero_point, kind)  # the sums are the biases
    return Draft(op, aim, inputs, (y,), (*samples_of(rng, inputs), *_full(kind, image), (flat,)), options, 5)


def _multiplier(real: float, kind: str) -> float:
    """Return the multiplier of the kernels: sums of int16 use 15 of its 31 bits."""
    return of_bits(15)(of_bits(31)(real)) if kind == "int16" else real


def _average(rng: np.random.Generator, kind: str) -> Draft:
    """Return a pool whose sum of codes exceeds 16 bits: 256 times -128 does not yet."""
    x = T(kind, (1, 17, 17, 3), drawn_scale(rng, -7, -4), zero_point(rng, kind))
    y = T(kind, (1, 1, 1, 3), x.scale, x.zero_point)
    options = {"padding": _VALID, "stride_h": 1, "stride_w": 1, "filter_height": 17, "filter_width": 17}
    samples = (*samples_of(rng, (x,)), *_full(kind, tuple(x.shape)))
    return Draft("AVERAGE_POOL_2D", f"{BEYOND} 16 bits", (x,), (y,), samples, ("Pool2DOptions", options), 3)


def _full(kind: str, shape: Sequence[int]) -> tuple[Sample, ...]:
    """Return the highest code everywhere, then the lowest."""
    low, high = CODES[kind]
    filled: list[Array] = [np.full(shape, code, kind) for code in (high, low)]
    return tuple((one,) for one in filled)
