"""Mistakes in products: taps, orders of sums, pairs of bytes.

Every contraction as a grouped convolution, tap by tap: mistakes before anything is scaled.

CONV_2D, DEPTHWISE_CONV_2D (one group per channel) and FULLY_CONNECTED (one tap, every row an image) share one loop
here, with codes, zero points and accumulators that may be wrong. Bias and scaling are the profile's own.

Products of float32 added in another order or width than in the profile's kernel.

CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED are rows of terms in the order ky, kx, channel; taps outside the image
are 0. The bias comes last.

Products of unsigned and signed bytes that are added in pairs with 16 bits: x86's vpmaddubsw without VNNI.

The hypothesis is a point of the grammar of sums (`kernels/families/contraction_sums`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np

from tflq.comparison.inspection.prepared import parts_of
from tflq.diagnosis.mistakes.device import Device, Mistaken, Under, off_by_128
from tflq.diagnosis.mistakes.tensors import wrong_zero_points
from tflq.engine.api.many import Part
from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.contraction import Output
from tflq.engine.kernels.families.sums import PAIRS
from tflq.engine.kernels.geometry.windows import Window, read_tap
from tflq.engine.kernels.kernel import Prepared, Shape
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.estimates import fuse
from tflq.engine.numerics.rounding import clamp
from tflq.engine.numerics.stages import type_range
from tflq.engine.profiles import Profile
from tflq.engine.profiles.file import with_rows
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array, Floats

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
class TapContraction:
    """An operator's constants in this form. Zero points are in LSB of their tensors."""

    window: Window
    input_zero_point: int
    weight_zero_point: int
    weights: Array  # codes, (O, KH, KW, C / groups)
    output: Output
    shape: Shape  # of the results
    image: Callable[[Array], Array]  # the operator's input as (N, H, W, C)

    def codes(self, x: Array, reading: TapReading) -> Array:
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
class TapReading:
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

    def joined(self, other: TapReading) -> TapReading | None:
        """Return both changes at once; None if they change the same field."""
        mine, theirs = ({f.name: v for f in fields(r) if (v := getattr(r, f.name)) != f.default} for r in (self, other))
        return None if set(mine) & set(theirs) else TapReading(**{**mine, **theirs})


def other_sign(x: Array) -> Array:
    """Read bytes as the type of the other signedness; other types are unchanged."""
    return x.view(np.uint8 if x.dtype == np.int8 else np.int8) if x.dtype.itemsize == 1 else x


#: Readings by name; those of narrow accumulators are added if sums can reach their limits.
_READINGS: dict[str, TapReading] = {
    "input codes taken for the other signedness": TapReading(input=other_sign),
    "weights taken for the other signedness": TapReading(weights=other_sign),
    "input codes and weights taken for the other signedness": TapReading(input=other_sign, weights=other_sign),
    "weights off by 128": TapReading(weights=off_by_128),
    "zero point of the input ignored, padding stored as it": TapReading(
        input_zero=lambda zero: 0, outside=lambda zero: zero
    ),
    "zero point of the input with the wrong sign, padding stored as it": TapReading(
        input_zero=lambda zero: -zero, outside=lambda zero: 2 * zero
    ),
    "zero point of the input subtracted twice": TapReading(input_zero=lambda zero: 2 * zero),
    "padding stored as 0": TapReading(outside=lambda zero: -zero),
    "padding stored as the zero point with the wrong sign": TapReading(outside=lambda zero: -2 * zero),
    "padding counted as the zero point's own value": TapReading(outside=lambda zero: zero),
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


def right_contraction(alone: Part, profile: Profile) -> TapContraction | None:
    """Return the operator in this form, if it computes the same as the profile."""
    prepared = alone.plan(profile).steps[0].prepared
    name = alone.op.builtin
    if prepared is None or len(alone.got) != 1 or name not in LAYOUTS:
        return None
    contraction = _contraction(alone, prepared, name)
    return contraction if contraction is not None and _is_right(contraction, alone, profile) else None


def _readings(contraction: TapContraction, alone: Part) -> Iterator[tuple[str, TapReading]]:
    yield from _READINGS.items()
    yield from _beyond_codes(alone)
    for name, window in wrong_windows(contraction.window).items():
        yield name, TapReading(window=window)
    x = input_of(alone)
    for bits in (16, 24, 32):
        if contraction.reach(x) >= 1 << bits - 1:
            for first in (False, True):
                name = f"accumulator of {bits} bits that saturates after each tap, bias {'first' if first else 'last'}"
                yield name, TapReading(bits=bits, bias_first=first)
            name = f"accumulator of {bits} bits that saturates after each tap; and bias missing"
            yield name, TapReading(bits=bits, has_bias=False)
            yield f"accumulator of {bits} bits that wraps, bias added to it in more", TapReading(wraps=bits)


def _beyond_codes(alone: Part) -> Iterator[tuple[str, TapReading]]:
    """Yield zero points outside their type's codes, which a model cannot have."""
    graph = alone.graph
    readings: tuple[Callable[[int], TapReading], ...] = (
        lambda zero: TapReading(input_zero=lambda _: zero),
        lambda zero: TapReading(weight_zero=lambda _: zero),
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


def _device(contraction: TapContraction, reading: TapReading) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        (tensor,) = alone.got
        return {tensor: contraction.codes(input_of(alone), reading)}

    return device


def _is_right(contraction: TapContraction, alone: Part, profile: Profile) -> bool:
    """Return whether the form without a mistake agrees with the profile."""
    (tensor,) = alone.got
    right = alone.run(alone.plan(profile))[tensor]
    codes = contraction.codes(input_of(alone), TapReading())
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


def _contraction(alone: Part, prepared: Prepared, name: str) -> TapContraction | None:
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
    return TapContraction(
        window=window,
        input_zero_point=alone.graph.zero_point(operator.inputs[0]),
        weight_zero_point=alone.graph.zero_point(operator.inputs[1]),
        weights=LAYOUTS[name](weights),
        output=output,
        shape=shape,
        image=image,
    )


#: Terms to add: the k-th factors of all results, float32 of one shape, for k in 0 .. K - 1.
Terms = tuple[list[Floats], list[Floats]]
#: A function that adds terms.
Order = Callable[[list[Floats], list[Floats]], Array]

#: The greatest number of products that are added one by one.
_MOST = 1 << 25


def _in_order(a: list[Floats], b: list[Floats]) -> Array:
    return _add([x * y for x, y in zip(a, b, strict=True)])


def _add(terms: list[Array]) -> Array:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _fuse(a: list[Floats], b: list[Floats]) -> Array:
    total = np.zeros(np.broadcast_shapes(a[0].shape, b[0].shape), np.float32)
    for x, y in zip(a, b, strict=True):
        total = fuse(x, y, total)
    return total


def _in_lanes(lanes: int, add: Order) -> Order:
    """Return the order in which each lane adds every `lanes`-th term; lanes are added pairwise, neighbours last."""

    def order(a: list[Floats], b: list[Floats]) -> Array:
        sums = [add(a[lane::lanes], b[lane::lanes]) for lane in range(min(lanes, len(a)))]
        while len(sums) > 1:
            half = (len(sums) + 1) // 2
            sums = [sums[i] + sums[i + half] if i + half < len(sums) else sums[i] for i in range(half)]
        return sums[0]

    return order


def _pairwise(a: list[Floats], b: list[Floats]) -> Array:
    sums: list[Array] = [x * y for x, y in zip(a, b, strict=True)]
    while len(sums) > 1:
        sums = [sums[i] + sums[i + 1] if i + 1 < len(sums) else sums[i] for i in range(0, len(sums), 2)]
    return sums[0]


def _in_halves(a: list[Floats], b: list[Floats]) -> Array:
    """Return the result with products and sums in float16."""
    return _add([(x.astype(np.float16) * y.astype(np.float16)) for x, y in zip(a, b, strict=True)])


def _into_halves(a: list[Floats], b: list[Floats]) -> Array:
    """Return the result of float32 products with each sum rounded to float16."""
    total = np.zeros(np.broadcast_shapes(a[0].shape, b[0].shape), np.float16)
    for x, y in zip(a, b, strict=True):
        total = (total.astype(np.float32) + x * y).astype(np.float16)
    return total


def _in_doubles(a: list[Floats], b: list[Floats]) -> Array:
    return _add([x.astype(np.float64) * y for x, y in zip(a, b, strict=True)]).astype(np.float32)


#: Orders by name.
ORDERS: dict[str, Order] = {
    "sums in order": _in_order,
    "fused multiply-add, in order": _fuse,
    **{f"sums in {lanes} lanes": _in_lanes(lanes, _in_order) for lanes in (4, 8, 16)},
    **{f"fused multiply-add in {lanes} lanes": _in_lanes(lanes, _fuse) for lanes in (4, 8, 16)},
    "sums pairwise": _pairwise,
    "products and sums in float16": _in_halves,
    "sums in float16": _into_halves,
    "sums in float64": _in_doubles,
}


def mistaken_orders(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield every order of a contraction of floats with constant weights."""
    if len(alone.got) != 1 or next(iter(alone.got.values())).dtype != np.float32:
        return
    if _terms(alone, profile) is None:
        return
    for name, order in ORDERS.items():
        yield name, _orders_device(profile, order)


def _orders_device(profile: Profile, order: Order) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        ((tensor, dumped),) = alone.got.items()
        terms = _terms(alone, profile)
        if terms is None:
            return {}
        sums = order(*terms).astype(np.float32)
        operator = alone.op
        bias = _constant(alone, operator.inputs[2]) if len(operator.inputs) > 2 else None
        results = sums if bias is None else sums + bias
        prepared = alone.plan(profile).steps[0].prepared
        for part in parts_of(None if prepared is None else prepared.data, NumberClamp):
            results = np.clip(results, *part.value)
        return {tensor: results.astype(np.float32).reshape(dumped.shape)}

    return device


def _constant(alone: Part, tensor: int) -> Array | None:
    return alone.graph.constant(tensor)


def _terms(alone: Part, profile: Profile) -> Terms | None:
    """Return the factors of every result, (rows, 1) by (units,), or of depthwise filters (rows, C) by (C,)."""
    operator = alone.op
    name = operator.builtin
    if name not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED") or operator.inputs[0] not in alone.inputs:
        return None
    x, w = alone.inputs[operator.inputs[0]], _constant(alone, operator.inputs[1])
    (dumped,) = alone.got.values()
    if w is None or x.dtype != np.float32 or w.dtype != np.float32:
        return None
    if dumped.size * (w.size // w.shape[3 if name == "DEPTHWISE_CONV_2D" else 0]) > _MOST:
        return None
    if name == "FULLY_CONNECTED":
        rows = x.reshape(-1, w.shape[1])
        return [rows[:, k : k + 1] for k in range(w.shape[1])], list(np.ascontiguousarray(w.T))
    prepared = alone.plan(profile).steps[0].prepared
    window = next((part.value for part in parts_of(None if prepared is None else prepared.data, Window)), None)
    if window is None:
        return None
    taps = [_tap(x, window, ky, kx) for ky in range(w.shape[1]) for kx in range(w.shape[2])]
    if name == "DEPTHWISE_CONV_2D":
        times = w.shape[3] // x.shape[3]
        return [np.repeat(tap, times, axis=1) for tap in taps], list(w.reshape(-1, w.shape[3]))
    if w.shape[3] != x.shape[3]:
        return None  # grouped
    columns = [tap[:, c : c + 1] for tap in taps for c in range(x.shape[3])]
    return columns, list(np.ascontiguousarray(w.reshape(w.shape[0], -1).T))


def _tap(x: Floats, window: Window, ky: int, kx: int) -> Floats:
    """Return the values that one tap reads for every place, (N * out_h * out_w, C); 0 outside the image."""
    return np.ascontiguousarray(read_tap(x, window, ky, kx)).reshape(-1, x.shape[3])


def mistaken_pairs(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield a convolution or dense layer whose pairs of products saturate."""
    if alone.op.builtin not in ("CONV_2D", "FULLY_CONNECTED"):
        return
    changed = with_rows(profile, [{"op": alone.op.name, "sums": {"products": PAIRS}}])
    alone.plan(changed)  # refused here if the operator is no contraction of codes
    yield "pairs of products saturate at 16 bits, as those of vpmaddubsw", Under(changed)
