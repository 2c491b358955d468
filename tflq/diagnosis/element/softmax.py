"""SOFTMAX of 8-bit codes: the distance below the row's largest, its exp, the sum, its reciprocal, their product."""

from __future__ import annotations

import numpy as np

from tflq.diagnosis.element.steps import Site, Tap, Working
from tflq.engine.kernels.softmax.reference import SUM_BITS
from tflq.engine.numerics.elementary import reciprocal
from tflq.engine.numerics.fixedpoint import doubling_high_mul
from tflq.engine.numerics.rounding import divide_by_pot_half_away, floats_to_int32
from tflq.engine.numerics.stages import type_range
from tflq.engine.numerics.steps import Step, clamp_step


def in_fixed_point(site: Site) -> Working:
    """Trace the reference: exps Q0.31, their sum with 12 integer bits, its reciprocal, two roundings."""
    data = site.data
    taps, below = _row(site, data.summands)
    largest = Step("below the row's largest", below)
    if below > data.radius:
        return Working(taps, (largest, Step("beyond the radius: the lowest code", data.clamp.low, f"{data.radius}")))
    total, exp = sum(int(tap.product) for tap in taps), int(data.exps[below])
    inverse, over = (int(part) for part in reciprocal(total & 0xFFFFFFFF, SUM_BITS))
    exponent, lowest = over + 31 - data.bits, data.clamp.low
    product = int(doubling_high_mul(inverse, exp, 32))
    code = int(divide_by_pot_half_away(product, exponent))
    return Working(
        taps,
        (
            largest,
            Step("exp, Q0.31", exp, f"exps[{below}]"),
            Step("sum of exps, Q12.19", total),
            Step("reciprocal of the sum, Q0.31", inverse, f"times 2^-{over}"),
            Step("multiplied, half up", product, f"{inverse} * {exp} / 2^31 = {inverse * exp / 2**31!r}"),
            Step("divided by a power of two, half away from zero", code, f"{product} / 2^{exponent}"),
            Step("output zero point added", code + lowest, f"{code} + {lowest}"),
            clamp_step(code + lowest, *data.clamp),
        ),
    )


def in_float32(site: Site) -> Working:
    """Trace the optimized kernels: float32 exps, summed in order, one reciprocal, one product, one rounding."""
    data = site.data
    taps, below = _row(site, data.exps)
    total = np.float32(0)
    for tap in taps:
        total = np.float32(total + np.float32(tap.product))
    exp, inverse = data.exps[below], np.float32(1) / np.float32(total * data.scale)
    real = np.float32(exp * inverse)
    whole = int(floats_to_int32(data.round(np.array([real])))[0])
    moved = whole + data.zero_point
    return Working(
        taps,
        (
            Step("below the row's largest", below),
            Step("exp", float(exp), f"exps[{below}]"),
            Step("sum of exps, in order", float(total)),
            Step("reciprocal of sum times output scale", float(inverse), f"1 / ({float(total)!r} * {data.scale!r})"),
            Step("multiplied", float(real), f"{float(exp)!r} * {float(inverse)!r}"),
            Step("rounded", whole),
            Step("output zero point added", moved, f"{whole} + {data.zero_point}"),
            clamp_step(moved, *type_range(data.dtype)),
        ),
    )


def _row(site: Site, table: np.ndarray) -> tuple[tuple[Tap, ...], int]:
    """Return the row's elements with their terms of the sum, and the site's own distance below the largest."""
    reads = [site.read(0, (*site.index[:-1], c)) for c in range(site.shape[-1])]
    largest = max(int(read.code) for read in reads)
    taps = tuple(Tap(read, None, table[largest - int(read.code)].item()) for read in reads)
    return taps, largest - int(reads[site.index[-1]].code)
