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

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_steps
from tflq.engine.kernels.families.contraction import require_symmetric
from tflq.engine.kernels.families.hybrid import unit_scales
from tflq.engine.kernels.families.hybrid_sums import HybridSums
from tflq.engine.kernels.families.recurrent.activation import NONE, activate, apply, function_of
from tflq.engine.kernels.families.recurrent.binding import Inputs, bind
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.fully_connected.shapes import output_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Session, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.byte_rows import FEW
from tflq.engine.numerics.dynamic_range import ByteMatrix, Integers, Rows, add_quantized, are_finite, quantize_rows
from tflq.engine.numerics.lanes import holds_zeros, is_zero
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


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
    integers: Integers | None  # the constant matrix for compiled code, where that quantizes the rows as `quantize`


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one scale a unit, if there are several."""
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
        matrix, count = matrix_of(weights, scale), math.prod(shape[:-1])
        if not w.is_constant or count <= FEW:
            return matrix
        products = HybridSums.of_rows(np.ascontiguousarray(weights).view(np.int8), count)
        return replace(matrix, tiles=products.of_codes)

    asymmetric = bool(node.options.get("asymmetric_quantize_inputs", 0))
    if w.shape[1] == 0:
        return Prepared((shape,), shape, eval_empty)
    matrix, integers = bind(node, (1,), build), None
    if w.is_constant and matrix_of == ByteMatrix.of and quantize is quantize_rows:
        integers = matrix(()).integers() if math.prod(shape) <= FEW * shape[-1] else None
    data = OpData(shape, w.shape[1], matrix, w.is_constant, asymmetric, function_of(node), quantize, integers)
    return Prepared((shape,), data, evaluate_alone if w.is_constant else evaluate, alone=w.is_constant)


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


def _evaluate_once(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    session: Any = None  # not looked at where weights are constant
    return evaluate(data, session, x, w, bias)


@filling(lambda data, *_: (data.shape, np.float32), once=_evaluate_once)
def evaluate_alone(data: OpData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Evaluate with constant weights."""
    units = data.shape[-1]
    if data.integers is None or not out.size:
        return lambda: np.copyto(out, _evaluate_once(data, x, w, bias))
    given, undefined = x.reshape(1, -1), np.zeros(1, np.int8)
    rows = x.reshape(-1)[: out.size // units * data.length].reshape(-1, data.length)
    start = np.zeros(0, np.float32) if bias is None else bias.reshape(-1)
    options = data.asymmetric, data.activation, out.reshape(-1, units), undefined
    return partial(_check, _multiply.bound(given, rows, start, data.integers, *options), undefined)


def _check(multiply: Call, undefined: Array) -> None:
    multiply()
    if undefined[0]:
        undefined[0] = 0
        raise UndefinedResultError("BatchQuantizeFloats", "a row to be quantized holds NaN or an infinity")


@writes("out", "undefined")
@in_steps(lambda given, rows, start, integers, *_: rows.size * integers[0].shape[0])
@compiled
def _multiply(
    given: Array,
    rows: Array,
    start: Array,
    integers: Any,
    asymmetric: bool,
    activation: Int,
    out: Array,
    undefined: Array,
) -> None:
    """Prepare guarantees: `given` is (1, S), `rows` (R, K) of these, `start` (N) or empty, `integers` are those of a
    matrix (N, K), `out` is (R, N).
    """
    for r in range(out.shape[0]):
        for n in range(out.shape[1]):
            out[r, n] = start[n] if start.size > 0 else np.float32(0)
    if not holds_zeros(given):
        if not are_finite(rows):
            undefined[0] = 1
            return
        add_quantized(rows, asymmetric, integers[0], integers[1], integers[2], integers[3], out)
    if activation != NONE:
        for r in range(out.shape[0]):
            for n in range(out.shape[1]):
                out[r, n] = apply(activation, out[r, n])


def eval_empty(shape: Shape, session: Session, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Return zeros, as the source does for weights without columns."""
    return np.zeros(shape, np.float32)


ROWS = (Kernel("FULLY_CONNECTED", "float32 int8|uint8|int4|int2 float32? -> float32", prepare, (1, 14), session=True),)
