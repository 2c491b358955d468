"""Synthetic chips that compute single operators as known hardware does, by NumPy code of their own.

Kinds of arithmetic: those of NVDLA, Gemmini, VTA, Ethos-U, MAX78000, K210, XMOS, PULP-NN and x86 without VNNI.
Nothing here uses the grammar's code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.model.ir import view

Array = np.ndarray[Any, Any]
WINDOWED = ("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D")


# --- numbers ---------------------------------------------------------------------------------------------------------


def shifted(x: Array, bits: Any, how: str) -> Array:
    """Return x / 2**bits as whole numbers; negative bits shift to the left."""
    bits = np.asarray(bits, np.int64)
    x = np.asarray(x, np.int64) << np.maximum(-bits, 0)
    bits = np.clip(bits, 0, 62)
    half = (np.int64(1) << bits) >> 1
    if how == "down":
        return x >> bits
    if how == "zero":
        return np.sign(x) * (np.abs(x) >> bits)
    if how == "up":
        return (x + half) >> bits
    if how == "away":
        return np.sign(x) * ((np.abs(x) + half) >> bits)
    whole = x >> bits
    rest = x - (whole << bits)
    return whole + ((half > 0) & ((rest > half) | ((rest == half) & (whole % 2 == 1))))


def divided(total: Array, count: Any, how: str) -> Array:
    """Return total / count as whole numbers."""
    if how == "down":
        return total // count
    if how == "zero":
        return np.sign(total) * (np.abs(total) // count)
    if how == "up":
        return (2 * total + count) // (2 * count)
    if how == "away":
        return np.sign(total) * ((2 * np.abs(total) + count) // (2 * count))
    return np.rint(total / count).astype(np.int64)


def mantissa(real: Array, bits: int, *, cut: bool = False) -> tuple[Array, Array]:
    """Return whole numbers m below 2**bits and shifts e: real is m * 2**-e."""
    fraction, exponent = np.frexp(np.asarray(real, np.float64))
    scaled = fraction * 2.0**bits
    whole = np.floor(scaled) if cut else np.floor(scaled + 0.5)
    return whole.astype(np.int64), (bits - exponent).astype(np.int64)


@dataclass(frozen=True)
class Scaler:
    """A way from accumulators to codes. `bits` 0 is a power of two; `kind` names the others."""

    bits: int = 31
    last: str = "up"
    cut: bool = False
    kind: str = "once"
    power: str = "rounded"

    def codes(self, total: Array, real: Array) -> Array:
        """Return scaled accumulators without a zero point."""
        real = np.broadcast_to(np.asarray(real, np.float64), total.shape[-1:] if total.ndim else ())
        if self.bits == 0:
            log = np.log2(real)
            exponent = {"rounded": np.rint, "rounded up": np.ceil, "cut off": np.floor}[self.power](log)
            return shifted(total, -exponent.astype(np.int64), self.last)
        if self.kind == "float16":
            product = np.float16(total.astype(np.float32)) * np.float16(real)
            return _rounded(np.nan_to_num(product.astype(np.float64), posinf=1e6, neginf=-1e6), self.last)
        if self.kind == "multiplier in float16":
            return _rounded((total.astype(np.float32) * np.float32(np.float16(real))).astype(np.float64), self.last)
        if self.kind == "shared":
            shift = self.bits - int(np.frexp(real.max())[1])
            return shifted(total * np.floor(real * 2.0**shift + 0.5).astype(np.int64), shift, self.last)
        m, e = mantissa(real, self.bits, cut=self.cut)
        if self.kind == "through 16 bits":
            ahead = np.maximum(e - self.bits - 8, 0)
            narrow = np.clip(shifted(total, ahead, self.last), -(2**15), 2**15 - 1)
            return shifted(narrow * m, e - ahead, self.last)
        return shifted(total * m, e, self.last)


def _rounded(x: Array, how: str) -> Array:
    if how == "even":
        return np.rint(x).astype(np.int64)
    if how == "away":
        return (np.sign(x) * np.floor(np.abs(x) + 0.5)).astype(np.int64)
    return {"up": lambda: np.floor(x + 0.5), "down": lambda: np.floor(x), "zero": lambda: np.trunc(x)}[how]().astype(
        int
    )


# --- operators -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """Elements that a chip takes. Names of faults; empty if it takes those of TFLite."""

    padding: str = ""  # "first", "undilated", "half"
    outside: str = ""  # "code 0"
    strides: str = ""  # "of height", "of width", "late"
    dilation: str = ""  # "ignored"
    groups: str = ""  # "first"
    activation: str = ""  # "ignored", "code 0"


@dataclass(frozen=True)
class Chip:
    """A chip that runs one operator on int8. `sums` is how products are added: "", "pairs", or (bits, how, when)."""

    op: str
    scaler: Scaler = field(default_factory=Scaler)
    reading: Reading = field(default_factory=Reading)
    sums: Any = ""
    rule: Mapping[str, Any] = field(default_factory=dict)

    def run(self, model: Any, inputs: list[Array]) -> Array:
        graph = view(model)
        op = graph.op(0)
        if op.builtin != self.op:
            raise NotImplementedError(op.builtin)
        specs: list[Any] = [None if t < 0 else graph.tensors[t] for t in op.inputs]
        given = iter(inputs)
        values: list[Any] = [None if t < 0 else graph.constant(t) for t in op.inputs]
        values = [next(given) if v is None and s is not None else v for v, s in zip(values, specs, strict=True)]
        y: Any = graph.tensors[op.outputs[0]]
        options: dict[str, Any] = {} if op.options is None else dict(op.options.fields)
        if any(s is not None and s.quantization is not None and s.type.label not in ("int8", "int32") for s in specs):
            raise NotImplementedError("types")
        made = _OPERATORS[self.op](self, specs, values, y, options)
        return np.asarray(made).astype(np.int8).reshape(y.shape)

    def limited(self, codes: Array, y: Any, options: Mapping[str, Any]) -> Array:
        """Return codes with their zero point, inside the type and the activation."""
        low, high = -128, 127
        zero, scale = _zero(y), _scale(y)
        kind = int(options.get("fused_activation_function", 0) or 0)
        if self.reading.activation == "ignored":
            kind = 0
        base = 0 if self.reading.activation == "code 0" else zero
        ends = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}.get(kind, (None, None))
        steps = [
            None if e is None else base + math.floor(abs(np.float32(e) / np.float32(scale)) + 0.5) * (-1) ** (e < 0)
            for e in ends
        ]
        low = low if steps[0] is None else max(low, steps[0])
        high = high if steps[1] is None else min(high, steps[1])
        return np.minimum(np.maximum(codes + zero, low), high)


def _zero(spec: Any) -> int:
    return int(spec.quantization.zero_point[0])


def _scale(spec: Any) -> float:
    return float(spec.quantization.scale[0])


def _axis(chip: Chip, size: int, out: int, kernel: int, strides: tuple[int, int], dilation: int, same: bool) -> Array:
    """Return the input position of each output and tap along an axis, (out, kernel)."""
    own, other = strides
    stride = other if chip.reading.strides in ("of height", "of width") else own
    spread = 1 if chip.reading.dilation == "ignored" else dilation
    reach = (kernel - 1) * (1 if chip.reading.padding == "undilated" else dilation) + 1
    total = max(0, (out - 1) * own + reach - size) if same else 0
    before = total - total // 2 if chip.reading.padding == "first" else total // 2
    if chip.reading.padding == "half" and same:
        before = reach // 2
    start = own - 1 if chip.reading.strides == "late" else 0
    return np.arange(out)[:, None] * stride + start - before + np.arange(kernel)[None, :] * spread


def _windows(
    chip: Chip, x: Array, shape: Any, kernel: tuple[int, int], options: Mapping[str, Any], outside: int
) -> Any:
    """Return patches (N, out_h, out_w, kh, kw, C), and which taps lie inside."""
    same = int(options["padding"]) == 0
    strides = int(options["stride_h"]), int(options["stride_w"])
    pairs = {"of height": (strides[0], strides[0]), "of width": (strides[1], strides[1])}
    used = pairs.get(chip.reading.strides, strides)
    rows = _axis(
        chip, x.shape[1], shape[1], kernel[0], (strides[0], used[0]), int(options.get("dilation_h_factor", 1)), same
    )
    cols = _axis(
        chip, x.shape[2], shape[2], kernel[1], (strides[1], used[1]), int(options.get("dilation_w_factor", 1)), same
    )
    r, c = rows[:, None, :, None], cols[None, :, None, :]
    inside = (r >= 0) & (r < x.shape[1]) & (c >= 0) & (c < x.shape[2])
    taken = x[:, np.clip(r, 0, x.shape[1] - 1), np.clip(c, 0, x.shape[2] - 1)]
    return np.where(inside[None, ..., None], taken, outside), inside


def _added(chip: Chip, products: Array, bias: Array) -> Array:
    """Add products (..., terms) in their order, and the bias."""
    if not chip.sums or chip.sums == "pairs":
        return products.sum(-1) + bias
    bits, how, when = chip.sums
    half = 1 << bits - 1
    if how == "wraps":
        return (products.sum(-1) + bias + half) % (2 * half) - half
    if when == "at the end":
        return np.clip(products.sum(-1) + bias, -half, half - 1)
    total = np.broadcast_to(bias, products.shape[:-1]).astype(np.int64) if when == "by tap, bias first" else 0
    total = np.clip(total, -half, half - 1)
    for k in range(products.shape[-1]):
        total = np.clip(total + products[..., k], -half, half - 1)
    return total if when == "by tap, bias first" else np.clip(total + bias, -half, half - 1)


def _paired(x: Array, w: Array, zero: int) -> Array:
    """Return sums over the last axis of (x + 128) * w in pairs of 16 bits that saturate, less the zero point's part."""
    products = (x.astype(np.int64) + 128) * w
    if products.shape[-1] % 2:
        products = np.concatenate([products, np.zeros((*products.shape[:-1], 1), np.int64)], -1)
    pairs = np.clip(products[..., ::2] + products[..., 1::2], -(2**15), 2**15 - 1)
    return pairs.sum(-1) - (zero + 128) * w.sum(-1)


def _contracted(chip: Chip, specs: Any, values: Any, y: Any, options: Mapping[str, Any]) -> Array:
    x, w = values[0].astype(np.int64), values[1].astype(np.int64)
    channels = y.shape[-1]
    bias = np.zeros(channels, np.int64) if values[2] is None else values[2].astype(np.int64)
    zero = _zero(specs[0])
    real = np.asarray(specs[1].quantization.scale, np.float64) * _scale(specs[0]) / _scale(y)
    if chip.op == "FULLY_CONNECTED":
        rows = x.reshape(-1, w.shape[1])
        if chip.sums == "pairs":
            sums = np.stack([_paired(rows, w[o], zero) for o in range(len(w))], -1) + bias
        else:
            sums = np.stack([_added(chip, (rows - zero) * w[o], bias[o]) for o in range(len(w))], -1)
    else:
        outside = 0 if chip.reading.outside == "code 0" else zero
        depth_wise = chip.op == "DEPTHWISE_CONV_2D"
        patches, _ = _windows(chip, x, y.shape, w.shape[1:3], options, outside)
        sums = np.zeros((x.shape[0], *y.shape[1:]), np.int64)
        for o in range(channels):
            if depth_wise:
                c = o // (channels // x.shape[3])
                part, weights = patches[..., c : c + 1], w[0, :, :, o : o + 1]
            else:
                depth = w.shape[3]
                group = 0 if chip.reading.groups == "first" else o // (channels // (x.shape[3] // depth))
                part, weights = patches[..., group * depth : (group + 1) * depth], w[o]
            if chip.sums == "pairs":
                sums[..., o] = _paired(part, weights, zero).sum((-1, -2)) + bias[o]
            else:
                products = (part - zero) * weights
                sums[..., o] = _added(chip, products.reshape(*products.shape[:3], -1), bias[o])
    return chip.limited(chip.scaler.codes(sums, real), y, options)


def _average(chip: Chip, specs: Any, values: Any, y: Any, options: Mapping[str, Any]) -> Array:
    x, zero, rule = values[0].astype(np.int64), _zero(specs[0]), chip.rule
    size = int(options["filter_height"]), int(options["filter_width"])
    fill = {"padded": zero, "code 0": 0}.get(rule.get("taps", ""), 0)
    patches, inside = _windows(chip, x, y.shape, size, options, fill)
    taken = patches if rule.get("taps") else np.where(inside[None, ..., None], patches, 0)
    less = zero if rule.get("centred") else 0
    count = inside.sum((-1, -2))[None, ..., None]
    if rule.get("taps"):
        count = np.full_like(count, size[0] * size[1])
    total = taken.sum((3, 4)) - less * count
    how = rule.get("how", "away")
    if "bits" in rule:
        factor = np.floor(2.0 ** rule["bits"] / count + 0.5).astype(np.int64)
        codes = shifted(total * factor, rule["bits"], how)
    elif "two" in rule:
        across = np.maximum(inside.any(-2).sum(-1), 1)[None, ..., None]
        down = np.maximum(inside.any(-1).sum(-1), 1)[None, ..., None]
        a, b = (np.floor(2.0 ** rule["two"] / n + 0.5).astype(np.int64) for n in (across, down))
        codes = shifted(total * a * b, 2 * rule["two"], how)
    elif "mantissa" in rule:
        m, e = mantissa(1 / count, rule["mantissa"])
        codes = shifted(total * m, e, how)
    else:
        codes = divided(total, count, how)
    return chip.limited(codes + less - zero, y, options)


def _greatest(chip: Chip, specs: Any, values: Any, y: Any, options: Mapping[str, Any]) -> Array:
    size = int(options["filter_height"]), int(options["filter_width"])
    outside = 0 if chip.reading.outside == "code 0" else -128
    patches, _ = _windows(chip, values[0].astype(np.int64), y.shape, size, options, outside)
    return chip.limited(patches.max((3, 4)) - _zero(y), y, options)


def _mean(chip: Chip, specs: Any, values: Any, y: Any, options: Mapping[str, Any]) -> Array:
    x = values[0].astype(np.int64)
    axes = tuple(sorted({int(a) % x.ndim for a in np.asarray(values[1]).reshape(-1)}))
    count = math.prod(x.shape[a] for a in axes)
    ratio = _scale(specs[0]) / _scale(y)
    total = x.sum(axes) - count * _zero(specs[0])
    if chip.rule.get("steps") == "divided first":
        scaled = chip.scaler.codes(divided(total, count, chip.rule["how"])[..., None], np.array([ratio]))[..., 0]
    elif chip.rule.get("steps") == "scaled first":
        scaled = divided(chip.scaler.codes(total[..., None], np.array([ratio]))[..., 0], count, chip.rule["how"])
    else:
        scaled = chip.scaler.codes(total[..., None], np.array([ratio / count]))[..., 0]
    return np.clip(scaled + _zero(y), -128, 127)


def _sum_of_two(chip: Chip, specs: Any, values: Any, y: Any, options: Mapping[str, Any]) -> Array:
    sign = -1 if chip.op == "SUB" else 1
    terms = [v.astype(np.int64) - _zero(s) for v, s in zip(values, specs, strict=True)]
    reals = np.array([_scale(s) / _scale(y) for s in specs])
    if chip.rule["form"] == "shared shift":
        bits = chip.scaler.bits
        shift = bits - int(np.frexp(reals.max())[1])
        m = np.floor(reals * 2.0**shift + (0 if chip.scaler.cut else 0.5)).astype(np.int64)
        codes = shifted(terms[0] * m[0] + sign * terms[1] * m[1], shift, chip.scaler.last)
    else:
        a, b = (chip.scaler.codes(t[..., None], np.array([r]))[..., 0] for t, r in zip(terms, reals, strict=True))
        codes = a + sign * b
    return chip.limited(codes, y, options)


def _product(chip: Chip, specs: Any, values: Any, y: Any, options: Mapping[str, Any]) -> Array:
    a, b = (v.astype(np.int64) - _zero(s) for v, s in zip(values, specs, strict=True))
    real = np.array([_scale(specs[0]) * _scale(specs[1]) / _scale(y)])
    return chip.limited(chip.scaler.codes((a * b)[..., None], real)[..., 0], y, options)


def _softmax(chip: Chip, specs: Any, values: Any, y: Any, options: Mapping[str, Any]) -> Array:
    x, rule = values[0].astype(np.int64), chip.rule
    beta = 1.0 if rule.get("beta") == "ignored" else float(options.get("beta", 1.0))
    below = (x.max(-1, keepdims=True) - x) * _scale(specs[0]) * beta
    one = rule["one"]
    if rule["exponential"] == "power of two":
        steps = np.floor(below * np.log2(np.e) * 2**8 + 0.5).astype(np.int64)
        whole, part = steps >> 8, steps & 255
        raised = shifted(np.rint(one * 2.0 ** (-part / 256.0)).astype(np.int64), np.minimum(whole, 62), "down")
    else:
        raised = np.rint(one * np.exp(-below)).astype(np.int64)
    total = raised.sum(-1, keepdims=True)
    if rule["quotient"] == "reciprocal":
        inverse = (1 << 30) // total
        codes = shifted(raised * inverse, 22, rule["how"])
    else:
        codes = divided(raised * 256, total, rule["how"])
    return np.clip(codes - 128, -128, 127)


def _resized(chip: Chip, specs: Any, values: Any, y: Any, options: Mapping[str, Any]) -> Array:
    x, rule = values[0].astype(np.int64), chip.rule
    half = bool(options["half_pixel_centers"]) if "half" not in rule else rule["half"]
    align = bool(options["align_corners"]) and "half" not in rule
    places = []
    for size, out in zip(x.shape[1:3], y.shape[1:3], strict=True):
        i = np.arange(out)
        at = i * ((size - 1) / (out - 1) if align and out > 1 else size / out)
        places.append((i + 0.5) * size / out - 0.5 if half else at)
    if chip.op == "RESIZE_NEAREST_NEIGHBOR":
        index = [
            np.clip(np.floor(p + 0.5 if half or align else p).astype(int), 0, n - 1)
            for p, n in zip(places, x.shape[1:3], strict=True)
        ]
        return x[:, index[0]][:, :, index[1]]
    bits = rule["bits"]
    rows, cols = (
        (np.clip(np.floor(p * 2**bits + 0.5).astype(np.int64), 0, (n - 1) << bits))
        for p, n in zip(places, x.shape[1:3], strict=True)
    )

    def pair(at: Array, n: int) -> Any:
        low = at >> bits
        return low, np.minimum(low + 1, n - 1), at - (low << bits)

    (y0, y1, fy), (x0, x1, fx) = pair(rows, x.shape[1]), pair(cols, x.shape[2])
    fy, fx, one = fy[None, :, None, None], fx[None, None, :, None], 1 << bits

    def line(r: Array) -> Array:
        return x[:, r][:, :, x0] * (one - fx) + x[:, r][:, :, x1] * fx

    total = line(y0) * (one - fy) + line(y1) * fy
    return np.clip(shifted(total, 2 * bits, rule["how"]), -128, 127)


_OPERATORS: Mapping[str, Callable[..., Array]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _contracted),
    "AVERAGE_POOL_2D": _average,
    "MAX_POOL_2D": _greatest,
    "MEAN": _mean,
    "ADD": _sum_of_two,
    "SUB": _sum_of_two,
    "MUL": _product,
    "SOFTMAX": _softmax,
    "RESIZE_BILINEAR": _resized,
    "RESIZE_NEAREST_NEIGHBOR": _resized,
}

CONV, DEPTHWISE, DENSE = "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"
_UP, _AWAY15 = Scaler(31, "up"), Scaler(15, "away")
#: Chips by name.
CHIPS: Mapping[str, Chip] = {
    "stride late, half up": Chip(CONV, _UP, Reading(strides="late")),
    "stride of the height, 15 bits": Chip(CONV, _AWAY15, Reading(strides="of height")),
    "odd padding first": Chip(DEPTHWISE, _AWAY15, Reading(padding="first")),
    "padding of the undilated kernel, float16 multiplier": Chip(
        CONV, Scaler(11, "even", kind="multiplier in float16"), Reading(padding="undilated")
    ),
    "padding of half a kernel": Chip(CONV, _UP, Reading(padding="half")),
    "padding holds code 0": Chip(CONV, Scaler(15, "away"), Reading(outside="code 0")),
    "dilation ignored, 24 bits": Chip(DEPTHWISE, Scaler(24, "down"), Reading(dilation="ignored")),
    "groups: the first only": Chip(CONV, _UP, Reading(groups="first")),
    "activation at code 0": Chip(CONV, Scaler(18, "up"), Reading(activation="code 0")),
    "activation ignored, dense": Chip(DENSE, Scaler(15, "up"), Reading(activation="ignored")),
    "power of two, rounded": Chip(CONV, Scaler(0, "up")),
    "power of two, rounded up, floor": Chip(DENSE, Scaler(0, "down", power="rounded up")),
    "power of two, cut off": Chip(CONV, Scaler(0, "even", power="cut off")),
    "power of two, depthwise": Chip(DEPTHWISE, Scaler(0, "up")),
    "pairs, dense": Chip(DENSE, Scaler(24, "up"), sums="pairs"),
    "pairs, convolution": Chip(CONV, _UP, sums="pairs"),
    "average by a reciprocal of 16 bits": Chip("AVERAGE_POOL_2D", rule={"bits": 16, "how": "up"}),
    "average by two reciprocals": Chip("AVERAGE_POOL_2D", rule={"two": 16, "how": "away"}),
    "average by a reciprocal of 15 bits, centred": Chip(
        "AVERAGE_POOL_2D", rule={"mantissa": 15, "how": "up", "centred": True}
    ),
    "average with padded taps": Chip("AVERAGE_POOL_2D", rule={"taps": "padded", "how": "away"}),
    "average with taps of code 0": Chip("AVERAGE_POOL_2D", rule={"taps": "code 0", "how": "down"}),
    "greatest over code 0": Chip("MAX_POOL_2D", reading=Reading(outside="code 0")),
    "greatest, activation at code 0": Chip("MAX_POOL_2D", reading=Reading(activation="code 0")),
    "mean by one multiplier of 15 bits": Chip("MEAN", Scaler(15, "up")),
    "mean by one multiplier of 31 bits": Chip("MEAN", Scaler(31, "away")),
    "mean divided, then scaled": Chip("MEAN", Scaler(15, "up"), rule={"steps": "divided first", "how": "away"}),
    "mean scaled, then divided": Chip("MEAN", Scaler(31, "up"), rule={"steps": "scaled first", "how": "zero"}),
    "through 16 bits, up": Chip(CONV, Scaler(15, "up", kind="through 16 bits")),
    "through 16 bits, down": Chip(DENSE, Scaler(15, "down", kind="through 16 bits")),
    "one shift for all channels": Chip(CONV, Scaler(15, "up", kind="shared")),
    "ADD, one shift, 15 bits": Chip("ADD", Scaler(15, "up"), rule={"form": "shared shift"}),
    "ADD, one shift, 20 bits, away": Chip("ADD", Scaler(20, "away"), rule={"form": "shared shift"}),
    "ADD, each requantized": Chip("ADD", Scaler(15, "up"), rule={"form": "each"}),
    "SUB, each by a power of two": Chip("SUB", Scaler(0, "up"), rule={"form": "each"}),
    "MUL, 12 bits": Chip("MUL", Scaler(12, "up")),
    "MUL, power of two": Chip("MUL", Scaler(0, "away")),
    "12 bits, cut off": Chip(CONV, Scaler(12, "away", cut=True)),
    "18 bits": Chip(DENSE, Scaler(18, "even")),
    "accumulator of 20 bits that wraps": Chip(CONV, _UP, sums=(20, "wraps", "")),
    "accumulator of 18 bits that saturates at the end": Chip(DENSE, _AWAY15, sums=(18, "saturates", "at the end")),
    "accumulator of 16 bits that saturates by tap": Chip(CONV, _UP, sums=(16, "saturates", "by tap, bias first")),
    "accumulator of 20 bits that saturates by tap": Chip(DENSE, _UP, sums=(20, "saturates", "by tap, bias last")),
    "product in float16": Chip(CONV, Scaler(11, "even", kind="float16")),
    "softmax by a table of 15 bits": Chip(
        "SOFTMAX", rule={"exponential": "table", "one": 32767, "quotient": "", "how": "down"}
    ),
    "softmax by a table of 8 bits": Chip(
        "SOFTMAX", rule={"exponential": "table", "one": 255, "quotient": "", "how": "up"}
    ),
    "softmax by powers of two": Chip(
        "SOFTMAX", rule={"exponential": "power of two", "one": 32768, "quotient": "reciprocal", "how": "up"}
    ),
    "softmax without beta": Chip(
        "SOFTMAX", rule={"exponential": "table", "one": 32768, "quotient": "", "how": "up", "beta": "ignored"}
    ),
    "bilinear of 8 bits": Chip("RESIZE_BILINEAR", rule={"bits": 8, "how": "up"}),
    "bilinear of 11 bits": Chip("RESIZE_BILINEAR", rule={"bits": 11, "how": "away"}),
    "bilinear of half pixels always": Chip("RESIZE_BILINEAR", rule={"bits": 10, "how": "up", "half": True}),
    "nearest of half pixels always": Chip("RESIZE_NEAREST_NEIGHBOR", rule={"half": True}),
}
