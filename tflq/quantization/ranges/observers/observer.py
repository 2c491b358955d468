"""What every observer can do."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from tflq.quantization.params import Range

Array = NDArray[Any]
Self = TypeVar("Self", bound="Observer")


class Observer(Protocol):
    """A frozen value made of arrays and numbers; its fields are its whole state."""

    def update(self: Self, samples: Array) -> Self:
        """What is known after `samples` too: finite floats, one sample an index of axis 0, at least one element."""
        ...

    def merge(self: Self, other: Self) -> Self:
        """What is known after this one's samples and then the other's, which began with the same settings."""
        ...

    @property
    def range(self) -> Range:
        """The range that is proposed: one row (C = 1), or one for each channel. 0 to 0 where nothing was seen."""
        ...
