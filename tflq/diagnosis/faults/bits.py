"""Codes with bits that are stuck, or whose lowest bits are cut off."""

from __future__ import annotations

import numpy as np

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case
from tflq.diagnosis.faults.defect import Defect, DefectKind, certainty_of
from tflq.typing import Array


def stuck_bits(case: Case) -> Defect | None:
    """Return the bits that have one value in all results, if the others are right; None if some are not."""
    kind = case.observed[0].dtype
    if kind.kind not in "iu" or kind.itemsize > 4:
        return None
    plain = np.dtype(f"u{kind.itemsize}")
    seen = _join(case.observed).view(plain)
    right = _join(case.expected).view(plain)
    changed = int(np.bitwise_or.reduce(seen ^ right))
    low, high = int(np.bitwise_and.reduce(seen)), int(np.bitwise_or.reduce(seen))
    stuck = changed & (low | ~high)
    bits = [k for k in range(8 * kind.itemsize) if changed >> k & 1]
    if stuck != changed or not bits or len(bits) > 4 * kind.itemsize or len(np.unique(seen)) < 4:
        return None
    values = {low >> k & 1 for k in bits}
    evidence = certainty_of(case.differing + len(np.unique(seen)))
    if len(values) > 1 or evidence == Certainty.NONE:
        return None
    many = "s" if len(bits) > 1 else ""
    listed = ", ".join(map(str, bits))
    name = f"bit{many} {listed} of every result {'are' if many else 'is'} {values.pop()}: stuck or cut off"
    cleared = "all other bits are right, so the arithmetic is"
    return Defect(DefectKind.ADDRESSING, name, evidence, case.tensor, "", cleared)


def _join(values: tuple[Array, ...]) -> Array:
    return np.ascontiguousarray(np.concatenate([v.reshape(-1) for v in values]))
