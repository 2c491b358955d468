"""QUANTIZE from float32: the quotient of each kernel, and its rounding."""

from __future__ import annotations

import numpy as np

from tflq.diagnosis.element.steps import Site, Tap, Working
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks
from tflq.engine.kernels.quantize.optimized import BLOCK
from tflq.engine.numerics.rounding import float_to_int32, round_half_away, round_half_even
from tflq.engine.numerics.steps import Step, clamp_step, wrap


def by_quotient(site: Site) -> Working:
    """Trace the reference: a float32 quotient, half away from zero; one scale per channel."""
    data = site.data
    channel = site.flat // data.rows[2] % data.rows[1]
    scale = data.scale[channel]
    with np.errstate(all="ignore"):
        quotient = float(np.float32(_given(site)) / scale)
    step = Step("divided by the scale, in float32", quotient, f"{_given(site)!r} / {float(scale)!r}")
    return _round_away(site, step, int(data.zero_point.codes[channel]))


def by_wide_quotient(site: Site) -> Working:
    """Trace the optimized kernels' scalar loop: a float64 quotient, half away from zero."""
    scale = float(site.data.scale[0])
    step = Step("divided by the scale, in float64", _given(site) / scale, f"{_given(site)!r} / {scale!r}")
    return _round_away(site, step, int(site.data.zero_point.codes[0]))


def by_blocks(site: Site) -> Working:
    """Trace vector code: a float32 product with the reciprocal, half to even; the scalar loop does the rest."""
    data = site.data
    if site.flat >= in_whole_blocks(int(np.prod(site.shape)), BLOCK):
        return by_wide_quotient(site)
    inverse, zero_point = np.float32(1.0 / float(data.scale[0])), int(data.zero_point.codes[0])
    product = float(np.float32(np.float32(_given(site)) * inverse))
    whole = int(float_to_int32(round_half_even(product)))
    steps = (
        Step("multiplied by 1 / scale, in float32", product, f"{_given(site)!r} * {float(inverse)!r}"),
        Step("rounded half to even", whole),
        Step("output zero point added", wrap(whole + zero_point), f"{whole} + {zero_point}"),
    )
    return _working(site, (*steps, clamp_step(wrap(whole + zero_point), *data.clamp)))


def by_product(site: Site) -> Working:
    """Trace XNNPACK: a float32 product with the reciprocal, clamped, half to even."""
    data = site.data
    product = float(np.float32(np.float32(_given(site)) * data.per_unit))
    low, high = data.clamp
    lowest, highest = (float(np.float32(limit - data.zero_point)) for limit in (low, high))
    clamped = min(max(product, lowest), highest)
    whole = int(round_half_even(clamped))
    steps = (
        Step("multiplied by 1 / scale, in float32", product, f"{_given(site)!r} * {float(data.per_unit)!r}"),
        Step("clamp", clamped, f"to {low} .. {high}, less the zero point"),
        Step("rounded half to even", whole),
        Step("output zero point added", whole + data.zero_point, f"{whole} + {data.zero_point}"),
    )
    return _working(site, steps)


def _round_away(site: Site, quotient: Step, zero_point: int) -> Working:
    whole = int(float_to_int32(round_half_away(float(quotient.value))))
    moved = wrap(whole + zero_point)
    steps = (
        quotient,
        Step("rounded half away from zero", whole),
        Step("output zero point added", moved, f"{whole} + {zero_point}"),
    )
    return _working(site, (*steps, clamp_step(moved, *site.data.clamp)))


def _given(site: Site) -> float:
    return float(site.read(0, site.index).code)


def _working(site: Site, steps: tuple[Step, ...]) -> Working:
    read = site.read(0, site.index)
    return Working((Tap(read, None, read.code),), steps)
