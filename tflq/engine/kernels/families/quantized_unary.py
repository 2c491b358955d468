"""Requirements of elementwise.cc: quantization of ABS, LOG, RSQRT and SQRT, and values that these refuse when run."""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.kernel import Node
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


def check_elementwise(node: Node) -> None:
    """Require both operands to be quantized, with zero point 0 for int16. Source: elementwise.cc GenericPrepare."""
    for operand in (node.input(0), node.outputs[0]):
        node.check(operand.is_quantized, "is not quantized", operand)
        if operand.type == TensorType.INT16:
            node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)


def refuse_negative(function: str, x: Array, zero_point: int) -> None:
    """Raise for codes below the zero point, as the source's Eval returns an error for them."""
    if x.size and int(x.min()) < zero_point:
        where = int(np.argmin(x))
        raise UndefinedResultError(
            function, f"defined for x >= 0 only (code {x.reshape(-1)[where]} at element {where})"
        )
