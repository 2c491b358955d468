"""EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL: y = a == b, a != b, a > b, a >= b, a < b, a <= b.

| operand | shape             | types                                            | quantization           |
|---------|-------------------|--------------------------------------------------|------------------------|
| a, b    | any, broadcasting | uint8, int8                                      | per tensor, may differ |
|         |                   | float32, float16, int32, int64                   | none                   |
|         |                   | EQUAL, NOT_EQUAL: int16                          | per tensor, may differ |
|         |                   | the others: int16                                | plain numbers          |
|         |                   | EQUAL, NOT_EQUAL: bool, string                   | none                   |
| y       | broadcast         | bool                                             |                        |

Up to LiteRT 2.0, EQUAL compares 16-bit codes as they are, regardless of their scales.
Source: LiteRT 2.3 and TensorFlow 2.14, comparisons.cc EqualEval and its kin; reference/comparisons.h.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from tflq.engine.kernels.families.comparison import kernels
from tflq.engine.kernels.kernel import Kernel, Node, valid
from tflq.engine.kernels.notes import Fault, formulas
from tflq.engine.kernels.validity import micro, tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType


def refuse_int16(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator: its multipliers are computed for int8 only."""
    raise UndefinedResultError(node.op, "int16 codes, whose multipliers tflite-micro does not compute")


KERNELS = (
    *valid(micro(), Kernel("GREATER", "int16 int16 -> bool", refuse_int16, (1, 2))),
    *kernels("EQUAL", np.equal, ("bool", "string"), (1, 5)),
    *kernels("NOT_EQUAL", np.not_equal, ("bool", "string"), (1, 4)),
    *kernels("GREATER", np.greater, ("int16",), (1, 2)),
    *kernels("GREATER_EQUAL", np.greater_equal, ("int16",), (1, 3)),
    *kernels("LESS", np.less, ("int16",), (1, 3)),
    *kernels("LESS_EQUAL", np.less_equal, ("int16",), (1, 2)),
    *valid(
        tflite(until="litert-2.0"),
        *(row for row in kernels("EQUAL", np.equal, ("int16",), (1, 5)) if row.signature.reads(TensorType.INT16)),
    ),
)

FORMULAS = formulas(
    "EQUAL",
    "int16",
    "comparisons.cc EqualEval",
    (tflite(until="litert-2.0"), "codes as they are"),
    (tflite("litert-2.1"), "rescaled"),
)
FAULTS = (
    Fault(
        "EQUAL",
        ("int16 int16 -> bool",),
        "2.13 to LiteRT 2.0",
        "codes are compared as they are, regardless of their scales",
        "comparisons.cc EqualEval",
        (tflite("tflite-2.13", "litert-2.0"),),
    ),
)
