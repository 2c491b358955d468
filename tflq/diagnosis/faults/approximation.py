"""Float results that lie near the right ones, but farther than rounding: approximated functions, fewer bits inside."""

from __future__ import annotations

import numpy as np

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case
from tflq.diagnosis.faults.defect import Defect, DefectKind

#: Operators that compute an exponential for each element.
_EXPONENTIALS = ("EXP", "LOGISTIC", "TANH", "SOFTMAX", "LOG_SOFTMAX", "ELU", "GELU")
#: Relative errors of the largest magnitude: of an approximation, and least that rounding does not make.
_MOST, _LEAST = 0.08, 2.0**-19
#: Bits of mantissas, with the hidden one, whose roundings make such errors.
_BITS = {11: "float16 or TF32", 8: "bfloat16"}
_ENOUGH = 4


def approximation(case: Case) -> Defect | None:
    """Return that all results lie near the right ones, and what is known to make such errors; None if they do not."""
    if case.observed[0].dtype != np.float32 or case.differing < _ENOUGH:
        return None
    if not all(np.isfinite(v).all() for v in (*case.expected, *case.observed)):
        return None
    largest = max(float(np.abs(e).max(initial=0)) for e in case.expected)
    pairs = zip(case.expected, case.observed, strict=True)
    apart = max(float(np.abs(e.astype(np.float64) - o).max(initial=0)) for e, o in pairs)
    error = apart / largest if largest else 1.0
    if not _LEAST < error < _MOST:
        return None
    place = (
        f"every result lies within {error:.2g} of the largest magnitude, {case.differing:,} of {case.elements:,} differ"
    )
    if case.op.builtin in _EXPONENTIALS and error > 2.0**-16:
        name = f"an approximation of the exponential (a fast exp or a table): errors up to {error:.2g}"
        tell = f"feed {case.op.name} a ramp of inputs: its errors show a table's steps or a polynomial"
        return Defect(DefectKind.PRECISION, name, Certainty.LIKELY, case.tensor, place, "", tell)
    likely = next((text for bits, text in _BITS.items() if 2.0 ** -(bits + 2) < error < 2.0 ** -(bits - 2)), "")
    if not likely:
        return None
    name = f"operands or sums with fewer bits, as those of {likely}: errors up to {error:.2g}"
    tell = "record the operators before it, or ask for the device's types of operands and sums"
    return Defect(DefectKind.PRECISION, name, Certainty.NONE, case.tensor, place, "", tell)
