"""Promises of recurrent operators."""

from __future__ import annotations

from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.kernel import Kernel, promising
from tflq.model.ir import TensorType

#: Floats up to 2.14.
UNCLAIMED_2_14 = close("2.14 multiplies matrices by vectors of floats in another order")


def floats_unclaimed(*groups: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Return the rows of float activations, whose bits are not claimed up to 2.14."""
    rows = promising(UNCLAIMED_2_14, *groups)
    return tuple(row for row in rows if row.signature.starts_with(TensorType.FLOAT32))
