"""EXP: y = exp(x).

| operand | shape | types                | quantization                    |
|---------|-------|----------------------|---------------------------------|
| x       | any   | float32, int8, int16 | per tensor; int16: zero point 0 |
| y       | as x  | as x                 | per tensor; int16: zero point 0 |

Up to 2.14, int8 results beyond int32 are refused.
Source: LiteRT 2.3, exp.cc Prepare, Eval; reference/exp.h Exp.
"""

from __future__ import annotations

from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.unary import check_zero_points, prepare_function, prepare_tabulated
from tflq.engine.kernels.families.xnnpack_floats import applying
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import tflite, xnnpack
from tflq.engine.numerics import xnnpack_functions
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.libm import expf


def prepare_int8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes."""
    return prepare_tabulated(node, expf)


def prepare_int8_unclamped(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse results beyond int32. Source: TensorFlow 2.14 common.h LUTPopulate."""
    return prepare_tabulated(node, expf, is_clamped=False)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 513 samples."""
    check_zero_points(node)
    return prepare_tabulated(node, expf, arithmetic.multiply_add)


ROWS = (
    Kernel("EXP", "float32 -> float32", prepare_function(expf), (1, 2), exactness=SAME_LIBM),
    Kernel("EXP", "int8 -> int8", prepare_int8, (1, 2)),
    Kernel("EXP", "int16 -> int16", prepare_int16, (1, 2)),
)

KERNELS = (
    *ROWS,
    *valid(tflite(until="tflite-2.14"), Kernel("EXP", "int8 -> int8", prepare_int8_unclamped, (1, 2))),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), applying("EXP", ROWS, lambda *_: xnnpack_functions.EXP)),
    *valid(
        xnnpack("litert-2.1", "litert-2.2", cpu="x86-64"), applying("EXP", ROWS, lambda *_: xnnpack_functions.EXP_2_2)
    ),
)
