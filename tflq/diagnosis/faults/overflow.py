"""Sums that exceed 32 bits: accumulators that wrap or saturate, shown by the values themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case
from tflq.diagnosis.faults.defect import Defect, DefectKind
from tflq.diagnosis.faults.nothing_computed import is_constant
from tflq.diagnosis.mistakes.stages import NarrowAccumulator
from tflq.engine.numerics.stages import DoubleRounding, HalfUpTwice, SingleRounding, StageOf
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Stages by how they round; the profile's own has no name.
_STAGES: dict[str, StageOf | None] = {
    "": None,
    "two roundings": DoubleRounding.of,
    "one rounding": SingleRounding.of,
    "two roundings half up": HalfUpTwice.of,
}
#: Fewer differing elements may agree by chance.
_ENOUGH = 2


def overflow(case: Case) -> Defect | None:
    """Return that accumulators of 32 bits overflow; sums in 64 bits are right, and limited ones reproduce the dump.

    A device with narrower accumulators also rounds as one of the stages for these.
    """
    type_ = case.spec.type
    if not isinstance(type_, TensorType) or CARRIER[type_].kind not in "iu" or case.differing < _ENOUGH:
        return None
    for wraps, words in ((True, "wrap around"), (False, "saturate")):
        leaving = _leaving(case, wraps)
        if leaving < _ENOUGH:
            continue
        if is_constant(case) and case.observed[0].reshape(-1)[0] in _plain(case):
            return None  # such a constant shows no sum
        rounding = next((name for name, stage in _STAGES.items() if _fits(case, stage, wraps)), None)
        if rounding is not None:
            return _defect(case, words, rounding, leaving)
    return None


def _defect(case: Case, words: str, rounding: str, leaving: int) -> Defect:
    name = f"int32 accumulators overflow and {words}: sums of {case.op.name} exceed 32 bits"
    place = f"{leaving:,} of {case.elements:,} sums leave the range of int32"
    how = f" and {rounding}" if rounding else ""
    cleared = f"accumulators of 32 bits that {words}{how} reproduce every element; sums in 64 bits are right"
    tell = "smaller scales of the input or the weights keep the sums below 2^31"
    certainty = Certainty.LIKELY if is_constant(case) else Certainty.CERTAIN
    return Defect(DefectKind.OVERFLOW, name, certainty, case.tensor, place, cleared, tell)


def _plain(case: Case) -> tuple[int, ...]:
    """Return the codes that memory holds without a sum: 0, the zero point, and the ends of the type."""
    q, limits = case.spec.quantization, np.iinfo(case.observed[0].dtype)
    zero = int(q.zero_point[0]) if q is not None and q.zero_point.size else 0
    return (0, zero, int(limits.min), int(limits.max))


def _leaving(case: Case, wraps: bool) -> int:
    """Return the number of elements that accumulators of 32 bits change."""
    made = _limit(case, None, wraps)
    return sum(
        int(np.count_nonzero(one != right))
        for one, right in zip(made, case.expected, strict=True)
        if one is not None and one.shape == right.shape
    )


def _fits(case: Case, stage: StageOf | None, wraps: bool) -> bool:
    made = _limit(case, stage, wraps)
    return all(one is not None and np.array_equal(one, o) for one, o in zip(made, case.observed, strict=True))


def _limit(case: Case, stage: StageOf | None, wraps: bool) -> Iterator[Array | None]:
    """Yield each sample's result with limited accumulators and a stage; None if it cannot be computed."""
    profile = case.profile

    def change(right: StageOf) -> StageOf:
        inner = right if stage is None else stage
        return lambda real: NarrowAccumulator(inner(real), 32, wraps)

    try:
        wrong = profile.derive(profile.name, arithmetic=profile.arithmetic.each_stage(change))
    except TflqError:
        yield from (None for _ in case.parts)
        return
    for part in case.parts:
        try:
            yield replace(part, got={}).run(part.plan(wrong)).get(case.tensor)
        except TflqError:
            yield None
