"""LOG: y = natural logarithm of x; the lowest code where x <= 0.

| operand | shape | types                | quantization                    |
|---------|-------|----------------------|---------------------------------|
| x       | any   | float32, int8, int16 | per tensor; int16: zero point 0 |
| y       | as x  | as x                 | per tensor; int16: zero point 0 |

Source: LiteRT 2.3, elementwise.cc GenericPrepare, LogLUTPrepare, LogEval.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.legacy_scales import by_first_scales
from tflq.engine.kernels.families.quantized_unary import check_elementwise
from tflq.engine.kernels.families.unary import prepare_function, prepare_tabulated, same_type
from tflq.engine.kernels.families.xnnpack_floats import applying
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.libm import logf
from tflq.engine.numerics.stages import type_range
from tflq.typing import Array


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes or 513 samples."""
    x, y = same_type(node)
    check_elementwise(node)
    lowest = np.float32(type_range(x.type.label)[0] - y.zero_point) * y.scale

    def transform(real: Array) -> Array:
        return np.where(real <= 0, lowest, logf(np.where(real <= 0, np.float32(1), real)))

    return prepare_tabulated(node, transform, arithmetic.multiply_add)


ROWS = (
    Kernel("LOG", "float32 -> float32", prepare_function(logf), (1, 2), exactness=SAME_LIBM),
    Kernel("LOG", "int8 -> int8", by_first_scales(prepare_quantized), (1, 2)),
    Kernel("LOG", "int16 -> int16", by_first_scales(prepare_quantized), (1, 2)),
)

KERNELS = (
    *ROWS,
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        applying("LOG", ROWS, lambda _, arithmetic: arithmetic.xnnpack_functions.log),
    ),
)
