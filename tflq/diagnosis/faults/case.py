"""One operator's result in all samples: as the profile computes it from the dump's inputs, and as dumped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.difference import unequal
from tflq.comparison.verification.dump import Dump
from tflq.diagnosis.localization import operators_alone
from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, OperatorView, TensorSpec, view
from tflq.typing import Array

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Case:
    """A result of operator `index`, by sample. Samples that lack it are left out.

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


def case_of(model: Model, dumps: Sequence[Dump], index: int, profile: Profile, *, assumed: bool = False) -> Case | None:
    """Return the first differing result of an operator; None if it cannot be computed, or has another form."""
    parts, expected = [], []
    try:
        for part in operators_alone(model, dumps, index, profile):
            values = part.run(part.plan(profile))
            parts.append(part)
            expected.append(values)
    except TflqError:
        return None
    for tensor in view(model).op(index).writes:
        rows = [
            (d, p, e[tensor], p.got[tensor])
            for d, p, e in zip(dumps, parts, expected, strict=True)
            if tensor in e and tensor in p.got
        ]
        if not rows or any((e.shape, e.dtype) != (o.shape, o.dtype) for _, _, e, o in rows):
            continue
        if len({e.shape for _, _, e, _ in rows}) > 1 or rows[0][2].dtype.kind not in "iuf":
            continue
        kept, alone, right, seen = zip(*rows, strict=True)
        case = Case(model, profile, index, tensor, kept, alone, right, seen, assumed)
        if case.apart.any():
            return case
    return None
