"""MATRIX_DIAG: the last dimension becomes the diagonal of square matrices.

| operand | shape     | types                                             | quantization |
|---------|-----------|---------------------------------------------------|--------------|
| x       | (..., n)  | float32, uint8, int8, int16, int32, uint32, int64 | passed by    |
| y       | (..., n,  | as x                                              | passed by    |
|         | n)        |                                                   |              |

Off the diagonal there are zeros, regardless of the zero point.
Source: LiteRT 2.3, matrix_diag.cc FillDiagImpl.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one more dimension."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    node.check(len(x.shape) >= 1, "number of dimensions", x, expected="at least 1", got=0)
    shape = (*x.shape, x.shape[-1])
    return Prepared((shape,), shape, eval_matrix_diag, scratch=8 * shape[-1])


def eval_matrix_diag(shape: Shape, x: Array) -> Array:
    """Source: FillDiagImpl."""
    out = np.zeros(shape, x.dtype)
    positions = np.arange(shape[-1])
    out[..., positions, positions] = x
    return out


_X = "float32|uint8|int8|int16|int32|uint32|int64"

KERNELS = (Kernel("MATRIX_DIAG", f"{_X} -> {_X}", prepare, (1, 1)),)
