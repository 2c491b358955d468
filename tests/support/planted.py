"""Synthetic devices: drawn from the grammar of requantizers or beside it, and computed by scalar code of their own.

Nothing here uses the grammar's code. Integers are Python's, which have no width; floats are NumPy scalars.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tflq.devices.learning.asking import Asker
from tflq.engine.api.files import load
from tflq.model.ir import view

Array = np.ndarray[Any, Any]
F = np.float32

ROUNDINGS = ("towards minus infinity", "towards zero", "half up", "half away from zero", "half to even")
MULTIPLIERS = (
    "float64",
    "float32",
    "float32, the product of scales last",
    "float32 product of scales, float64 quotient",
    "float32, times the output scale's reciprocal",
    "float64 rounded to float32",
)
#: Faults that the grammar has no field for.
FAULTS = (
    "stochastic rounding",
    "rounds to odd",
    "mantissa of 13 bits",
    "accumulator of 21 bits, wraps",
    "multiplier of two bits",
    "a quarter is added before rounding",
    "three roundings",
    "channels 3 modulo 4 are cut off",
    "bias of 16 bits",
    "one more for codes above 100",
)
#: Faults of a product in fixed point.
IN_FIXED_POINT = (*FAULTS[1:3], FAULTS[4], FAULTS[7])


@dataclass
class Fields:
    """The fields of a requantizer, spelled as in files of profiles."""

    multiplier: str = "float64"
    product: str = "fixed point"
    mantissa: int = 31
    shortened: str = "to nearest"
    first: str = "none"
    last: str = "half up"
    zero_point: str = "after rounding"
    left: str = "wraps"
    accumulator: str = "32 bits, wraps"
    result: str = "clamped"


def drawn(seed: int) -> tuple[Fields, str]:
    """Return the fields of a device, and its fault, which one in five has."""
    rng = np.random.default_rng([seed, 26])

    def pick(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    fields = Fields(multiplier=pick(*MULTIPLIERS), last=pick(*ROUNDINGS))
    fields.product = pick(*["fixed point"] * 5, "float64", "float32", "bfloat16", "float32 quotient")
    fields.product = pick(fields.product, fields.product, fields.product, "float32 times reciprocal")
    fault = FAULTS[seed // 5 % len(FAULTS)] if seed % 5 == 3 else ""
    if fault in IN_FIXED_POINT:
        fields.product = "fixed point"
    if fields.product == "fixed point":
        fields.mantissa = pick(31, 31, 24, 23, 16, 15, 8, 7)
        fields.shortened = pick("to nearest", "cut off") if fields.mantissa < 31 else "to nearest"
        fields.first = pick("none", *ROUNDINGS)
        fields.left = pick("wraps", "saturates", "exact")
    elif "quotient" in fields.product or "reciprocal" in fields.product:
        fields.multiplier = "given"
    fields.zero_point = pick("after rounding", "after rounding", "before rounding")
    if fields.product == "fixed point" and fields.last in ("towards minus infinity", "half up"):
        fields.zero_point = "after rounding"  # whole numbers pass through these roundings
    bits = pick(32, 32, 24, 16)
    fields.accumulator = f"{bits} bits, {pick('wraps', 'saturates')}"
    fields.result = pick("clamped", "clamped", "clamped before and after the zero point", "cut to the type")
    return fields, fault


def divided(value: int, bits: int, how: str) -> int:
    """Return value / 2**bits as a whole number."""
    if bits < 0:
        return value << -bits
    whole, rest = value >> bits, value & ((1 << bits) - 1)
    half = (1 << bits) >> 1
    if rest == 0 or how == "towards minus infinity":
        return whole
    if how == "towards zero":
        return whole + (value < 0)
    if how == "to odd":
        return whole | 1
    if rest != half:
        return whole + (rest > half)
    return whole + {"half up": 1, "half away from zero": int(value > 0), "half to even": whole & 1}[how]


def rounded(x: Any, how: str) -> int:
    """Return a float as a whole number, in its own precision."""
    one = type(x)
    if not np.isfinite(x):
        return 0 if np.isnan(x) else (1 << 40) * (1 if x > 0 else -1)
    if how == "towards minus infinity":
        return int(np.floor(x))
    if how == "towards zero":
        return int(np.trunc(x))
    if how == "half up":
        return int(np.floor(one(x + one(0.5))))
    if how == "half away from zero":
        return int(math.copysign(1, x)) * int(np.floor(one(abs(x) + one(0.5))))
    return int(np.rint(x))


def bfloat16(x: Any) -> Any:
    bits = int(np.float32(x).view(np.uint32))
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return np.uint32(bits).view(np.float32)


def wrapped(x: int, bits: int) -> int:
    return (x + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


@dataclass
class Device:
    """A device that computes CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, QUANTIZE, MUL and AVERAGE_POOL_2D on int8."""

    fields: Fields
    fault: str = ""
    average: tuple[str, str] = ("half away from zero", "kept")
    noise: np.random.Generator = field(default_factory=lambda: np.random.default_rng(5))

    def __post_init__(self) -> None:
        self.code: Any = self._code if self.is_noisy else lru_cache(1 << 18)(self._code)

    @property
    def is_noisy(self) -> bool:
        return self.fault == "stochastic rounding"

    def multiplier(self, a: Any, b: Any, y: Any) -> float:
        """Return the real multiplier of float32 scales; `b` is None for operators with one factor."""
        product = a if b is None else F(a * b)
        wide = float(a) if b is None else float(a) * float(b)
        name = self.fields.multiplier
        if name == "float32":
            return float(F(product / y))
        if name == "float32, the product of scales last":
            return float(F(a / y) if b is None else F(F(a / y) * b))
        if name == "float32 product of scales, float64 quotient":
            return float(product) / float(y)
        if name == "float32, times the output scale's reciprocal":
            return float(F(product * F(F(1) / y)))
        return float(F(wide / float(y))) if name == "float64 rounded to float32" else wide / float(y)

    def _code(self, total: int, a: Any, b: Any, y: Any, zero: int, channel: int) -> int:
        """Return the code of an accumulator."""
        f = self.fields
        bits, how = f.accumulator.split(" bits, ")
        if self.fault == "accumulator of 21 bits, wraps":
            bits, how = "21", "wraps"
        width = int(bits)
        total = wrapped(total, width) if how == "wraps" else min(max(total, -(1 << width - 1)), (1 << width - 1) - 1)
        if f.product == "fixed point":
            scaled = self._fixed(total, self.multiplier(a, b, y), zero, channel)
        else:
            scaled = max(min(self._float(total, a, b, y, zero), 1 << 40), -(1 << 40))
        if f.result == "cut to the type":
            return wrapped(scaled + zero, 8)
        if f.result == "clamped before and after the zero point":
            scaled = min(max(scaled, -128), 127)
        code = min(max(scaled + zero, -128), 127)
        return min(code + 1, 127) if self.fault == "one more for codes above 100" and code > 100 else code

    def _fixed(self, total: int, real: float, zero: int, channel: int) -> int:
        f, fault = self.fields, self.fault
        fraction, shift = math.frexp(real)
        q31 = math.floor(fraction * 2**31 + 0.5)
        if q31 == 1 << 31:
            q31, shift = 1 << 30, shift + 1
        bits = 13 if fault == "mantissa of 13 bits" else f.mantissa
        dropped = 31 - bits
        mantissa = q31 >> dropped if f.shortened == "cut off" else (q31 + ((1 << dropped) >> 1)) >> dropped
        if fault == "multiplier of two bits":
            mantissa = mantissa >> bits - 2 << bits - 2
        left, right = max(shift, 0), max(-shift, 0)
        if f.left == "wraps":
            total = wrapped(total << left, 32)
        elif f.left == "saturates":
            most = (1 << 31) - 1
            total = total << left if not left or abs(total) << left <= most else most * (1 if total > 0 else -1)
        product, low = total * mantissa, bits - left if f.left == "exact" else bits
        last = "towards minus infinity" if fault.startswith("channels 3") and channel % 4 == 3 else f.last
        last = "to odd" if fault == "rounds to odd" else last
        down = low + right
        if f.first != "none":
            product, down = divided(product, low, f.first), right
        if fault == "three roundings" and down > 3:
            product, down = divided(product, 3, "half up"), down - 3
        if fault == "a quarter is added before rounding" and down > 1:
            product += 1 << down - 2
        if fault == "stochastic rounding":
            product += int(self.noise.integers(0, 1 << min(max(down, 0), 62)))
            last = "towards minus infinity"
        if f.zero_point == "before rounding":
            return divided(product + (zero << max(down, 0)), down, last) - zero
        return divided(product, down, last)

    def _float(self, total: int, a: Any, b: Any, y: Any, zero: int) -> int:
        f, how = self.fields, self.fields.last
        one: Any = np.float64 if f.product == "float64" else F
        with np.errstate(all="ignore"):
            if f.product == "float64":
                x: Any = np.float64(total) * np.float64(self.multiplier(a, b, y))
            elif f.product == "bfloat16":
                x = bfloat16(bfloat16(F(total)) * bfloat16(F(self.multiplier(a, b, y))))
            elif f.product == "float32":
                x = F(total) * F(self.multiplier(a, b, y))
            else:
                x = F(total) * (a if b is None else F(a * b))
                if f.product == "float32 by range":
                    low, high = F(y * F(-128 - zero)), F(y * F(127 - zero))
                    up, shift = F(F(255) / F(high - low)), F(F(F(255) * -low) / F(high - low) + F(-128))
                    return rounded(F(np.longdouble(x) * np.longdouble(up) + np.longdouble(shift)), how) - zero
                x = F(x / y) if "quotient" in f.product else F(x * F(F(1) / y))
            if self.fault == "a quarter is added before rounding":
                x = one(x + one(0.25))
            if self.fault == "three roundings":
                x = one(rounded(one(x * one(8)), "half up") / 8)
            if self.fault == "stochastic rounding":
                x, how = one(x + one(self.noise.random())), "towards minus infinity"
            if f.zero_point == "before rounding":
                return rounded(one(x + one(zero)), how) - zero
            return rounded(one(x), how)

    # --- operators ---------------------------------------------------------------------------------------------------

    def run(self, model: Any, inputs: list[Array]) -> Array:
        """Return the output of a model of one operator."""
        graph = view(model)
        op = graph.op(0)
        specs: list[Any] = [None if t < 0 else graph.tensors[t] for t in op.inputs]
        given = iter(inputs)
        values: list[Any] = [None if t < 0 else graph.constant(t) for t in op.inputs]
        values = [next(given) if v is None and s is not None else v for v, s in zip(values, specs, strict=True)]
        y: Any = graph.tensors[op.outputs[0]]
        options: dict[str, Any] = {} if op.options is None else dict(op.options.fields)
        kind = op.builtin
        if kind not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "QUANTIZE", "MUL", "AVERAGE_POOL_2D"):
            raise NotImplementedError(kind)
        if options.get("fused_activation_function", 0):
            raise NotImplementedError("activations")
        x, first = values[0], specs[0].quantization
        zero, scale = int(y.quantization.zero_point[0]), y.quantization.scale[0]
        if kind == "AVERAGE_POOL_2D":
            return self._averaged(x, int(first.zero_point[0]), options, y.shape)
        centred = x.astype(np.int64) - int(first.zero_point[0])
        if kind == "QUANTIZE":
            return self._codes(centred, first.scale[0], None, scale, zero)
        q = specs[1].quantization
        if kind == "MUL":
            product = centred * (values[1].astype(np.int64) - int(q.zero_point[0]))
            return self._codes(product, first.scale[0], q.scale[0], scale, zero)
        w, bias = values[1].astype(np.int64), values[2].astype(np.int64)
        if self.fault == "bias of 16 bits":
            bias = (bias + 2**15) % 2**16 - 2**15
        sums = self._sums(kind, centred, w, options, y.shape) + bias
        weights = np.broadcast_to(q.scale, (sums.shape[-1],))
        out = [self._codes(sums[..., c], first.scale[0], weights[c], scale, zero, c) for c in range(sums.shape[-1])]
        return np.stack(out, axis=-1).reshape(y.shape)

    def _codes(self, totals: Array, a: Any, b: Any, y: Any, zero: int, channel: int = 0) -> Array:
        if self.is_noisy:
            flat = [self.code(int(t), a, b, y, zero, channel) for t in totals.reshape(-1)]
            return np.array(flat, np.int8).reshape(totals.shape)
        unique, back = np.unique(totals.reshape(-1), return_inverse=True)
        codes = np.array([self.code(int(t), a, b, y, zero, channel) for t in unique], np.int8)
        return codes[back].reshape(totals.shape)

    @staticmethod
    def _sums(kind: str, x: Array, w: Array, options: dict[str, Any], shape: Any) -> Array:
        if kind == "FULLY_CONNECTED":
            product: Array = x.reshape(-1, w.shape[1]) @ w.T
            return product
        _, out_h, out_w, channels = shape
        kh, kw = w.shape[1:3]
        steps = [(int(options[f"stride_{s}"]), int(options[f"dilation_{s}_factor"])) for s in "hw"]
        (sh, dh), (sw, dw) = steps
        pads = [0, 0]
        if int(options["padding"]) == 0:
            sizes = ((out_h, sh, kh, dh, x.shape[1]), (out_w, sw, kw, dw, x.shape[2]))
            pads = [max((o - 1) * s + (k - 1) * d + 1 - n, 0) // 2 for o, s, k, d, n in sizes]
        sums = np.zeros((x.shape[0], out_h, out_w, channels), np.int64)
        for oy in range(out_h):
            for ox in range(out_w):
                for ky in range(kh):
                    for kx in range(kw):
                        iy, ix = oy * sh - pads[0] + ky * dh, ox * sw - pads[1] + kx * dw
                        if not (0 <= iy < x.shape[1] and 0 <= ix < x.shape[2]):
                            continue
                        pixel = x[:, iy, ix]
                        if kind == "DEPTHWISE_CONV_2D":
                            times = channels // x.shape[3]
                            sums[:, oy, ox] += np.repeat(pixel, times, axis=1) * w[0, ky, kx]
                            continue
                        depth = w.shape[3]
                        groups = x.shape[3] // depth
                        wide = channels // groups
                        for g in range(groups):
                            part = pixel[:, g * depth : (g + 1) * depth] @ w[g * wide : (g + 1) * wide, ky, kx].T
                            sums[:, oy, ox, g * wide : (g + 1) * wide] += part
        return sums

    def _averaged(self, x: Array, zero: int, options: dict[str, Any], shape: Any) -> Array:
        how, kept = self.average
        _, out_h, out_w, channels = shape
        kh, kw, sh, sw = (int(options[k]) for k in ("filter_height", "filter_width", "stride_h", "stride_w"))
        pads = [0, 0]
        if int(options["padding"]) == 0:
            sizes = ((out_h, sh, kh, x.shape[1]), (out_w, sw, kw, x.shape[2]))
            pads = [max((o - 1) * s + k - n, 0) // 2 for o, s, k, n in sizes]
        out = np.zeros((x.shape[0], out_h, out_w, channels), np.int8)
        offset = 0 if kept == "kept" else zero
        for n in range(x.shape[0]):
            for oy in range(out_h):
                for ox in range(out_w):
                    top, side = oy * sh - pads[0], ox * sw - pads[1]
                    window = x[n, max(top, 0) : top + kh, max(side, 0) : side + kw].astype(np.int64) - offset
                    count = window.shape[0] * window.shape[1]
                    for c in range(channels):
                        out[n, oy, ox, c] = quotient(int(window[..., c].sum()), count, how) + offset
        return out


def quotient(total: int, count: int, how: str) -> int:
    whole, rest = divmod(total, count)
    if rest == 0 or how == "towards minus infinity":
        return whole
    if how == "towards zero":
        return whole + (total < 0)
    if 2 * rest != count:
        return whole + (2 * rest > count)
    return whole + {"half up": 1, "half away from zero": int(total > 0), "half to even": whole & 1}[how]


@dataclass
class PlantedTarget:
    """A synthetic device behind the protocol of targets, in this process."""

    device: Any  # its run(model, inputs) gives the codes of the only output
    name: str = "planted"

    def identity(self) -> dict[str, Any]:
        return {"name": self.name, "version": "planted 1"}

    def do(self, job: Any, cases: Any) -> str:
        for case in cases:
            place = job.folder / case.id
            model = load(place / "model.tflite")
            graph = view(model)
            try:
                for number in range(len(case.samples)):
                    inputs = []
                    for position, tensor in enumerate(graph.inputs):
                        spec: Any = graph.tensors[tensor]
                        data = np.fromfile(place / f"in{number}_{position}.bin", spec.type.label)
                        inputs.append(data.reshape(spec.shape))
                    made = self.device.run(model, inputs).astype(graph.tensors[graph.outputs[0]].type.label)
                    made.tofile(place / f"out{number}_0.bin")
            except NotImplementedError as error:
                (place / "refused.txt").write_text(str(error))
        return ""


def planted(seed: int) -> PlantedTarget:
    """Return the device of a seed."""
    fields, fault = drawn(seed)
    rng = np.random.default_rng([seed, 27])
    average = (ROUNDINGS[int(rng.integers(5))], ("kept", "subtracted")[int(rng.integers(2))])
    return PlantedTarget(Device(fields, fault, average), f"planted {seed}")


def stated(fields: Fields) -> dict[str, Any]:
    """Return the fields as a file states them."""
    return asdict(fields)


def asker(seed: int) -> Asker:
    """Return a way to ask the device of a seed."""
    return Asker(planted(seed))
