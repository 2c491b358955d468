"""ELU: y = x for x >= 0, exp(x) - 1 below.

| operand | shape | types         | quantization |
|---------|-------|---------------|--------------|
| x       | any   | float32, int8 | per tensor   |
| y       | as x  | as x          | per tensor   |

Not in BUILTIN_REF: the kernel is that of the full resolver.
Exactness: exact on the same libm (expm1f).
Source: LiteRT 2.3, activations.cc EluPrepare, EluEval; reference/elu.h Elu.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.unary import prepare_function, prepare_tabulated
from tflq.engine.kernels.families.xnnpack_floats import applying
from tflq.engine.kernels.families.xnnpack_tables import tabulated
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import micro, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.libm import expm1f
from tflq.typing import Array


def elu(x: Array) -> Array:
    """Source: Elu. Rounding: libm's."""
    return np.where(x < 0, expm1f(np.minimum(x, np.float32(0))), x)


def prepare_int8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes."""
    return prepare_tabulated(node, elu)


def prepare_unclamped(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes; refuse results that are converted before they are clamped."""
    return prepare_tabulated(node, elu, is_clamped=False)


ROWS = (
    Kernel("ELU", "float32 -> float32", prepare_function(elu), (1, 1), exactness=SAME_LIBM),
    Kernel("ELU", "int8 -> int8", prepare_int8, (1, 1)),
)

KERNELS = (
    *ROWS,
    *valid(micro(), Kernel("ELU", "int8 -> int8", prepare_unclamped, (1, 1))),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), *tabulated("ELU", ("int8",), elu)),
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        applying("ELU", ROWS, lambda _, arithmetic: arithmetic.xnnpack_functions.elu),
    ),
)
