"""The elements that rows of a graph output choose: whether a difference changes an arg-max."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class Choice:
    """The arg-max along the last axis of a graph output: of `rows` rows, `flipped` choose another element.

    `first` is the first flipped row, and its elements chosen before and after.
    """

    tensor: int
    rows: int
    flipped: int
    first: tuple[int, int, int] | None = None


def chooses(expected: Array, got: Array) -> bool:
    """Return whether an arg-max along the last axis is meaningful: equal shapes, more than one number."""
    is_row = expected.ndim > 0 and expected.size > 0 and expected.shape[-1] > 1
    return is_row and expected.shape == got.shape and expected.dtype.kind in "iuf"


def choice(tensor: int, expected: Array, got: Array) -> Choice:
    """Compare the arg-max of each row of a graph output."""
    before, after = (np.argmax(v.reshape(-1, v.shape[-1]), axis=1) for v in (expected, got))
    rows = np.flatnonzero(before != after)
    first = (int(rows[0]), int(before[rows[0]]), int(after[rows[0]])) if len(rows) else None
    return Choice(tensor, len(before), len(rows), first)


def add(one: Choice | None, other: Choice) -> Choice:
    """Return the counts of two samples of one output together; `first` is counted from the first sample's rows."""
    if one is None:
        return other
    first = other.first and (other.first[0] + one.rows, *other.first[1:])
    return Choice(one.tensor, one.rows + other.rows, one.flipped + other.flipped, one.first or first)
