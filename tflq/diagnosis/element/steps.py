"""What the working of an element is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.kernels.kernel import Node
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.steps import Step

Array = NDArray[Any]
Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """A code that is read: which operand (its position), where, and what is taken off it."""

    operand: int
    place: Index
    code: int | float
    zero_point: int = 0

    @property
    def centred(self) -> int | float:
        """Code minus zero point."""
        return self.code - self.zero_point


@dataclass(frozen=True, slots=True)
class Tap:
    """One term of an element: a value, times a weight where there is one, and what that adds."""

    value: Read
    weight: Read | None
    product: int | float


@dataclass(frozen=True, slots=True)
class Working:
    """Terms in the order in which the kernel takes them, then steps: the last one's value is the element's code.

    `outside` counts the taps that fall beside the image and add nothing.
    """

    taps: tuple[Tap, ...]
    steps: tuple[Step, ...]
    outside: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """An element of an output of a bound operator, and everything that its arithmetic hangs on."""

    node: Node
    data: Any
    arithmetic: Arithmetic
    inputs: Sequence[Array | None]
    index: Index
    shape: Index  # of the output

    def operand(self, position: int) -> Array:
        """Return the array at an input position; a ValueError where it is absent."""
        array = self.inputs[position]
        if array is None:
            raise ValueError(f"input {position} is absent")
        return array

    def optional(self, position: int) -> Array | None:
        """Return the array at an input position, or None."""
        return self.inputs[position] if position < len(self.inputs) else None

    @property
    def flat(self) -> int:
        """How many elements of the output come before this one in memory."""
        return int(np.ravel_multi_index(self.index, self.shape)) if self.shape else 0

    def read(self, operand: int, place: Index, zero_point: int = 0) -> Read:
        """Return one code of an operand."""
        return Read(operand, place, self.operand(operand)[place].item(), zero_point)

    def read_flat(self, operand: int, offset: int, zero_point: int = 0) -> Read:
        """Return the code that lies at an offset in memory."""
        shape = self.operand(operand).shape
        place = tuple(int(i) for i in np.unravel_index(offset, shape)) if shape else ()
        return self.read(operand, place, zero_point)


#: Works an element out.
Teller = Callable[[Site], Working]


def total_of(taps: Sequence[Tap], name: str = "sum of products") -> Step:
    """What all taps add up to, not yet wrapped to any width."""
    return Step(name, sum(tap.product for tap in taps))


def zero_point_of(site: Site, operand: int) -> int:
    """Return an operand's per-tensor zero point; 0 where it has none or is absent."""
    x = site.node.inputs[operand]
    return 0 if x is None else x.zero_point


def aligned(index: Index, shape: Index) -> Index:
    """Return where an operand that is repeated has what belongs to an index of the whole."""
    tail = index[len(index) - len(shape) :]
    return tuple(0 if size == 1 else i for i, size in zip(tail, shape, strict=True))
