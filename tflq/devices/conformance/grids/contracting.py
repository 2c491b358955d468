"""CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and TRANSPOSE_CONV, with scales that test their roundings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tflq.devices.conformance.draft import CODES, Draft, samples_of, zero_point
from tflq.devices.conformance.grids.kinds import KINDS
from tflq.devices.conformance.one_operator import T

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


class Scales:
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
        scales = Scales(rng, regime, kind)
        for activation in ACTIVATIONS:
            yield from _windows(scales, activation)
            yield from _dense(scales, activation)
        yield from _transpose(scales)


def _aim(scales: Scales, activation: int, more: str = "") -> str:
    return "; ".join(filter(None, (scales.regime.aim, more, ACTIVATIONS[activation])))


def _windows(scales: Scales, activation: int) -> Iterator[Draft]:
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


def _dense(scales: Scales, activation: int) -> Iterator[Draft]:
    for depth, units, rows in product((1, 3, 8, 33, 64), (1, 5, 16), (1, 3)):
        x = scales.image((rows, depth))
        w = scales.weights((units, depth), 0)
        y = scales.result(x, w, (rows, units), depth)
        options = {"fused_activation_function": activation, "weights_format": 0, "keep_num_dims": False}
        aim = _aim(scales, activation)
        yield _draft("FULLY_CONNECTED", scales, aim, x, w, y, ("FullyConnectedOptions", options), 5)


def _transpose(scales: Scales) -> Iterator[Draft]:
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


def _draft(op: str, scales: Scales, aim: str, x: T, w: T, y: T, options: Any, version: int) -> Draft:
    inputs = (x, w, scales.bias(x, w, int(y.shape[-1])))
    return Draft(op, aim, inputs, (y,), samples_of(scales.rng, inputs), options, version)
