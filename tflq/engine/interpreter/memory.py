"""The memory that a plan needs, known before anything of that size is allocated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NoReturn

from tflq.engine.kernels.kernel import Operand, Shape
from tflq.errors import LimitError, ModelError
from tflq.model.ir import CARRIER

#: Beginnings of NumPy's messages for an array that is too large for any machine.
_TOO_LARGE = ("array is too big", "Maximum allowed dimension exceeded", "maximum supported dimension")
#: Maximum number of dimensions of an array.
MOST_DIMENSIONS = 64
#: Maximum bytes of an array, computed without its dimensions of 0.
_MOST_BYTES = 2**62


class Budget:
    """Bytes that are alive while the steps of a plan are followed, counted tensor by tensor against a limit.

    `base` is held by others meanwhile. `peak` is the largest count so far; `kept` is the size of all tensors together,
    and `beside` the most memory besides tensors. None of them includes the base.
    """

    def __init__(self, limit: int, base: int = 0) -> None:
        self.limit, self.base = limit, base
        self.peak = self.total = self.kept = self.beside = 0
        self._alive: dict[int, int] = {}

    @property
    def room(self) -> int:
        """Bytes that are left."""
        return self.limit - self.base - self.total

    def hold(self, operand: Operand, shape: Shape, place: str = "") -> None:
        """Count a tensor of that shape as alive from here on; raise a LimitError if that is too much."""
        self.release([operand.index])
        size = self._alive[operand.index] = size_of(operand, shape)
        self.total += size
        self.kept += size
        self.peak = max(self.peak, self.total)
        if self.room < 0:
            self._refuse(0, place, f"{operand.name or f'#{operand.index}'!r} of shape {list(shape)}")

    def check(self, size: int, place: str, what: str) -> None:
        """Count `size` bytes more temporarily."""
        self.peak, self.beside = max(self.peak, self.total + size), max(self.beside, size)
        if size > self.room:
            self._refuse(size, place, what)

    def _refuse(self, size: int, place: str, what: str) -> NoReturn:
        raise beyond(place, self.base + self.total + size, self.limit, what)

    def release(self, tensors: Iterable[int]) -> None:
        """Release tensors that are no longer read."""
        for tensor in tensors:
            self.total -= self._alive.pop(tensor, 0)


def beyond(place: str, needed: int, limit: int, what: str) -> LimitError:
    """Return the error for exceeding the memory limit, caused by `what`."""
    return LimitError(
        f"{place}memory of {needed} bytes, more than the limit of {limit} bytes, would be taken with {what}; "
        "raise memory_limit (--memory-limit) to allow it"
    )


def is_beyond_memory(error: Exception) -> bool:
    """Return whether NumPy could not create an array because of its size."""
    return isinstance(error, MemoryError) or (isinstance(error, ValueError) and str(error).startswith(_TOO_LARGE))


def size_of(operand: Operand, shape: Shape) -> int:
    """Return the bytes of the array for a tensor of that shape; raise if no array can have it."""
    name, dtype = operand.name or f"#{operand.index}", CARRIER[operand.type]
    if any(extent < 0 for extent in shape):
        raise ModelError("a dimension is negative", tensor=name, got=list(shape))
    if len(shape) > MOST_DIMENSIONS:
        raise LimitError(f"tensor {name!r}: {len(shape)} dimensions, beyond the limit of {MOST_DIMENSIONS}")
    if math.prod(max(extent, 1) for extent in shape) * dtype.itemsize > _MOST_BYTES:
        raise LimitError(f"tensor {name!r}: no array can have the shape {list(shape)}")
    return math.prod(shape) * dtype.itemsize


def sizes_of(outputs: Sequence[Operand], shapes: Sequence[Shape | None]) -> int:
    """Return the bytes of an operator's outputs, as far as their shapes are known."""
    return sum(size_of(o, shape) for o, shape in zip(outputs, shapes, strict=True) if shape is not None)
