"""How much memory a plan may ask for, known before anything of that size is made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tflq.errors import LimitError, ModelError
from tflq.ir import CARRIER
from tflq.kernels.kernel import Operand, Shape

#: Bytes of all tensors that are held at the same time, constants left out, unless a plan is asked for otherwise.
DEFAULT_MEMORY = 4 << 30


class Budget:
    """Tensors that are alive while a plan runs, counted step by step against a limit in bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.peak = self._total = 0
        self._alive: dict[int, int] = {}

    def hold(self, operand: Operand, place: str = "") -> None:
        """Count a tensor as alive from here on; a LimitError where that is too much."""
        self.release([operand.index])
        size = self._alive[operand.index] = _size(operand, operand.shape)
        self._total += size
        self.peak = max(self.peak, self._total)
        if self._total > self.limit:
            raise _beyond(self.limit, operand, operand.shape, place)

    def check_call(self, size: int, place: str = "") -> None:
        """Count what a called subgraph takes, beside all that is alive here, for as long as the call lasts."""
        self.peak = max(self.peak, self._total + size)
        if self._total + size > self.limit:
            raise LimitError(f"{place}tensors take more than the limit of {self.limit} bytes with what it calls")

    def release(self, tensors: Iterable[int]) -> None:
        """Tensors that are not read any more."""
        for tensor in tensors:
            self._total -= self._alive.pop(tensor, 0)


def check_outputs(outputs: Sequence[Operand], shapes: Sequence[Shape | None], limit: int, place: str) -> None:
    """Refuse outputs that are larger than the limit, for a step that is bound while the plan runs."""
    for operand, shape in zip(outputs, shapes, strict=True):
        if shape is not None and _size(operand, shape) > limit:
            raise _beyond(limit, operand, shape, place)


def _size(operand: Operand, shape: Shape) -> int:
    if any(extent < 0 for extent in shape):
        raise ModelError("a dimension is negative", tensor=operand.name or f"#{operand.index}", got=list(shape))
    return math.prod(shape) * CARRIER[operand.type].itemsize


def _beyond(limit: int, operand: Operand, shape: Shape, place: str) -> LimitError:
    name = operand.name or f"#{operand.index}"
    return LimitError(f"{place}tensors take more than the limit of {limit} bytes with {name!r} of shape {list(shape)}")
