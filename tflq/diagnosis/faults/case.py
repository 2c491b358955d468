"""One operator's results in all samples, and a fault as a value.

One operator's result in all samples: as the profile computes it from the dump's inputs, and as dumped.

A fault that is no arithmetic, as a value: what happened, where, and what that clears.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.inspection.difference import unequal
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.certainty import Certainty
from tflq.engine.api.many import Part
from tflq.engine.profiles import Profile
from tflq.model.ir import Model, OperatorView, TensorSpec, view
from tflq.typing import Array

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class WrongResult:
    """A result of operator `index` that differs, by sample. Samples that lack it are left out.

    `parts` are the operator alone on each sample's inputs. If `is_assumed`, some of these were computed, not dumped.
    """

    model: Model
    profile: Profile
    index: int
    tensor: int
    dumps: tuple[Dump, ...]
    parts: tuple[Part, ...]
    expected: tuple[Array, ...]
    observed: tuple[Array, ...]
    is_assumed: bool = False

    @property
    def op(self) -> OperatorView:
        """The operator."""
        return view(self.model).op(self.index)

    @property
    def spec(self) -> TensorSpec:
        """The result's entry in the file."""
        return view(self.model).tensors[self.tensor]

    @cached_property
    def masks(self) -> tuple[Mask, ...]:
        """The differing elements, by sample."""
        return tuple(unequal(e, o) for e, o in zip(self.expected, self.observed, strict=True))

    @cached_property
    def apart(self) -> Mask:
        """The elements that differ in some sample."""
        return np.asarray(np.logical_or.reduce(self.masks))

    @property
    def elements(self) -> int:
        """The number of elements in all samples."""
        return sum(o.size for o in self.observed)

    @property
    def differing(self) -> int:
        """The number of differing elements in all samples."""
        return sum(int(np.count_nonzero(mask)) for mask in self.masks)

    def equal_text(self) -> str:
        """Return the number of right elements in words."""
        right = self.elements - self.differing
        return f"the other {right:,} of {self.elements:,} elements are right, so the arithmetic is" if right else ""


def wrong_result(case: OperatorCase, *, assumed: bool = False) -> WrongResult | None:
    """Return the first differing result of an operator; None if it cannot be computed, or has another form."""
    if not case.is_computable:
        return None
    for tensor in view(case.model).op(case.index).writes:
        rows = [
            (d, p, e[tensor], p.got[tensor])
            for d, (p, e) in zip(case.dumps, case.pairs, strict=True)
            if tensor in e and tensor in p.got
        ]
        if not rows or any((e.shape, e.dtype) != (o.shape, o.dtype) for _, _, e, o in rows):
            continue
        if len({e.shape for _, _, e, _ in rows}) > 1 or rows[0][2].dtype.kind not in "iuf":
            continue
        kept, alone, right, seen = zip(*rows, strict=True)
        found = WrongResult(case.model, case.profile, case.index, tensor, kept, alone, right, seen, assumed)
        if found.apart.any():
            return found
    return None


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
