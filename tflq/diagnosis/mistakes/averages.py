"""Mistakes in means of windows and axes: other quotients, other counts, codes of the other signedness.

RESIZE_NEAREST_NEIGHBOR by other rules: the input row and column that each output row and column copies.
Every hypothesis is a point of the grammar of positions (`kernels/families/nearest_positions`) on the model with the
operator's own options, or with other ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import product

import numpy as np

from tflq.diagnosis.mistakes.device import Device, Mistaken, Under
from tflq.diagnosis.mistakes.products import accumulate, other_sign, wrong_windows
from tflq.diagnosis.mistakes.stages import fix
from tflq.engine.api.many import Part
from tflq.engine.kernels.families import pooling
from tflq.engine.kernels.families.means import DIVISION, FIELDS, RECIPROCAL, SUMS, Average
from tflq.engine.kernels.families.positions import ROUNDED
from tflq.engine.kernels.families.reduction import sum_int32
from tflq.engine.kernels.mean_sum import MeanData, SumData
from tflq.engine.numerics.rounding import DIVISIONS, QUOTIENTS
from tflq.engine.numerics.stages import StageOf
from tflq.engine.profiles import Profile
from tflq.engine.profiles.file import with_rows
from tflq.errors import UnsupportedError
from tflq.model.surgery.tap import with_option
from tflq.typing import Array, Ints

_REDUCTIONS = ("MEAN", "SUM", "AVERAGE_POOL_2D")
_UNLIMITED = 2**62


def mistaken_averages(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield every mistake in the quotients of one operator."""
    name = alone.op.builtin
    prepared = alone.plan(profile).steps[0].prepared
    if name not in _REDUCTIONS or prepared is None or _input(alone).dtype.kind not in "iu" or len(alone.got) != 1:
        return
    sums = (pooling.OpData, MeanData, SumData)
    if _input(alone).dtype.itemsize == 1 and isinstance(prepared.data, sums):
        yield "input codes taken for the other signedness", _misread(profile)
    if isinstance(prepared.data, pooling.OpData):
        overflows = _overflows(alone, prepared.data.window.taps)
        for point in _points(overflows=overflows):
            yield _name(point), Under(with_rows(profile, [{"op": alone.op.name, "average": asdict(point)}]))
        for name, window in wrong_windows(prepared.data.window).items():
            yield name, _of_window(replace(prepared.data, window=window))
    if isinstance(prepared.data, MeanData):
        for rounding, stage in {**_ONCE, **_TWICE}.items():
            if rounding in _ONCE:
                yield f"mean {rounding}", _mean(prepared.data, stage)
            for width in _WIDTHS if _overflows(alone, _input(alone).size) else ():
                for centred, what in ((False, "sum"), (True, "sum less its zero points")):
                    name = f"mean {rounding}, {what} of 16 bits that {width}"
                    yield name, _mean(prepared.data, stage, _WIDTHS[width], centred=centred)
        for rounding in QUOTIENTS:
            yield f"mean of codes that ignores scales, rounded {rounding}", _mean_of_codes(prepared.data, rounding)
            for width in _WIDTHS if _overflows(alone, _input(alone).size) else ():
                name = f"mean of codes that ignores scales, rounded {rounding}, sum of 16 bits that {width}"
                yield name, _mean_of_codes(prepared.data, rounding, _WIDTHS[width])


#: The multiplication of a mean's sum: one division of the product, or one of the product and one of the shift.
_ONCE: dict[str, StageOf] = {f"rounded once, {name}": fix(name) for name in DIVISIONS}
_TWICE: dict[str, StageOf] = {"rounded twice": fix("half away from zero", "half up")}
#: Treatments of sums that exceed 16 bits.
_WIDTHS: dict[str, Callable[[Ints], Ints]] = {name: SUMS[f"16 bits that {name}"] for name in ("wraps", "saturates")}
#: Roundings of quotients by a reciprocal in floats.
_OF_FLOATS = ("half to even", "half away from zero", "half up")


def _points(*, overflows: bool) -> Iterator[Average]:
    """Yield the averages of windows that are tried: one field or two differ from a plain division."""
    for rounding, zero in product(FIELDS["rounding"], FIELDS["zero_point"]):
        for count in FIELDS["count"]:
            yield Average(rounding, zero, count)
        for quotient in FIELDS["quotient"][1:]:
            if quotient == RECIPROCAL or rounding in _OF_FLOATS:
                yield Average(rounding, zero, quotient=quotient)
        for width in FIELDS["sum"][1:] if overflows else ():
            yield Average(rounding, zero, sum=width)


def _name(point: Average) -> str:
    """Return a point in words."""
    kind = "codes" if point.zero_point == "kept" else "codes less their zero point"
    how = "" if point.quotient == DIVISION else f"by a {point.quotient}, "
    count = "" if point.count == "taps inside" else ", over the whole window's count"
    width = "" if point.sum == "exact" else f", sum of {point.sum}"
    return f"average of {kind} {how}rounded {point.rounding}{count}{width}"


def _overflows(alone: Part, taps: int) -> bool:
    """Return whether sums of this many codes may exceed 16 bits."""
    x = _input(alone).astype(np.int64)
    return bool(x.size) and x.dtype.kind == "i" and int(np.abs(x).max()) * 2 * taps >= 2**15


def _input(alone: Part) -> Array:
    tensor = alone.op.inputs[0]
    return alone.inputs.get(tensor, np.zeros(0))


def _misread(profile: Profile) -> Device:
    """Return a device that reads codes in the other signedness.

    Sums ignore types: the kernel receives the misread codes in a wider type, or reads them in the other one.
    """

    def device(alone: Part) -> Mapping[int, Array]:
        operator, ((tensor, dumped),) = alone.op, alone.got.items()
        prepared = alone.plan(profile).steps[0].prepared
        codes, *rest = (alone.inputs.get(t, alone.graph.constant(t)) for t in operator.inputs)
        if prepared is None or codes is None:
            raise UnsupportedError("taken for the other signedness", reason="bound when it runs")
        other, data = other_sign(np.ascontiguousarray(codes)), prepared.data
        if isinstance(data, SumData):
            values = prepared.eval(replace(data, read_as=np.dtype(other.dtype)), codes, *rest)
        else:
            values = prepared.eval(data, other.astype(np.int16), *rest)
        return {tensor: np.asarray(values).astype(dumped.dtype)}

    return device


def _of_window(data: pooling.OpData) -> Device:
    """Return a device that averages codes over another window."""

    def device(alone: Part) -> Mapping[int, Array]:
        ((tensor, dumped),) = alone.got.items()
        x = _input(alone)
        total, count = (_sums(values, data) for values in (x.astype(np.int32), np.ones(x.shape, np.int32)))
        quotient = Average().divide(total, np.maximum(count, 1))
        return {tensor: np.clip(quotient, *data.clamp).astype(dumped.dtype)}

    return device


def _sums(x: Array, data: pooling.OpData) -> Ints:
    """Return sums over the windows without taps outside."""
    at = data.window
    sums = np.zeros(data.shape, np.int64)
    ones = np.ones((x.shape[3], at.kernel_h, at.kernel_w, 1), np.int32)
    accumulate(x, ones, at, 0, -_UNLIMITED, _UNLIMITED, sums)
    return sums


def _mean_of_codes(data: MeanData, rounding: str, narrowed: Callable[[Ints], Ints] | None = None) -> Device:
    """Return a device that divides the sum of codes by their number and ignores scales and zero points."""

    def device(alone: Part) -> Mapping[int, Array]:
        ((tensor, dumped),) = alone.got.items()
        rows = data.reduced.rows(_input(alone))
        sums = sum_int32(rows).astype(np.int64)
        sums = sums if narrowed is None else narrowed(sums)
        quotient = QUOTIENTS[rounding](sums, np.full_like(sums, max(1, rows.shape[1])))
        return {tensor: np.clip(quotient, *data.clamp).astype(dumped.dtype).reshape(dumped.shape)}

    return device


def _mean(
    data: MeanData, stage_of: StageOf, narrowed: Callable[[Ints], Ints] | None = None, *, centred: bool = False
) -> Device:
    """Return a device whose multiplier includes the division by the count.

    `narrowed` limits the sum, which is `centred` or of raw codes.
    """
    mantissa, shift = data.multiplier
    real = np.ldexp(np.array([float(mantissa)]), shift - 31)
    stage = stage_of(real)

    def device(alone: Part) -> Mapping[int, Array]:
        ((tensor, dumped),) = alone.got.items()
        sums = sum_int32(data.reduced.rows(_input(alone))).reshape(1, -1).astype(np.int64)
        sums = sums - data.zeros if centred else sums
        sums = sums if narrowed is None else narrowed(sums)
        sums = sums if centred else sums - data.zeros
        codes = np.clip(stage(sums).astype(np.int64) + data.zero_point, *data.clamp)
        return {tensor: codes.astype(dumped.dtype).reshape(dumped.shape)}

    return device


_PLAIN, _CORNERS, _CENTRES, _FROM_FIRST = "plain", "align_corners", "from the edge", "from the first pixel's centre"
#: Rules by name. Those of half_pixel_centers are two.
_RULES = {
    "half_pixel_centers ignored": _PLAIN,
    "half_pixel_centers taken": _CENTRES,
    "half_pixel_centers taken, from the first pixel's centre": _FROM_FIRST,
    "align_corners taken": _CORNERS,
}


def mistaken_positions(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield every rule of positions with every rounding, named by how it differs from the model's options."""
    options = alone.op.options
    if alone.op.builtin != "RESIZE_NEAREST_NEIGHBOR" or options is None:
        return
    align, half = bool(options.get("align_corners", False)), bool(options.get("half_pixel_centers", False))
    own = _CORNERS if align else _CENTRES if half else _PLAIN
    for rule, key in _RULES.items():
        text = "" if key == own else _rule_name(rule, align=align, half=half)
        is_centred = key in (_CENTRES, _FROM_FIRST)
        model = with_option(alone.model, "align_corners", key == _CORNERS)
        model = with_option(model, "half_pixel_centers", is_centred)
        for rounding in ROUNDED:
            point = {"half_pixel_centers": f"{key}, {rounding}"} if is_centred else {key: rounding}
            changed = with_rows(profile, [{"op": alone.op.name, "nearest": point}])
            yield f"position of the nearest pixel: {text}{rounding}", Under(changed, model)


def _rule_name(rule: str, *, align: bool, half: bool) -> str:
    """Return the rule's name, in terms of the options that it ignores or uses."""
    if rule == "half_pixel_centers ignored":
        ignored = [option for option, is_on in (("align_corners", align), ("half_pixel_centers", half)) if is_on]
        return f"{' and '.join(ignored)} ignored, "
    if align and not rule.startswith("align_corners"):
        return f"align_corners ignored, {rule}, "
    return f"{rule}, "
