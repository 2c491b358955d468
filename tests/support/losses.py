"""What quantization to a range loses, computed straight from the definition of affine codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.quantization.params import Range

Array = np.ndarray[Any, Any]


def near(values: Array, range_: Range, low: int = -128, high: int = 127) -> Array:
    """Values after quantization to [min(low, 0), max(high, 0)] by ChooseQuantizationParams' formulas."""
    a, b = min(float(range_.low[0]), 0.0), max(float(range_.high[0]), 0.0)
    scale = float(np.float32((b - a) / (high - low))) or 1.0
    zero = int(np.clip(np.rint(low - a / scale), low, high))
    return (np.clip(np.rint(values.astype(np.float64) / scale) + zero, low, high) - zero) * scale


def square_error(values: Array, range_: Range) -> float:
    """Mean square of what int8 codes over the range lose."""
    return float(np.mean(np.square(values - near(values, range_))))


def divergences(values: Array, range_: Range, bins: int = 2048) -> tuple[float, float]:
    """Kullback-Leibler and Jensen-Shannon divergence of a quantized histogram, bin by bin in plain Python."""
    x = np.sort(values.astype(np.float64))
    width = (x[-1] - x[0]) / bins
    members: dict[int, list[float]] = {}
    for value in x:
        members.setdefault(min(int((value - x[0]) / width), bins - 1), []).append(float(value))
    centre, mass = [float(np.mean(m)) for m in members.values()], [len(m) for m in members.values()]
    a, b = min(float(range_.low[0]), 0.0), max(float(range_.high[0]), 0.0)
    scale = float(np.float32((b - a) / 255))
    zero = int(np.clip(np.rint(-128 - a / scale), -128, 127))
    code = [int(np.rint(c / scale)) + zero for c in centre]
    inside = [i for i, c in enumerate(code) if -128 <= c <= 127]
    clipped = dict.fromkeys(range(len(code)), 0)
    for i, c in enumerate(code):
        clipped[inside[0] if c < -128 else inside[-1] if c > 127 else i] += mass[i]
    wanted = np.array([clipped[i] for i in range(len(code))], np.float64)
    made, whole = np.zeros(len(code)), np.array(mass, np.float64)
    saturated = np.zeros(len(code))
    for c in {code[i] for i in inside}:
        homes = [i for i in inside if code[i] == c]
        made[homes] = sum(mass[i] for i in homes) / len(homes)
        beyond = [i for i, other in enumerate(code) if min(max(other, -128), 127) == c]
        saturated[homes] = sum(mass[i] for i in beyond) / len(homes)
    return _kl(wanted / wanted.sum(), made / made.sum()), _js(whole / whole.sum(), saturated / saturated.sum())


def _kl(p: Array, q: Array) -> float:
    return float(sum(a * np.log(a / b) for a, b in zip(p, q, strict=True) if a))


def _js(p: Array, q: Array) -> float:
    middle = (p + q) / 2
    return (_kl(p, middle) + _kl(q, middle)) / 2
