"""Findings in words and formulas, and as a profile's file.

Findings in words and formulas, and one element worked out step by step.

The profile file of a device: rows that execute what was learned, and where it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import yaml

from tflq.devices.learning.findings import Learned, LearnFindings, LearnState
from tflq.devices.learning.forms import BASE, Form
from tflq.devices.learning.space import Requantized
from tflq.engine.kernels.families.means import DIVISION
from tflq.engine.kernels.families.reals import SCALED
from tflq.engine.kernels.families.sums import COUNTED, TO_OUTPUT
from tflq.engine.numerics.codes import TO_CODES
from tflq.engine.numerics.multiplier import OperatorScales
from tflq.engine.numerics.requantizer import BY_RANGE, NAMED, NARROWED, SHIFTS, Requantizer, limit, point_of
from tflq.engine.profiles.building import NOT_MEASURED
from tflq.engine.profiles.file import SCHEMA

#: How reals become codes, by the product.
_BY_SCALE = {
    "float32 quotient": "divided by the output's scale",
    "float32 times reciprocal": "multiplied by the reciprocal of the output's scale",
    BY_RANGE: "made a code by the ends of the output's range",
}
_AVERAGED = {"kept": "of codes", "subtracted": "of codes less their zero point"}


def describe(form: Form) -> str:
    """Return a form in one sentence without its full stop."""
    return "; ".join([_alone(form), *(_changed(kind, dict(fields)) for kind, fields in form.more)])


def _changed(kind: str, point: dict[str, Any]) -> str:
    """Return a change beside a form's own in words."""
    if kind == "ignores":
        return f"ignored: {point['option']}"
    if kind == "requantizer":
        return requantizer_in_words(point_of(point))
    if kind == "only":
        known = (" and ".join(map(" ".join, zip(point["names"], one, strict=True))) for one in point["values"])
        return "only with " + " or ".join(known)
    values = (f"{name.replace('_', ' ')} {value}" for name, value in point.items())
    return f"{kind.replace('_', ' ')}: " + ", ".join(values)


def _alone(form: Form) -> str:
    if not form.kind:
        return f"as {form.like}"
    structure = "" if form.like == BASE else f"as {form.like}, but "
    point: dict[str, Any] = form.point
    if form.kind == "requantizer":
        return structure + requantizer_in_words(point_of(point))
    if form.kind == "average":
        count = "" if point["count"] == "taps inside" else ", divided by the size of the whole window"
        quotient, width = point.get("quotient", DIVISION), point.get("sum", "exact")
        count += "" if quotient == DIVISION else f", by a {quotient}"
        count += "" if width == "exact" else f", sums of {width}"
        return f"{structure}the average {_AVERAGED[point['zero_point']]} is rounded {point['rounding']}{count}"
    if form.kind == "ignores":
        return f"as {form.like}, but the option {point['option']} is ignored"
    if form.kind == "nearest":
        return "the nearest pixel: " + "; ".join(f"{mode} {rule}" for mode, rule in point.items())
    if form.kind == "float_sum":
        return structure + _sum_in_words(point)
    if form.kind == "floats":
        return _floats_in_words(form)
    if form.kind != "arithmetic":
        return structure + _changed(form.kind, point)
    return f"as {form.like} with " + ", ".join(f"{name} {value}" for name, value in point.items())


def _sum_in_words(point: dict[str, Any]) -> str:
    if point["scales"] != TO_OUTPUT:
        how = "the first input's" if point["products"] == "rounded" else "the first input's, fused,"
        back = (
            " in which the output's range is counted, too" if point["scales"] == COUNTED else " and scales the sum back"
        )
        return (
            f"in float32 instead of integers: steps of the ranges, {how} as steps of the second's,{back}; "
            f"rounded {point['rounding']}"
        )
    apart = "" if point["products"] == "rounded" else ", each product fused with the addition after it"
    return (
        f"in float32 instead of integers: codes times ratios of scales, zero points {point['zero_points']}, "
        f"{point['order']}{apart}, rounded {point['rounding']}"
    )


def _floats_in_words(form: Form) -> str:
    point = form.point
    adds = f" (sums as {form.like})"
    if point["reals"] == "codes":
        return f"computes on codes in float32{adds} and rounds {point['rounding']}"
    if point["quotient"] in TO_CODES:
        what = f"counts the output's range in {point['reals']}"
        if point["reals"] == SCALED:
            what = f"dequantizes {point['dequantized']}, computes in {point['precision']}{adds}"
        return f"{what}; codes {point['quotient']}, rounded {point['rounding']}"
    how = point["quotient"].replace("times reciprocal", "multiplied by the reciprocal of the output's scale")
    how = how.replace("divided", "divided by the output's scale").replace("zero point", "the zero point added")
    return f"dequantizes, computes in {point['precision']}{adds}; {how}, rounded {point['rounding']}"


def requantizer_in_words(point: Requantizer) -> str:
    """Return a point in words; a point that is a stage of a runtime has its name, too."""
    parts = []
    if point.uses_scales:
        parts.append(f"the accumulator times the product of scales in float32, {_BY_SCALE[point.product]}")
    else:
        of = "" if point.multiplier == "given" else f" computed in {point.multiplier}"
        parts.append(f"a multiplier{of}")
        if point.is_fixed:
            how = "" if point.mantissa == 31 else f" ({point.shortened})"
            is_power = point.mantissa == 1
            parts.append(f"a power of two{how}" if is_power else f"a mantissa of {point.mantissa} bits{how}")
        else:
            parts.append(f"the product in {point.product}")
    if point.is_fixed and point.first != "none":
        parts.append(f"rounded {point.first} to the high word, then {point.last}")
    else:
        parts.append(f"rounded once, {point.last}")
    if point.zero_point == "before rounding":
        parts.append("the zero point added before the rounding")
    if point.shift != SHIFTS[0]:
        parts.append("one shift for all channels")
    if point.narrowed != NARROWED[0]:
        parts.append(f"accumulators shifted {point.narrowed}")
    if point.accumulator != "32 bits, wraps":
        parts.append("accumulators of " + point.accumulator.replace(",", " that") if "," in point.accumulator else "")
    if point.is_fixed and point.left != "wraps":
        parts.append(f"left shifts beyond 32 bits: {point.left}")
    if point.result != "clamped":
        parts.append(f"results {point.result}")
    name = next((name for name, known in NAMED.items() if known == point), "")
    return ", ".join(filter(None, parts)) + (f" (the stage {name})" if name else "")


def formula(point: Requantizer) -> str:
    """Return a point as a formula: q is the code, acc the accumulator, a and b the scales, y the output's."""
    rounded = _function(point.last)
    if point.product == BY_RANGE:
        return f"q = clamp({rounded}(fma(float32(acc) * (a * b), n / (high - low), -low * n / (high - low) + first)))"
    if point.uses_scales:
        real = "float32(acc) * (a * b) / y" if "quotient" in point.product else "float32(acc) * (a * b) * (1 / y)"
    elif point.is_fixed:
        bits, first = point.mantissa, point.first
        if first != "none":
            real = f"{_function(first)}(acc * 2^max(s, 0) * m / 2^{bits}) / 2^max(-s, 0)"
        else:
            real = f"acc * m * 2^(s - {bits})"
    else:
        real = f"{point.product}(acc) * {point.product}(M)"
    inner = f"{rounded}({real} + zero)" if point.zero_point == "before rounding" else f"{rounded}({real}) + zero"
    ending = {"cut to the type": "cut"}.get(point.result, "clamp")
    return f"q = {ending}({inner})"


def _function(rounding: str) -> str:
    return {
        "towards minus infinity": "floor",
        "towards zero": "trunc",
        "half up": "round_half_up",
        "half away from zero": "round_half_away",
        "half to even": "round_half_even",
        "to odd": "round_to_odd",
    }[rounding]


@dataclass(frozen=True, slots=True)
class LearnedStep:
    """One step of an element: its name and its value."""

    name: str
    value: str


def work_out(found: Requantized) -> tuple[LearnedStep, ...]:
    """Return the steps of one element that the device was asked about; empty if no point is left."""
    if not found.points or not found.asked:
        return ()
    point, answer = found.points[0], found.asked[-1]
    x, w, bias = answer.draft.inputs[:3]
    y = answer.draft.outputs[0]
    assert x is not None  # operators of three operands
    assert w is not None
    assert bias is not None
    got = answer.outputs[0][0].reshape(-1)
    limits = np.iinfo(got.dtype)
    inside = np.flatnonzero((got > limits.min) & (got < limits.max))
    at = int(inside[len(inside) // 2]) if inside.size else 0
    scales = np.atleast_1d(np.asarray(w.scale, np.float32))
    b = scales[at if scales.size > 1 else 0]
    s = OperatorScales(np.array([x.scale], np.float32), np.array([b], np.float32), np.array([y.scale], np.float32))
    step = int(answer.draft.samples[0][0].reshape(-1)[0]) - int(x.zero_point)
    total = np.array([int(np.asarray(bias.value).reshape(-1)[at]) + step * int(np.asarray(w.value).reshape(-1)[0])])
    factors = point.factors(s.real, s)
    steps = [LearnedStep("accumulator acc", f"{int(total[0]):,}")]
    kept = limit(total, point.accumulator)
    if int(kept[0]) != int(total[0]):
        steps.append(LearnedStep(f"in {point.accumulator}", f"{int(kept[0]):,}"))
    steps.append(LearnedStep("scales a, b, y", ", ".join(repr(float(v[0])) for v in (s.a, s.b, s.y) if v is not None)))
    if point.is_fixed:
        steps.append(
            LearnedStep("multiplier M = m * 2^(s - bits)", f"m = {int(factors[0][0]):,}, s = {int(factors[1][0])}")
        )
    elif not point.uses_scales:
        steps.append(LearnedStep("multiplier M", repr(float(factors[0][0]))))
    steps.append(LearnedStep("acc * M, exactly", f"{int(kept[0]) * float(s.real[0]):.6f}"))
    steps.append(LearnedStep("zero point", str(int(y.zero_point))))
    code = point.codes(total, factors, int(y.zero_point), int(limits.min), int(limits.max))
    steps.append(LearnedStep(formula(point), str(int(code[0]))))
    steps.append(LearnedStep("the device's code", str(int(got[at]))))
    return tuple(steps)


def _share(same: int, elements: int) -> str:
    """Return a share that is not all in words; it is never rounded up to all."""
    if 1000 * same >= 999 * elements > 0:
        return f"all but {elements - same:,} of {elements:,} elements"
    return f"{100 * same / max(elements, 1):.2f} % of elements"


def finding(one: Learned) -> str:
    """Return what is known of an operator in one sentence."""
    if one.state in (LearnState.LEARNED, LearnState.PARTLY) and one.form is not None:
        more = f" ({len(one.also)} more form{'s fit' if len(one.also) > 1 else ' fits'})" if one.also else ""
        return describe(one.form) + more
    if one.state is LearnState.TABLE:
        return f"{len(one.tables)} tables of 256 codes, one for each pair of scales asked"
    if one.state is LearnState.UNKNOWN and one.nearest is not None:
        same, elements = one.share
        if one.covered:
            return f"{describe(one.nearest)}, {one.note}"
        if same == elements:
            return f"{describe(one.nearest)}, as far as seen: {one.note}"
        return f"no form reproduces it; nearest {describe(one.nearest)}: {_share(same, elements)}"
    return one.note


#: Other forms that are named beside the first.
_NAMED = 6


def document_of(found: LearnFindings) -> dict[str, Any]:
    """Return the document of the profile. It refuses operators that are not known."""
    return {
        "schema": SCHEMA,
        "base": "litert-ref",
        "about": f"learned from {found.target}",
        "source": {"package": "learned", "version": found.version or "unknown", "resolver": "", "cpu": "unknown"},
        "figures": NOT_MEASURED,
        "others": "refused",
        "rows": [row for one in found.operators for row in one.rows()],
        "learned": provenance(found),
    }


def provenance(found: LearnFindings) -> dict[str, Any]:
    """Return where a profile comes from: the target, what it was asked, and the state of each operator."""
    tally = found.tally
    return {
        "target": found.target,
        "version": found.version,
        "date": found.date,
        "tflq": version("tflq"),
        "complete": not found.is_partial,
        "questions": tally.questions,
        "samples": tally.samples,
        "elements": tally.elements,
        "calls": tally.calls,
        "refused": tally.refused,
        "failed": tally.failed,
        "operators": [_operator(one) for one in found.operators],
    }


def _operator(one: Learned) -> dict[str, Any]:
    stated: dict[str, Any] = {
        "op": one.subject.op,
        "types": one.subject.types,
        "state": one.state.value,
        "is": finding(one),
        "questions": one.asked,
        "fresh": one.fresh,
        "fresh_elements": one.fresh_elements,
        "geometries": one.covered,
        "refused": one.refused,
        "tried": one.tried,
    }
    if one.coverage is not None:
        stated["coverage"] = str(one.coverage)
    if one.also:
        stated["not_told_apart"] = [describe(form) for form in one.also[:_NAMED]]
        stated["not_told_apart_count"] = len(one.also)
    if one.state is LearnState.UNKNOWN:
        stated["reproduced"] = {"elements": one.share[1], "same": one.share[0]}
    if one.note and one.note != stated["is"]:
        stated["note"] = one.note
    return stated


def text_of(found: LearnFindings) -> str:
    """Return the YAML file of the profile."""
    return yaml.safe_dump(document_of(found), sort_keys=False, allow_unicode=True, width=110)
