"""A fault that is no arithmetic, as a value: what happened, where, and what that clears."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tflq.diagnosis.certainty import Certainty


class DefectKind(str, Enum):
    """The kind of a fault."""

    NOTHING = "nothing computed"
    OVERFLOW = "overflow"
    OVERWRITTEN = "overwritten"
    BLOCK = "block"
    ADDRESSING = "addressing"
    PRECISION = "precision"
    PADDING = "padding"
    PLACE = "place"
    CONSTANT = "constant"


#: Kinds that a device need not be at fault for: a driver, or the program that reads its memory, may be.
OF_READING = (DefectKind.NOTHING, DefectKind.OVERWRITTEN)
#: Bits of evidence that a certain and a likely fault need; fewer name none.
CERTAIN_BITS, LIKELY_BITS = 24, 10


@dataclass(frozen=True, slots=True)
class Defect:
    """A fault of one operator's result `tensor`.

    `name` states what happened, and is short enough for a headline. `place` states where, `cleared` what is right
    nevertheless, and `tell` what would show more. `is_told` is False if a mistake in an operator may give the same.
    """

    kind: DefectKind
    name: str
    certainty: Certainty
    tensor: int
    place: str = ""
    cleared: str = ""
    tell: str = ""
    is_told: bool = True


def certainty_of(bits: float) -> Certainty:
    """Return the certainty that bits of evidence against chance give."""
    if bits >= CERTAIN_BITS:
        return Certainty.CERTAIN
    return Certainty.LIKELY if bits >= LIKELY_BITS else Certainty.NONE
