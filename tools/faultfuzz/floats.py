"""Faults of float kernels, of sums that overflow and of roundings of vector units: small models, plain NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from device.operators import has
from device.runtimes import as_computed_by
from device.scaling import fixed
from faultfuzz.planted import Array, Kind, Planted, Run
from tflq.devices.suites.draft import T, build
from tflq.engine.api.files import load
from tflq.engine.profiles import by_name
from tflq.model.ir import view


def _in_float16(x: Array) -> Array:
    with np.errstate(all="ignore"):
        return x.astype(np.float16).astype(np.float32)


def _in_bfloat16(x: Array) -> Array:
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32).reshape(x.shape)


def narrow(name: str, narrowed: Callable[[Array], Array], large: float = 1.0) -> Callable[..., Planted | None]:
    """Return the function that plants a device whose results are all rounded to a narrower type."""

    def plant(run_: Run, rng: np.random.Generator) -> Planted | None:
        graph = view(run_.model)
        floats = [i for i in run_.operators if run_.samples[0][run_.output(i)].dtype == np.float32]
        if (
            not floats
            or any(len(graph.op(i).outputs) != 1 for i in run_.operators)
            or len(floats) < len(run_.operators)
        ):
            return None
        samples = []
        for values in run_.samples:
            now = {t: v * np.float32(large) if t in graph.inputs else v for t, v in values.items()}
            known = {t: narrowed(now[t]) for t in graph.inputs}
            state = dict(known)
            for index in run_.operators:
                from tflq.engine.api.many import part_of
                from tflq.errors import TflqError

                try:
                    part = part_of(run_.model, (index,), {**now, **state})
                    with np.errstate(all="ignore"):
                        made = part.run(part.plan(by_name(run_.profile)))
                except TflqError:
                    return None
                state[run_.output(index)] = narrowed(made[run_.output(index)])
            samples.append({**state, **{t: now[t] for t in graph.inputs}})
        whole = bool(rng.random() < 0.7)
        words = (rf"{name}",)
        if not all(np.isfinite(v).all() for one in samples for v in one.values() if v.dtype.kind == "f"):
            words = (rf"{name}.*(infinity|NaN)",)
        elif sum(v[t].size for v in samples for t in graph.outputs) < 3:
            return None
        kept = run_.kept(samples, whole=whole)
        return Planted(f"{name} inside", "float", run_.model, run_.path, run_.profile, -1, kept, words, (), whole)

    return plant


# --- Hybrid ----------------------------------------------------------------------------------------------------------


def hybrid(_: Run, rng: np.random.Generator) -> Planted | None:
    """Plant a fault into a FULLY_CONNECTED of floats with int8 weights."""
    rows, depth, units = int(rng.integers(1, 4)), int(rng.integers(16, 80)), int(rng.integers(4, 24))
    w = rng.integers(-127, 128, (units, depth)).astype(np.int8)
    per_channel = bool(rng.random() < 0.5)
    scale = rng.uniform(0.002, 0.02, units if per_channel else 1).astype(np.float32)
    bias = rng.normal(0, 2, units).astype(np.float32)
    weights = T("int8", (units, depth), scale if per_channel else float(scale[0]), 0, value=w)
    asymmetric = bool(rng.random() < 0.7)
    model = load(
        build(
            "FULLY_CONNECTED",
            [T("float32", (rows, depth)), weights, T("float32", (units,), value=bias)],
            [T("float32", (rows, units))],
            ("FullyConnectedOptions", {"asymmetric_quantize_inputs": asymmetric}),
        )
    )
    how = str(rng.choice(["zero point", "bias", "first scale"]))
    if (how == "zero point" and not asymmetric) or (how == "first scale" and not per_channel):
        return None
    samples = []
    for _k in range(int(rng.integers(1, 4))):
        x = rng.normal(0.8, 1.5, (rows, depth)).astype(np.float32)
        y = np.zeros((rows, units), np.float32) + (0 if how == "bias" else bias)
        for r in range(rows):
            codes, s, zero = _quantized(x[r], asymmetric)
            total = w.astype(np.int64) @ (codes - (0 if how == "zero point" else zero))
            factors = scale[0] if how == "first scale" else scale
            y[r] += (total.astype(np.float32) * (s * factors)).astype(np.float32)
        samples.append({0: x, view(model).outputs[0]: y})
    right = {"zero point": r"zero point", "bias": r"bias missing", "first scale": r"first"}[how]
    return Planted(f"hybrid: {how}", "float", model, "hybrid", "litert-ref", 0, tuple(samples), (right,))


def _quantized(x: Array, asymmetric: bool) -> tuple[Array, np.float32, int]:
    """Return codes, scale and zero point of a row, as LiteRT quantizes it."""
    if not asymmetric:
        s = np.float32(np.abs(x).max() / np.float32(127))
        q = x * np.float32(np.float32(1) / s) if s else x
        return np.trunc(q + np.copysign(np.float32(0.5), q)).astype(np.int64), s, 0
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    s = (high - low) / 255
    by_low, by_high = -128 - low / s, 127 - high / s
    chosen = by_low if 128 + abs(low / s) < 127 + abs(high / s) else by_high
    zero = int(np.floor(chosen + 0.5) if chosen >= 0 else np.ceil(chosen - 0.5))
    s32 = np.float32(s)
    q = np.float32(zero) + x * np.float32(np.float32(1) / s32)
    return np.clip(np.trunc(q + np.copysign(np.float32(0.5), q)), -128, 127).astype(np.int64), s32, zero


# --- Overflow --------------------------------------------------------------------------------------------------------


def overflow(_: Run, rng: np.random.Generator) -> Planted | None:
    """Plant accumulators of 32 bits into a FULLY_CONNECTED of int16 codes with large sums."""
    depth, units = int(rng.choice([1024, 1536, 2048])), 16
    w = np.clip(rng.normal(70, 30, (units, depth)), -127, 127).astype(np.int8)
    x_scale, w_scale, y_scale = 0.0005, 0.01, 2.0
    model = load(
        build(
            "FULLY_CONNECTED",
            [
                T("int16", (1, depth), x_scale, 0),
                T("int8", (units, depth), w_scale, 0, value=w),
                T("int64", (units,), x_scale * w_scale, 0, value=np.zeros(units, np.int64)),
            ],
            [T("int16", (1, units), y_scale, 0)],
            ("FullyConnectedOptions", {}),
        )
    )
    wraps = bool(rng.random() < 0.7)
    real = float(np.float64(np.float32(x_scale)) * np.float64(np.float32(w_scale)) / np.float64(np.float32(y_scale)))
    mantissa, exponent = fixed(real)
    samples = []
    for k in range(int(rng.integers(1, 4))):
        x = np.clip(rng.normal(16000 + 4000 * k, 6000, (1, depth)), -32767, 32767).astype(np.int16)
        total = x.astype(np.int64) @ w.astype(np.int64).T
        limited = (total + 2**31) % 2**32 - 2**31 if wraps else np.clip(total, -(2**31), 2**31 - 1)
        if (limited != total).sum() < 3:
            return None
        high = (limited * mantissa + (1 << 30)) >> 31
        right = -exponent
        rounded = np.sign(high) * ((np.abs(high) + ((1 << right) >> 1)) >> right)
        samples.append({0: x, view(model).outputs[0]: np.clip(rounded, -32768, 32767).astype(np.int16)})
    words = (r"overflow|wrap|saturat",)
    return Planted("int32 overflow", "arithmetic", model, "wide", "tflm", 0, tuple(samples), words)


# --- Rounding modes --------------------------------------------------------------------------------------------------


def vector_rounding(run_: Run, rng: np.random.Generator) -> Planted | None:
    """Plant a rounding mode of RISC-V's vector unit in product and shift of all channels of one contraction."""
    from device.contraction import _sums, axis, filters, multipliers
    from device.mistakes import CONVOLUTIONS

    for index in rng.permutation(len(run_.operators)).tolist():
        site = run_.site(index)
        if site is None or site.op not in CONVOLUTIONS or not has(site) or site.type == "int16":
            continue
        device = as_computed_by(run_.profile, site)
        if device is None:
            continue
        mode = str(rng.choice(["rnu", "rne", "rdn", "rod"]))
        results = []
        for values in run_.samples:
            x = values[site.input(0).tensor]
            weights = filters(site, device) - site.input(1).zero
            down = axis(site, device, "h", x.shape[1], weights.shape[1])
            across = axis(site, device, "w", x.shape[2], weights.shape[2])
            total = _sums(site, device, x.astype(np.int64), weights, down, across)
            pairs = [fixed(float(r)) for r in multipliers(site, device, total.shape[3])]
            m, e = (np.array(v, np.int64) for v in zip(*pairs, strict=True))
            high = _rounded(total * m, np.int64(31) - np.maximum(e, 0), mode)
            codes = _rounded(high, np.maximum(-e, 0), mode) + site.output.zero
            results.append(_clamped(codes, site).reshape(values[site.output.tensor].shape))
        own = [values[site.output.tensor] for values in run_.samples]
        if sum(int((a != b).sum()) for a, b in zip(results, own, strict=True)) < 24:
            continue
        samples = run_.kept(run_.with_result(index, results), whole=True)
        words = {
            "rnu": r"half up",
            "rne": r"half to even|half even",
            "rdn": r"minus infinity|rounds down",
            "rod": r"to odd",
        }[mode]
        name = f"vxrm {mode}"
        return Planted(name, "arithmetic", run_.model, run_.path, run_.profile, index, samples, (words,))
    return None


def _rounded(values: Array, bits: Array, mode: str) -> Array:
    """Return values / 2**bits, rounded by a mode of vxrm."""
    bits = np.broadcast_to(np.asarray(bits, np.int64), values.shape)
    whole, rest = values >> bits, values - ((values >> bits) << bits)
    half = (np.int64(1) << bits) >> 1
    if mode == "rnu":
        return whole + ((rest >= half) & (half > 0))
    if mode == "rne":
        return whole + ((rest > half) | ((rest == half) & (half > 0) & (whole & 1 == 1)))
    return whole | (rest != 0) if mode == "rod" else whole


def _clamped(codes: Array, site) -> Array:  # type: ignore[no-untyped-def]
    low, high = site.output.limits
    zero, scale = site.output.zero, float(site.output.scale)
    if site.activation in ("RELU", "RELU6"):
        low = max(low, zero)
    if site.activation == "RELU6":
        high = min(high, zero + round(6 / scale))
    return np.clip(codes, low, high).astype(site.output.dtype)


KINDS = (
    Kind("float16 inside", "float", narrow("float16", _in_float16), weight=1),
    Kind("float16 overflow", "float", narrow("float16", _in_float16, large=3000.0), weight=0.5),
    Kind("bfloat16 inside", "float", narrow("bfloat16", _in_bfloat16), weight=1),
    Kind("hybrid", "float", hybrid, weight=3),
    Kind("int32 overflow", "arithmetic", overflow, weight=1),
    Kind("vxrm", "arithmetic", vector_rounding, weight=2),
)
