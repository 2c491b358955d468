"""ABS: y = |x|.

| operand | shape | types                            | quantization                          |
|---------|-------|----------------------------------|---------------------------------------|
| x       | any   | float32, int32, int8, int16      | per tensor; int16 also none           |
| y       | as x  | as x                             | as x; int16: zero point 0             |

Source: LiteRT 2.3, elementwise.cc GenericPrepare, AbsEval, AbsEvalQuantized, AbsInt16EvalImpl.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.legacy_scales import by_first_scales
from tflq.engine.kernels.families.quantized_unary import check_elementwise
from tflq.engine.kernels.families.unary import prepare_function, prepare_unary, same_type
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stages import OutputStage, type_range
from tflq.model.ir import TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    input_zero_point: ZeroPoint  # LSB of input
    output_zero_point: ZeroPoint  # LSB of output
    stage: OutputStage | None  # LSB of input -> LSB of output; None if the scales are equal
    clamp: Clamp  # LSB of output


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Scale by scale(x) / scale(y). int16 without quantization is plain."""
    x, y = same_type(node)
    if x.type == TensorType.INT16 and not x.is_quantized:
        return prepare_function(np.abs)(node, arithmetic)
    check_elementwise(node)
    stage = None if x.scale == y.scale else arithmetic.requantize(arithmetic.real_of_scales(x.scale, over=y.scale))
    data = OpData(x.zero_point, y.zero_point, stage, type_range(x.type.label))
    return prepare_unary(node, data, eval_quantized, np.dtype(x.type.label))


def eval_quantized(data: OpData, x: Array) -> Array:
    """Source: AbsEvalQuantized. Rounding: once, by the stage. Overflow: none."""
    magnitude = np.abs(x.astype(np.int32) - np.int32(data.input_zero_point))
    scaled = magnitude if data.stage is None else data.stage(magnitude)
    codes = scaled + np.int32(data.output_zero_point)
    return np.asarray(np.clip(codes, *data.clamp).astype(x.dtype))


KERNELS = (
    Kernel("ABS", "float32 -> float32", prepare_function(np.abs), (1, 5)),
    Kernel("ABS", "int32 -> int32", prepare_function(np.abs), (1, 5)),
    Kernel("ABS", "int8 -> int8", by_first_scales(prepare_quantized), (1, 5)),
    Kernel("ABS", "int16 -> int16", by_first_scales(prepare_quantized), (1, 5)),
)
