"""Float operators whose bits under the optimized resolver are not reproduced: reference kernels, not claimed."""

from __future__ import annotations

from collections.abc import Iterable

from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.kernel import Kernel, promising
from tflq.model.ir import TensorType

UNCLAIMED = close("computed by Eigen or vector code, in an order and with functions of its own")


def unclaimed_floats(rows: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Return the rows with float results, not claimed."""
    return tuple(row for row in promising(UNCLAIMED, rows) if row.signature.is_float)


def beside_dense(rows: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Return the rows except those whose operands are dense floats, which are reproduced."""
    start = TensorType.FLOAT32, TensorType.FLOAT32
    return tuple(row for row in rows if row.sparse or not row.signature.starts_with(*start))
