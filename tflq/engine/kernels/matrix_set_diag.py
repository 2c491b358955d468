"""MATRIX_SET_DIAG: matrices with another diagonal.

| operand  | shape              | types                                             | quantization |
|----------|--------------------|---------------------------------------------------|--------------|
| x        | (..., m, n)        | float32, uint8, int8, int16, int32, uint32, int64 | passed by    |
| diagonal | (..., min of m, n) | as x                                              | passed by    |
| y        | as x               | as x                                              | passed by    |

The source does not look at the diagonal's shape; one that does not fit is refused.
Source: LiteRT 2.3, matrix_set_diag.cc FillDiagImpl.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one diagonal for every matrix."""
    x, diagonal = node.input(0), node.input(1)
    require_same_type(node, x, diagonal, node.outputs[0])
    node.check(len(x.shape) >= 2, "number of dimensions", x, expected="at least 2", got=len(x.shape))
    length = min(x.shape[-2:])
    expected = (*x.shape[:-2], length)
    node.check(diagonal.shape == expected, "shape", diagonal, expected=list(expected), got=list(diagonal.shape))
    return Prepared((x.shape,), length, eval_matrix_set_diag)


def eval_matrix_set_diag(length: int, x: Array, diagonal: Array) -> Array:
    """Source: FillDiagImpl."""
    out = x.copy()
    positions = np.arange(length)
    out[..., positions, positions] = diagonal
    return out


_X = "float32|uint8|int8|int16|int32|uint32|int64"

KERNELS = (Kernel("MATRIX_SET_DIAG", f"{_X} {_X} -> {_X}", prepare, (1, 1)),)
