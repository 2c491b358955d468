"""TRANSPOSE_CONV of TensorFlow Lite Micro: the output has the declared shape; the shape operand is ignored.

| operand | shape          | types                | quantization                             |
|---------|----------------|----------------------|------------------------------------------|
| shape   | 4              | int32                | none; it is not read                     |
| w       | O, KH, KW, C   | float32, int8        | per tensor or along O                    |
| x       | N, H, W, C     | float32, int8, int16 | per tensor; int16: zero point 0          |
| bias    | O, optional    | float32, int32, int64 | zero point 0                            |
| y       | N, OH, OW, P   | as x                 | per tensor; int16: zero point 0          |

P is at most O: what falls outside the declared height, width and channels is dropped.
Source: tflite-micro (October 2026), transpose_conv.cc TransposeConvPrepare, TransposeConvEval. tflite-micro (August
2026), cmsis_nn/transpose_conv.cc CalculateOpData limits codes by their type only: a fused activation is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from tflq.engine.kernels.geometry.windows import Window, window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.transpose_conv import reference
from tflq.engine.kernels.transpose_conv.shapes import Geometry, check_operands
from tflq.engine.kernels.validity import cmsis_nn, micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The reference's constants for all channels, and how many of them the declared output holds."""

    whole: Any
    channels: int


def declare(node: Node) -> tuple[Window, Shape]:
    """Return the window over the declared output, with all channels of the filter."""
    check_operands(node)
    w, x, y = node.input(1), node.input(2), node.outputs[0]
    fits = len(y.shape) == 4 and y.shape[0] == x.shape[0] and 0 < y.shape[3] <= w.shape[0] and min(y.shape[1:3]) > 0
    node.check(fits, "declared shape", y, expected=f"({x.shape[0]}, OH, OW, up to {w.shape[0]})", got=y.shape)
    at = window(node, y.shape, (w.shape[1], w.shape[2]))
    return at._replace(out_h=x.shape[1], out_w=x.shape[2]), (*y.shape[:3], w.shape[0])


def _crop(whole: Callable[[Node, Arithmetic, Geometry], Prepared]) -> Callable[[Node, Arithmetic], Prepared]:
    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = whole(node, arithmetic, declare)
        shape = node.outputs[0].shape
        if prepared.shapes[0] == shape:
            return prepared
        data, evaluate = OpData(prepared.data, shape[3]), prepared.eval

        def eval_cropped(data: OpData, *inputs: Array | None) -> Array:
            whole_output = evaluate(data.whole, *inputs)
            assert isinstance(whole_output, np.ndarray)
            return whole_output[..., : data.channels]

        return Prepared((shape,), data, eval_cropped)

    return prepare


def refuse_int32_bias(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator: the bias is read as 64 bits, beyond its end."""
    raise UndefinedResultError(node.op, "16-bit activations with a 32-bit bias, which is read as 64 bits")


prepare_quantized = _crop(reference.prepare_quantized)
prepare_float = _crop(reference.prepare_float)

_INTEGERS = (
    Kernel("TRANSPOSE_CONV", "int32 int8 int8 int32? -> int8", prepare_quantized, (1, 5)),
    Kernel("TRANSPOSE_CONV", "int32 int8 int16 int64? -> int16", prepare_quantized, (1, 5)),
)
_FLOATS = Kernel("TRANSPOSE_CONV", "int32 float32 float32 float32? -> float32", prepare_float, (1, 5))
KERNELS = (
    *valid(micro(), _FLOATS),
    *valid(micro(until="litert-2.1"), *reference.without_activations(*_INTEGERS)),
    *valid(micro(), *_INTEGERS),
    *valid(micro(), Kernel("TRANSPOSE_CONV", "int32 int8 int16 int32 -> int16", refuse_int32_bias, (1, 5))),
    *valid(cmsis_nn(), *reference.without_activations(*_INTEGERS)),
)
