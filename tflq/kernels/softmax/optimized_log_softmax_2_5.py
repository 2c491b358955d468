"""LOG_SOFTMAX of int8 codes in 2.5's optimized resolver: codes far below their row's largest are looked up beside the
table of exps, where other data lie. Refused; nearer ones give what later releases give.

Operands, options and other refusals: tflq/kernels/softmax/log_softmax.py.
Source: TensorFlow 2.5.3's package for x86-64, seen from outside: two codes in a row, every distance of 0 to 255.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.exactness import SAME_LIBM
from tflq.kernels.families.rows import as_rows
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.softmax import optimized_log_softmax as log_softmax
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic

#: How far below its row's largest a code may lie.
FARTHEST = 127


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of an operator, and its name in refusals."""

    op: str
    later: log_softmax.OpData


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Constants are those of later releases."""
    prepared = log_softmax.prepare_quantized(node, arithmetic)
    return Prepared(prepared.shapes, OpData(node.op, prepared.data), evaluate)


def evaluate(data: OpData, x: Array) -> Array:
    """Rounding and overflow: as later releases."""
    rows = as_rows(x).astype(np.int32)
    if rows.size and np.ptp(rows, axis=1).max() > FARTHEST:
        raise UndefinedResultError(data.op, f"codes more than {FARTHEST} below their row's largest are read elsewhere")
    return log_softmax.eval_quantized(data.later, x)


KERNELS = valid(opt("tf-2.5", "tf-2.5"), Kernel("LOG_SOFTMAX", "int8 -> int8", prepare, (1, 2), exactness=SAME_LIBM))
