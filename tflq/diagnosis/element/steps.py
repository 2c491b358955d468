"""The parts of an element's computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.kernels.kernel import Node
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.steps import Step
from tflq.typing import Array

Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """A code that is read: its operand (by position), its place, and the zero point subtracted from it."""

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
    """One term of an element: a value, times a weight if there is one, and the contribution to the sum."""

    value: Read
    weight: Read | None
    product: int | float


@dataclass(frozen=True, slots=True)
class Working:
    """Terms in the kernel's order, then steps; the value of the last step is the element's code.

    `outside` counts the taps that lie outside the image and add nothing.
    """

    taps: tuple[Tap, ...]
    steps: tuple[Step, ...]
    outside: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """An element of an output of a bound operator, and everything on which its arithmetic depends."""

    node: Node
    data: Any
    arithmetic: Arithmetic
    inputs: Sequence[Array | None]
    index: Index
    shape: Index  # of the output

    def operand(self, position: int) -> Array:
        """Return the array at an input position; raise ValueError if it is absent."""
        array = self.inputs[position]
        if array is None:
            raise ValueError(f"input {position} is absent")
        return array

    def optional(self, position: int) -> Array | None:
        """Return the array at an input position, or None."""
        return self.inputs[position] if position < len(self.inputs) else None

    @property
    def flat(self) -> int:
        """Number of the output's elements that come before this one in memory."""
        return int(np.ravel_multi_index(self.index, self.shape)) if self.shape else 0

    def read(self, operand: int, place: Index, zero_point: int = 0) -> Read:
        """Return one code of an operand."""
        return Read(operand, place, self.operand(operand)[place].item(), zero_point)

    def read_flat(self, operand: int, offset: int, zero_point: int = 0) -> Read:
        """Return the code that lies at an offset in memory."""
        shape = self.operand(operand).shape
        place = tuple(int(i) for i in np.unravel_index(offset, shape)) if shape else ()
        return self.read(operand, place, zero_point)


#: A function that traces an element.
Tracer = Callable[[Site], Working]


def total_of(taps: Sequence[Tap], name: str = "sum of products") -> Step:
    """Return the step with the sum of all taps, before wrapping to any width."""
    return Step(name, sum(tap.product for tap in taps))


def zero_point_of(site: Site, operand: int) -> int:
    """Return an operand's per-tensor zero point; 0 if it has none or is absent."""
    x = site.node.inputs[operand]
    return 0 if x is None else x.zero_point


def align(index: Index, shape: Index) -> Index:
    """Return the index into a broadcast operand for an index of the whole."""
    tail = index[len(index) - len(shape) :]
    return tuple(0 if size == 1 else i for i, size in zip(tail, shape, strict=True))
