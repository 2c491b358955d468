"""L2_NORMALIZATION: y = x / sqrt(sum of x * x), over the last axis.

| operand | shape          | types                | quantization                          |
|---------|----------------|----------------------|---------------------------------------|
| x       | rank 1 or more | float32, uint8, int8 | per tensor                            |
| y       | as x           | as x                 | scale 1/128, zero point 128; int8: 0  |

Options: fused_activation_function must be NONE.
Source: LiteRT 2.3, l2norm.cc Prepare, Eval; reference/l2normalization.h, reference/integer_ops/l2normalization.h
L2Normalization.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.rows import as_rows, sum_rows
from tflq.engine.kernels.families.unary import same_type
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.elementary import inverse_sqrt
from tflq.engine.numerics.multiplier import multiply_double_rounding
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.model.ir import TensorType
from tflq.typing import Array

EPSILON = np.float32(1e-6)


def _operands(node: Node) -> tuple[Operand, Operand]:
    x, y = same_type(node)
    node.check(len(x.shape) >= 1, "must have at least one dimension", x)
    node.check(int(node.options["fused_activation_function"]) == 0, "fused activation function", expected="NONE")
    return x, y


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare from the input's zero point only: its scale cancels out."""
    x, y = _operands(node)
    node.check(bool(y.scale == np.float32(1 / 128)), "scale", y, expected="1/128", got=y.scale)
    middle = 128 if x.type == TensorType.UINT8 else 0
    node.check(y.zero_point == middle, "zero point", y, expected=middle, got=y.zero_point)
    return Prepared((x.shape,), x.zero_point, eval_uint8 if x.type == TensorType.UINT8 else eval_int8)


def eval_uint8(zero_point: int, x: Array) -> Array:
    """Source: L2Normalization (uint8). Rounding: in the inverse root; 128 * x is scaled to the right."""
    out = np.empty(x.shape, np.uint8)
    _normalise(as_rows(x), int(zero_point), 7, 0, 128, 0, 255, as_rows(out))
    return out


def eval_int8(zero_point: int, x: Array) -> Array:
    """Source: reference_integer_ops::L2Normalization. Rounding: in the inverse root; x is scaled, 7 bits less far."""
    out = np.empty(x.shape, np.int8)
    _normalise(as_rows(x), int(zero_point), 0, 7, 0, -128, 127, as_rows(out))
    return out


@in_pieces(8, x="r", out="r")
@compiled
def _normalise(x: Array, zero_in: Int, before: Int, after: Int, zero_out: Int, low: Int, high: Int, out: Array) -> None:
    """Normalise rows. The output's factor 2**7 shifts the centred code (`before`) or the multiplier (`after`) left.

    Eval guarantees: `out` has the shape of `x`.
    """
    rows, depth = x.shape
    for r in range(rows):
        total = np.int64(0)
        for c in range(depth):
            centred = np.int64(x[r, c]) - zero_in
            total = wrap_int32(total + centred * centred)
        root, right = inverse_sqrt(total)
        for c in range(depth):
            centred = (np.int64(x[r, c]) - zero_in) << np.int64(before)
            out[r, c] = clamp(multiply_double_rounding(centred, root, after - right) + zero_out, low, high)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    x, _ = _operands(node)
    return Prepared((x.shape,), None, eval_float)


def eval_float(data: None, x: Array) -> Array:
    """Source: L2Normalization (float). Rounding: float32 throughout; the sum runs in order."""
    rows = as_rows(x)
    norm = np.sqrt(sum_rows(rows * rows))
    return np.asarray(rows / np.where(norm < EPSILON, EPSILON, norm)).reshape(x.shape)


KERNELS = (
    Kernel("L2_NORMALIZATION", "float32 -> float32", prepare_float, (1, 2)),
    *(Kernel("L2_NORMALIZATION", f"{t} -> {t}", prepare_quantized, (1, 2)) for t in ("uint8", "int8")),
)
