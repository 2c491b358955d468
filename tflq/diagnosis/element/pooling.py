"""Pools and reductions: sums, means and extremes of adjacent elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.diagnosis.element.steps import Read, Site, Tap, Working, total_of
from tflq.engine.kernels.families.pooling import average_half_away
from tflq.engine.kernels.families.reduction import Reduced
from tflq.engine.numerics.stages import type_range
from tflq.engine.numerics.steps import Step, clamp_step, double_rounding_steps, pipeline_steps, wrap


def average(site: Site) -> Working:
    """Trace AVERAGE_POOL_2D: the taps inside the image, their number, half away from zero."""
    taps, outside = _window_taps(site)
    total = total_of(taps, "sum")
    mean = int(average_half_away(int(total.value), len(taps)))
    how = f"{total.value} / {len(taps)} = {int(total.value) / len(taps)!r}"
    steps = (total, Step("divided by the taps inside, half away from zero", mean, how))
    return Working(taps, (*steps, clamp_step(mean, *map(int, site.data.clamp))), outside)


def largest(site: Site) -> Working:
    """Trace MAX_POOL_2D: the largest of the taps inside the image."""
    taps, outside = _window_taps(site)
    lowest = type_range(site.operand(0).dtype)[0]
    best = max((int(tap.product) for tap in taps), default=lowest)
    clamped = clamp_step(best, *map(int, site.data.clamp))
    return Working(taps, (Step("largest", best), clamped), outside)


def _window_taps(site: Site) -> tuple[tuple[Tap, ...], int]:
    at, (n, oy, ox, channel) = site.data.window, site.index
    top, left = oy * at.stride_h - at.pad_top, ox * at.stride_w - at.pad_left
    taps = tuple(
        _term(site.read(0, (n, y, x, channel)))
        for y in range(max(top, 0), min(top + at.kernel_h, at.height))
        for x in range(max(left, 0), min(left + at.kernel_w, at.width))
    )
    return taps, at.taps - len(taps)


def mean(site: Site) -> Working:
    """Trace MEAN of the reference: zero points subtracted from the sum, then one multiplier that also divides."""
    data = site.data
    taps = _summands(site, data.reduced)
    total = total_of(taps, "sum")
    centred = wrap(wrap(int(total.value)) - data.zeros)
    steps = [total, Step("zero points subtracted", centred, f"{total.value} - {data.zeros}")]
    steps += double_rounding_steps(centred, *data.multiplier)
    moved = int(steps[-1].value) + data.zero_point
    steps.append(Step("output zero point added", moved, f"{steps[-1].value} + {data.zero_point}"))
    return Working(taps, (*steps, clamp_step(moved, *data.clamp)))


def mean_by_pipeline(site: Site) -> Working:
    """Trace MEAN over height and width by vector code: the raw sum scaled, both zero points in one bias."""
    taps = _summands(site, site.data.reduced)
    total = total_of(taps, "sum")
    steps = pipeline_steps(site.data.pipeline, wrap(int(total.value)), channel=site.index[-1])
    return Working(taps, (total, *steps))


def scale_in_float32(site: Site) -> Working:
    """Trace MEAN and SUM of XNNPACK: one float32 product, one float32 addition, clamped, half to even."""
    data = site.data
    taps = _summands(site, data.reduced)
    steps = [*_in_float32(taps, data.scale, data.offset)]
    clamped = float(np.clip(np.float32(steps[-1].value), *type_range(data.dtype)))
    how = "to {} .. {}".format(*type_range(data.dtype))
    return Working(taps, (*steps, Step("clamp", clamped, how), Step("rounded half to even", int(np.rint(clamped)))))


def _in_float32(taps: Sequence[Tap], scale: np.float32, offset: np.float32) -> tuple[Step, Step, Step]:
    total = total_of(taps, "sum")
    scaled = np.float32(wrap(int(total.value))) * scale
    return (
        total,
        Step("multiplied in float32", float(scaled), f"{total.value} * {float(scale)!r}"),
        Step("offset added in float32", float(scaled + offset), f"{float(scaled)!r} + {float(offset)!r}"),
    )


def _summands(site: Site, reduced: Reduced, read_as: np.dtype[np.generic] | None = None) -> tuple[Tap, ...]:
    """Return the elements that contribute to an output, in the order in which they are added."""
    x = site.operand(0)
    outer, inner = divmod(site.flat, reduced.view[2])
    offsets = reduced.rows(np.arange(x.size).reshape(x.shape))[outer, :, inner]
    reads = (site.read_flat(0, int(offset)) for offset in offsets)
    if read_as is None:
        return tuple(map(_term, reads))
    return tuple(Tap(r, None, int(np.array(r.code, x.dtype).view(read_as))) for r in reads)


def _term(read: Read) -> Tap:
    return Tap(read, None, read.code)
