"""Promises for a runtime's float results if other builds of the same source are known to differ."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from tflq.engine.kernels.exactness import Exactness
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import Kernel
from tflq.model.ir import TensorType

#: Operators whose floats are moved, compared or chosen, or made by one operation that IEEE 754 rounds: alike anywhere.
#: Not CEIL, FLOOR and MAX_POOL_2D, whose vector code treats subnormals and NaN in its own way.
ONE_ROUNDING_AT_MOST = frozenset(op for op, fact in OPERATORS.items() if fact.rounds_once)


def floats_are_close(exactness: Exactness, also: Collection[str] = ()) -> Callable[[Kernel], Kernel]:
    """Return the change of a row that promises `exactness` only of floats computed by several operations from floats.

    `also` names operators whose floats are not exact even though they round once.
    """
    exact = ONE_ROUNDING_AT_MOST.difference(also)

    def promised(row: Kernel) -> Kernel:
        is_exact = row.op in exact or not makes_floats_of_floats(row)
        return row if is_exact else replace(row, exactness=exactness)

    return promised


def makes_floats_of_floats(kernel: Kernel) -> bool:
    """Return whether both sides of the row's signature name float32."""
    return kernel.signature.reads(TensorType.FLOAT32) and kernel.signature.makes(TensorType.FLOAT32)
