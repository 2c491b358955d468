"""SOFTMAX of float32 as Eigen's arrays compute it: differences, a polynomial exp, sums by packets, one inverse a row.

Operands, options and refusals: tflq/kernels/softmax/softmax.py.
Source: LiteRT 2.3 optimized_ops.h SoftmaxImpl.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.exactness import SAME_LIBM
from tflq.kernels.families.rows import as_rows
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.softmax.softmax import prepare_float
from tflq.kernels.validity import opt, ref
from tflq.numerics import eigen, eigen_activations
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Nothing but beta."""
    prepared = prepare_float(node, arithmetic)
    return prepared if 0 in node.input(0).shape else Prepared(prepared.shapes, prepared.data, evaluate)


def evaluate(beta: np.float32, x: Array) -> Array:
    """Rounding: float32 throughout. The C library makes the last exps, as many as the size is no multiple of four."""
    rows = as_rows(x)
    exps = eigen_activations.exp((rows - rows.max(axis=1, keepdims=True)) * beta)
    return np.asarray(exps * (np.float32(1) / eigen.row_sums(exps))[:, None]).reshape(x.shape)


_ROWS = (Kernel("SOFTMAX", "float32 -> float32", prepare, (1, 3), exactness=SAME_LIBM),)
KERNELS = (*valid(opt(), *_ROWS), *valid(ref(until="tf-2.5"), *_ROWS))
