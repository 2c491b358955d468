"""Faults that are no arithmetic: changes of right results, or results that were not computed.

| module       | faults                                                                                          |
|--------------|-------------------------------------------------------------------------------------------------|
| `memory.py`  | constants, results of another sample, skipped operators; blocks overwritten, stale, not written |
| `places.py`  | right elements in other places: shifts, strides, byte orders; only some rows, channels, borders |
| `numbers.py` | sums beyond 32 bits, stuck bits, single codes, float16, NaN, approximated exponentials          |
| `case.py`    | the results of one operator in all samples, and a fault as a value                              |

A detector is a function from a `WrongResult` to a `Defect`, or None. The first ones reproduce results or exclude
arithmetic, and are tried before hypotheses about it. The last ones only state where the results are wrong, and are
tried if no hypothesis about arithmetic reproduces them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.results import Located
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Defect, DefectKind, WrongResult, wrong_result
from tflq.diagnosis.faults.memory import (
    changed_constant,
    foreign_block,
    in_dump_only,
    nothing_computed,
    overwritten,
    replaced,
)
from tflq.diagnosis.faults.numbers import approximation, entries, nearly, overflow, precision, stuck_bits
from tflq.diagnosis.faults.places import filled, misread, moved, padding, place
from tflq.engine.profiles import Profile
from tflq.model.ir import Model

__all__ = [
    "RECORD",
    "Defect",
    "DefectKind",
    "WrongResult",
    "defect_after",
    "defect_before",
    "filled",
    "shown_defect",
    "wrong_result",
]

#: How to compare every operator by itself.
RECORD = (
    "record all tensors of the device (preserve_all_tensors, or each right after its operator): "
    "outputs alone do not show which operator it is"
)
#: Number of differing operators that are looked at.
_LOOKED_AT = 16
Detector = Callable[[WrongResult], "Defect | None"]


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


def defect_before(case: WrongResult, *, is_chosen: bool) -> Defect | None:
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
        whole = OperatorCase(model, tuple(dumps), operator.index, profile)
        case = wrong_result(whole, assumed=bool(operator.assumed))
        defect = None if case is None else defect_before(case, is_chosen=operator.index == chosen)
        if defect is not None and defect.certainty == Certainty.CERTAIN:
            return operator.index, defect
        if defect is not None:
            found.append((operator.index, defect))
    return next(iter(found), None)


def defect_after(case: WrongResult) -> Defect | None:
    """Return a fault of which only the place is known.

    If the operator's inputs were computed, not dumped, operators before it may be at fault: nothing is likely then.
    """
    found = _first(_AFTER, case)
    if found is None or not case.is_assumed:
        return found
    return replace(found, certainty=Certainty.NONE, tell=RECORD)


def _first(detectors: Sequence[Detector], case: WrongResult) -> Defect | None:
    return next((found for detect in detectors if (found := detect(case)) is not None), None)
