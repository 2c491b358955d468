"""Faults that are no arithmetic: changes of right results, or results that were not computed.

| module                | faults                                                                           |
|-----------------------|----------------------------------------------------------------------------------|
| `overflow.py`         | accumulators of 32 bits that the sums exceed                                     |
| `nothing_computed.py` | constants, results of another sample, unwritten memory, skipped operators        |
| `overwritten.py`      | one block of memory: overwritten after it was read, not written, stale           |
| `constants.py`        | one constant of a channel that changed in memory: bits, erased blocks, values    |
| `bits.py`             | bits of codes that are stuck or cut off                                          |
| `addressing.py`       | right elements in other places: shifts, strides, images of a batch, byte orders  |
| `orders.py`           | orders of elements that `addressing.py` compares                                 |
| `precision.py`        | float16, bfloat16, infinities, NaN, subnormal numbers                            |
| `padding.py`          | only results whose windows reach beyond one side of the image                    |
| `places.py`           | only some rows, columns, channels, lanes or images; a constant in them           |
| `codes.py`            | only some codes of a pointwise operator, or rows that hold one: entries of a table |
| `approximation.py`    | floats near the right ones: approximated exponentials, fewer bits inside         |
| `nearly.py`           | floats that a hypothesis reproduces up to their rounding                         |

A detector is a function from a `Case` to a `Defect`, or None. The first ones reproduce results or exclude arithmetic,
and are tried before hypotheses about it. The last ones only state where the results are wrong, and are tried if no
hypothesis about arithmetic reproduces them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.results import Located
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.addressing import misread, moved
from tflq.diagnosis.faults.approximation import approximation
from tflq.diagnosis.faults.bits import stuck_bits
from tflq.diagnosis.faults.case import Case, case_of
from tflq.diagnosis.faults.codes import entries
from tflq.diagnosis.faults.constants import changed_constant
from tflq.diagnosis.faults.defect import Defect, DefectKind
from tflq.diagnosis.faults.nearly import nearly
from tflq.diagnosis.faults.nothing_computed import nothing_computed
from tflq.diagnosis.faults.overflow import overflow
from tflq.diagnosis.faults.overwritten import foreign_block, in_dump_only, overwritten, replaced
from tflq.diagnosis.faults.padding import padding
from tflq.diagnosis.faults.places import filled, place
from tflq.diagnosis.faults.precision import precision
from tflq.engine.profiles import Profile
from tflq.model.ir import Model

__all__ = [
    "RECORD",
    "Case",
    "Defect",
    "DefectKind",
    "case_of",
    "defect_after",
    "defect_before",
    "filled",
    "shown_defect",
]

#: How to compare every operator by itself.
RECORD = (
    "record all tensors of the device (preserve_all_tensors, or each right after its operator): "
    "outputs alone do not show which operator it is"
)
#: Number of differing operators that are looked at.
_LOOKED_AT = 16
Detector = Callable[[Case], "Defect | None"]


_BEFORE: tuple[Detector, ...] = (
    overflow,
    nothing_computed,
    overwritten,
    changed_constant,
    stuck_bits,
    moved,
    precision,
    replaced,
)
#: Detectors that run the operator many times.
_OF_CHOSEN: tuple[Detector, ...] = (misread,)
_AFTER: tuple[Detector, ...] = (entries, foreign_block, filled, padding, nearly, place, approximation)


def defect_before(case: Case, *, is_chosen: bool) -> Defect | None:
    """Return a fault that excludes arithmetic, or that reproduces the results by other means.

    The operator that is explained (`is_chosen`) is also run on its inputs in other orders.
    """
    found = _first((*_BEFORE, *(_OF_CHOSEN if is_chosen else ())), case)
    return None if found is None else in_dump_only(case, found)


def shown_defect(
    model: Model, dumps: Sequence[Dump], operators: Sequence[Located], profile: Profile, chosen: int
) -> tuple[int, Defect] | None:
    """Return the first of some operators with a fault that its values show, a certain one first, and that fault."""
    found = []
    for operator in operators[:_LOOKED_AT]:
        case = case_of(model, dumps, operator.index, profile, assumed=bool(operator.assumed))
        defect = None if case is None else defect_before(case, is_chosen=operator.index == chosen)
        if defect is not None and defect.certainty == Certainty.CERTAIN:
            return operator.index, defect
        if defect is not None:
            found.append((operator.index, defect))
    return next(iter(found), None)


def defect_after(case: Case) -> Defect | None:
    """Return a fault of which only the place is known.

    If the operator's inputs were computed, not dumped, operators before it may be at fault: nothing is likely then.
    """
    found = _first(_AFTER, case)
    if found is None or not case.is_assumed:
        return found
    return replace(found, certainty=Certainty.NONE, tell=RECORD)


def _first(detectors: Sequence[Detector], case: Case) -> Defect | None:
    return next((found for detect in detectors if (found := detect(case)) is not None), None)
