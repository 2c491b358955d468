"""The protocol of observers."""

from __future__ import annotations

from typing import Protocol, TypeVar

from tflq.quantization.params import Range
from tflq.typing import Array

Self = TypeVar("Self", bound="Observer")


class Observer(Protocol):
    """A frozen value of arrays and numbers; its fields are its whole state."""

    def update(self: Self, samples: Array) -> Self:
        """Return the state after `samples`: finite floats, one sample per index of axis 0, at least one element."""
        ...

    def merge(self: Self, other: Self) -> Self:
        """Return the state after this one's samples and then the other's; both began with the same settings."""
        ...

    @property
    def range(self) -> Range:
        """The proposed range: one row (C = 1), or one per channel. It is 0 to 0 before the first sample."""
        ...
