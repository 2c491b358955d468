"""Every contraction as a grouped convolution, tap by tap: mistakes before anything is scaled.

CONV_2D, DEPTHWISE_CONV_2D (one group per channel) and FULLY_CONNECTED (one tap, every row an image) share one loop
here, with codes, zero points and accumulators that may be wrong. Bias and scaling are the profile's own.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np

from tflq.comparison.inspection.parts import parts_of
from tflq.diagnosis.mistakes.device import Device, Mistaken
from tflq.diagnosis.mistakes.tensors import wrong_zero_points
from tflq.engine.api.part import Part
from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.contraction import Output
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Prepared, Shape
from tflq.engine.numerics.rounding import clamp
from tflq.engine.numerics.stages import type_range
from tflq.engine.profiles import Profile
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

_UNLIMITED = 62  # bits
_ENDS = (-(1 << _UNLIMITED), 1 << _UNLIMITED)


@in_pieces(lambda x, w, window, outside, low, high, out: out.size * w[:1].size, out="nyx", x="n", window="yx")
@compiled
def accumulate(x: Array, w: Array, window: Window, outside: Int, low: Int, high: Int, out: Array) -> None:
    """Add taps to out[n, oy, ox, o], which holds the start; after each, the sum is limited to [low, high].

    `x` is (N, H, W, C) and `w` (O, KH, KW, C / groups), both centred; taps outside the image read `outside`.

    Prepare guarantees: `w` is (O, KH, KW, C / groups), `window` lies over an image of x's height and width, `out` is
    (N, out_h, out_w, O).
    """
    depth = w.shape[3]
    share = w.shape[0] // (x.shape[3] // depth)  # outputs per group
    for n in range(out.shape[0]):
        for oy in range(out.shape[1]):
            for ox in range(out.shape[2]):
                for o in range(out.shape[3]):
                    first = o // share * depth
                    total = out[n, oy, ox, o]
                    for ky in range(w.shape[1]):
                        row = oy * window.stride_h - window.pad_top + ky * window.dilation_h
                        for kx in range(w.shape[2]):
                            column = ox * window.stride_w - window.pad_left + kx * window.dilation_w
                            inside = 0 <= row < x.shape[1] and 0 <= column < x.shape[2]
                            for c in range(depth):
                                value = x[n, row, column, first + c] if inside else outside
                                total = clamp(total + np.int64(value) * np.int64(w[o, ky, kx, c]), low, high)
                    out[n, oy, ox, o] = total


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """An operator's constants in this form. Zero points are in LSB of their tensors."""

    window: Window
    input_zero_point: int
    weight_zero_point: int
    weights: Array  # codes, (O, KH, KW, C / groups)
    output: Output
    shape: Shape  # of the results
    image: Callable[[Array], Array]  # the operator's input as (N, H, W, C)

    def codes(self, x: Array, reading: Reading) -> Array:
        """Return the operator's results."""
        bias = self.output.bias[: len(self.weights)].astype(np.int64) * int(reading.has_bias)
        values = reading.input(self.image(x)).astype(np.int32) - np.int32(reading.input_zero(self.input_zero_point))
        weights = reading.weights(self.weights).astype(np.int32) - np.int32(reading.weight_zero(self.weight_zero_point))
        window = reading.window or self.window
        sums = np.zeros((len(values), window.out_h, window.out_w, len(weights)), np.int64)
        if reading.wraps:
            accumulate(values, weights, window, reading.outside(self.input_zero_point), *_ENDS, sums)
            sums = (sums + (1 << reading.wraps - 1)) % (1 << reading.wraps) - (1 << reading.wraps - 1) + bias
            return self.output.pipeline(sums, np.zeros_like(bias)).reshape(self.shape)
        if reading.bias_first:
            sums += bias
        high = (1 << reading.bits - 1) - 1
        accumulate(values, weights, window, reading.outside(self.input_zero_point), -high - 1, high, sums)
        if not reading.bias_first:
            sums = np.clip(sums + bias, -high - 1, high)
        return self.output.pipeline(sums, np.zeros_like(bias)).reshape(self.shape)

    def reach(self, x: Array) -> int:
        """Return a bound on the magnitude of all sums for any codes of the input's type, bias included."""
        largest = np.abs(self.weights.astype(np.int64) - self.weight_zero_point).reshape(len(self.weights), -1).sum(1)
        values = max(abs(end - self.input_zero_point) for end in type_range(x.dtype))
        return int(largest.max(initial=0) * values + np.abs(self.output.bias.astype(np.int64)).max(initial=0))


def _itself(x: Array) -> Array:
    return x


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A device's reading of codes and its accumulation; without arguments, the correct one."""

    input: Callable[[Array], Array] = _itself
    weights: Callable[[Array], Array] = _itself
    input_zero: Callable[[int], int] = int
    weight_zero: Callable[[int], int] = int
    outside: Callable[[int], int] = lambda zero: 0  # the centred value of taps outside the image, for that zero point
    window: Window | None = None  # its own, if it differs
    bits: int = _UNLIMITED  # of the accumulator, held after each tap
    wraps: int = 0  # bits in which the sum of products wraps before the bias is added; 0: it does not
    bias_first: bool = False
    has_bias: bool = True

    def joined(self, other: Reading) -> Reading | None:
        """Return both changes at once; None if they change the same field."""
        mine, theirs = ({f.name: v for f in fields(r) if (v := getattr(r, f.name)) != f.default} for r in (self, other))
        return None if set(mine) & set(theirs) else Reading(**{**mine, **theirs})


def other_sign(x: Array) -> Array:
    """Read bytes as the type of the other signedness; other types are unchanged."""
    return x.view(np.uint8 if x.dtype == np.int8 else np.int8) if x.dtype.itemsize == 1 else x


def _off_by_128(x: Array) -> Array:
    return (x.view(np.uint8) ^ np.uint8(128)).view(x.dtype) if x.dtype.itemsize == 1 else x


#: Readings by name; those of narrow accumulators are added if sums can reach their limits.
_READINGS: dict[str, Reading] = {
    "input codes taken for the other signedness": Reading(input=other_sign),
    "weights taken for the other signedness": Reading(weights=other_sign),
    "input codes and weights taken for the other signedness": Reading(input=other_sign, weights=other_sign),
    "weights off by 128": Reading(weights=_off_by_128),
    "zero point of the input ignored, padding stored as it": Reading(
        input_zero=lambda zero: 0, outside=lambda zero: zero
    ),
    "zero point of the input with the wrong sign, padding stored as it": Reading(
        input_zero=lambda zero: -zero, outside=lambda zero: 2 * zero
    ),
    "zero point of the input subtracted twice": Reading(input_zero=lambda zero: 2 * zero),
    "padding stored as 0": Reading(outside=lambda zero: -zero),
    "padding stored as the zero point with the wrong sign": Reading(outside=lambda zero: -2 * zero),
    "padding counted as the zero point's own value": Reading(outside=lambda zero: zero),
}


def mistaken_taps(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield every mistake in the taps of a contraction."""
    contraction = right_contraction(alone, profile)
    if contraction is not None:
        for name, reading in _readings(contraction, alone):
            yield name, _device(contraction, reading)


def taps_together(alone: Part, profile: Profile, leading: Container[str]) -> Iterator[Mistaken]:
    """Yield two mistakes in the taps of a contraction at once; one has a `leading` name."""
    contraction = right_contraction(alone, profile)
    known = [] if contraction is None else list(_readings(contraction, alone))
    for (first, one), (second, other) in combinations(known, 2):
        both = one.joined(other) if first in leading or second in leading else None
        if contraction is not None and both is not None:
            yield f"{first}; and {second}", _device(contraction, both)


def right_contraction(alone: Part, profile: Profile) -> Contraction | None:
    """Return the operator in this form, if it computes the same as the profile."""
    prepared = alone.plan(profile).steps[0].prepared
    name = alone.op.builtin
    if prepared is None or len(alone.got) != 1 or name not in LAYOUTS:
        return None
    contraction = _contraction(alone, prepared, name)
    return contraction if contraction is not None and _is_right(contraction, alone, profile) else None


def _readings(contraction: Contraction, alone: Part) -> Iterator[tuple[str, Reading]]:
    yield from _READINGS.items()
    yield from _beyond_codes(alone)
    for name, window in wrong_windows(contraction.window).items():
        yield name, Reading(window=window)
    x = input_of(alone)
    for bits in (16, 24, 32):
        if contraction.reach(x) >= 1 << bits - 1:
            for first in (False, True):
                name = f"accumulator of {bits} bits that saturates after each tap, bias {'first' if first else 'last'}"
                yield name, Reading(bits=bits, bias_first=first)
            name = f"accumulator of {bits} bits that saturates after each tap; and bias missing"
            yield name, Reading(bits=bits, has_bias=False)
            yield f"accumulator of {bits} bits that wraps, bias added to it in more", Reading(wraps=bits)


def _beyond_codes(alone: Part) -> Iterator[tuple[str, Reading]]:
    """Yield zero points outside their type's codes, which a model cannot have."""
    graph = alone.graph
    readings: tuple[Callable[[int], Reading], ...] = (
        lambda zero: Reading(input_zero=lambda _: zero),
        lambda zero: Reading(weight_zero=lambda _: zero),
    )
    for place, reading in enumerate(readings):
        tensor = graph.op(0).inputs[place]
        low, high = type_range(CARRIER[TensorType(graph.tensors[tensor].type)])
        points = np.array([alone.graph.zero_point(tensor)])
        for name, (changed,) in wrong_zero_points(graph.tensors[tensor], points).items():
            if not low <= changed <= high:
                yield f"zero point of input {place} {name}", reading(int(changed))


def wrong_windows(window: Window) -> dict[str, Window]:
    """Return windows with the same number of outputs and other strides or dilations; their start stays."""
    one = {"dilation_h": 1, "dilation_w": 1}
    changes = {
        "dilation ignored": one,
        "dilation ignored, vertically": {"dilation_h": 1},
        "dilation ignored, horizontally": {"dilation_w": 1},
        "dilations of height and width swapped": {"dilation_h": window.dilation_w, "dilation_w": window.dilation_h},
        "strides of height and width swapped": {"stride_h": window.stride_w, "stride_w": window.stride_h},
        "stride of the width for both": {"stride_h": window.stride_w},
        "stride of the height for both": {"stride_w": window.stride_h},
        **{f"stride of {n} in place of its own": {"stride_h": n, "stride_w": n} for n in (1, 2, 3)},
    }
    wrong: dict[str, Window] = {}
    for name, differing in changes.items():
        changed = window._replace(**differing)
        if changed != window and changed not in wrong.values() and max(window.out_h, window.out_w) > 0:
            wrong[name] = changed
    return wrong


def _device(contraction: Contraction, reading: Reading) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        (tensor,) = alone.got
        return {tensor: contraction.codes(input_of(alone), reading)}

    return device


def _is_right(contraction: Contraction, alone: Part, profile: Profile) -> bool:
    """Return whether the form without a mistake agrees with the profile."""
    (tensor,) = alone.got
    right = alone.run(alone.plan(profile))[tensor]
    codes = contraction.codes(input_of(alone), Reading())
    return codes.dtype == right.dtype and np.array_equal(codes, right)


def input_of(alone: Part) -> Array:
    """Return the operator's first input."""
    return alone.inputs[alone.op.inputs[0]]


#: By operator: a function from weights in the file to (O, KH, KW, C / groups).
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "CONV_2D": _itself,
    "DEPTHWISE_CONV_2D": lambda w: np.ascontiguousarray(w.transpose(3, 1, 2, 0)),
    "FULLY_CONNECTED": lambda w: w.reshape(len(w), 1, 1, -1),
}


def _contraction(alone: Part, prepared: Prepared, name: str) -> Contraction | None:
    operator = alone.op
    output = next((part.value for part in parts_of(prepared.data, Output)), None)
    weights = alone.graph.constant(operator.inputs[1])
    shape = prepared.shapes[0]
    if (
        output is None
        or shape is None
        or weights is None
        or operator.inputs[0] not in alone.inputs
        or weights.dtype.itemsize > 1
    ):
        return None
    depth = int(weights[0].size)
    window = next((part.value for part in parts_of(prepared.data, Window)), Window.of_one_tap(1, 1))
    image = (lambda x: x.reshape(-1, 1, 1, depth)) if name == "FULLY_CONNECTED" else np.ascontiguousarray
    return Contraction(
        window=window,
        input_zero_point=alone.graph.zero_point(operator.inputs[0]),
        weight_zero_point=alone.graph.zero_point(operator.inputs[1]),
        weights=LAYOUTS[name](weights),
        output=output,
        shape=shape,
        image=image,
    )
