"""FULLY_CONNECTED, hybrid: rows of floats, quantized on the way, times narrow weights.

| operand | shape                | types                    | quantization                               |
|---------|----------------------|--------------------------|--------------------------------------------|
| x       | any, >= B * K values | float32                  | none                                       |
| w       | O, K                 | int8, uint8, int4, int2  | per tensor or along O; 4, 2 bits: symmetric |
| bias    | O, optional          | float32                  |                                            |
| y       | B, O, or x's and O   | float32                  | none                                       |

Options: keep_num_dims, asymmetric_quantize_inputs, fused activation (all of the schema's, TANH and SIGN_BIT too).
Weights are read as int8; their zero points are not looked at. Weights without scales, and those with scales for every
block, have scale 0 here: the output is the bias. Sums of the weights' rows are those of the first run that needs them,
even where another operator computes new weights.
Source: LiteRT 2.3, fully_connected.cc PrepareImpl, EvalHybridDense.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.families.contraction import require_symmetric
from tflq.kernels.families.hybrid import unit_scales
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session, Shape
from tflq.kernels.recurrent.activation import activate, function_of
from tflq.kernels.recurrent.binding import Inputs, bind
from tflq.kernels.reference.fully_connected import output_shape
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.dynamic_range import ByteMatrix, Rows, quantize_rows
from tflq.numerics.lanes import is_zero


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    shape: Shape  # of the output
    length: int  # K
    matrix: Callable[[Inputs], ByteMatrix]
    is_constant: bool  # whether it is always the same
    asymmetric: bool
    activation: int
    quantize: Callable[[Array, bool], Rows]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """One scale a unit where there are several."""
    return prepare_with(node, ByteMatrix.of, quantize_rows)


def prepare_with(
    node: Node, matrix_of: Callable[[Array, np.float32 | Array], ByteMatrix], quantize: Callable[[Array, bool], Rows]
) -> Prepared:
    """Return a copy with another matrix or other quantized rows."""
    shape = output_shape(node)
    w = node.input(1)
    if w.type in (TensorType.INT4, TensorType.INT2):
        require_symmetric(node, w)
    scale = unit_scales(node, w, w.shape[0])

    def build(inputs: Inputs) -> ByteMatrix:
        weights = inputs[1]
        assert weights is not None
        return matrix_of(weights, scale)

    asymmetric = bool(node.options.get("asymmetric_quantize_inputs", 0))
    if w.shape[1] == 0:
        return Prepared((shape,), shape, eval_empty)
    data = OpData(shape, w.shape[1], bind(node, (1,), build), w.is_constant, asymmetric, function_of(node), quantize)
    return Prepared((shape,), data, evaluate)


def evaluate(data: OpData, session: Session, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: EvalHybridDense. Rounding: sum to float32, times the product of the scales, added to the bias."""
    out = np.zeros(data.shape, np.float32)
    if bias is not None:
        out[...] = bias.reshape(-1)
    units = data.shape[-1]
    if out.size and not is_zero(x):
        rows = np.ascontiguousarray(x).reshape(-1)[: out.size // units * data.length].reshape(-1, data.length)
        matrix = data.matrix((x, w, bias))
        if not data.is_constant:
            matrix = replace(matrix, row_sums=session.memory.setdefault(data, matrix.row_sums))
        matrix.accumulate(data.quantize(rows, data.asymmetric), out.reshape(-1, units))
    return activate(data.activation, out, out)


def eval_empty(shape: Shape, session: Session, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Weights without columns: the source zeroes the output and looks at nothing else."""
    return np.zeros(shape, np.float32)


KERNELS = (
    Kernel("FULLY_CONNECTED", "float32 int8|uint8|int4|int2 float32? -> float32", prepare, (1, 14), session=True),
)
