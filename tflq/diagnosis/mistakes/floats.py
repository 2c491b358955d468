"""Dequantize, float operator, quantize: the arithmetic of runtimes without integer kernels.

Every hypothesis is a point of the grammar of float forms (`kernels/families/through_floats`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from tflq.diagnosis.mistakes.device import Mistaken, Under
from tflq.engine.api.part import Part
from tflq.engine.kernels.families.through_floats import AS_CODES, CODES, PRECISIONS, QUOTIENTS, Floats
from tflq.engine.numerics.divisions import ROUNDINGS
from tflq.engine.profiles import Profile
from tflq.engine.profiles.file import with_rows

#: Operators whose results lie between input codes, which devices interpolate directly.
_BETWEEN_CODES = ("RESIZE_BILINEAR",)
#: Texts that quotients add to a name.
_ADDED = {
    "divided": "",
    "times reciprocal": ", times the output scale's reciprocal",
    "divided, zero point before rounding": ", the zero point added before the rounding",
    "times reciprocal, zero point before rounding": (
        ", times the output scale's reciprocal, the zero point added before the rounding"
    ),
}
#: Roundings that are combined with narrower floats.
_USUAL = ("half to even", "half away from zero")


def mistaken_floats(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield every way to compute the operator in floats, with every rounding; none if it has no form in floats."""
    if not _has_codes(alone):
        return
    alone.plan(in_floats(alone, profile, Floats()))  # refused here rather than by every point
    for point in _points(alone.op.builtin):
        yield name_of(point), Under(in_floats(alone, profile, point))


def in_floats(alone: Part, profile: Profile, point: Floats) -> Profile:
    """Return the profile that computes the operator at a point of the grammar."""
    return with_rows(profile, [{"op": alone.op.name, "floats": asdict(point)}])


def name_of(point: Floats) -> str:
    """Return a point in words."""
    where = " on codes" if point.reals == AS_CODES else ""
    return f"computed{where} in {point.precision}{_ADDED[point.quotient]}, rounded {point.rounding}"


def _points(op: str) -> Iterator[Floats]:
    if op in _BETWEEN_CODES:
        yield from (Floats(rounding=rounding, reals=AS_CODES) for rounding in ROUNDINGS)
    for precision in PRECISIONS:
        for rounding in ROUNDINGS if precision == "float32" else _USUAL:
            for quotient in QUOTIENTS:
                yield Floats(precision, quotient, rounding)


def _has_codes(alone: Part) -> bool:
    """Return whether all results, and an input, are codes with scales."""
    graph, operator = alone.graph, alone.op
    given, made = ([graph.tensors[t] for t in tensors if t >= 0] for tensors in (operator.inputs, operator.outputs))
    return any(t.type in CODES for t in given) and all(t.type in CODES for t in made)
