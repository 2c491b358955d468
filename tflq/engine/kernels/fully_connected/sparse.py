"""FULLY_CONNECTED with weights that are stored sparsely.

| operand | shape                | types                | quantization                                        |
|---------|----------------------|----------------------|-----------------------------------------------------|
| x       | any, >= B * K values | float32, int8        | int8: per tensor                                    |
| w       | O, K                 | float32, int8, uint8 | int8: per tensor or along O; zero point 0           |
| bias    | O, optional          | float32, int32       | a per-tensor scale is checked                       |
| y       | B, O, or x's and O   | as x                 | int8: per tensor                                    |

Float weights may be stored in any way: they are dense when they are multiplied. int8 weights (with float activations
uint8 too, read as int8) are stored as blocks of sixteen along K, in rows; with float activations no row and no position
goes beyond 255 blocks. Options: as FULLY_CONNECTED, and hybrid FULLY_CONNECTED.
Source: LiteRT 2.3, fully_connected.cc EvalFloat, EvalQuantized, EvalSparseHybridImpl, PopulateLedgerData;
sparse_ops/fully_connected.h FullyConnectedSparseWeight, FullyConnectedSparseWeight1x16; neon_tensor_utils.cc
NeonSparseMatrixBatchVectorMultiplyAccumulate1x16; sse_tensor_utils.cc SseSparseMatrixBatchVectorMultiplyAccumulate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.contraction import Output, centre, code_span, output, require_quantized
from tflq.engine.kernels.families.hybrid import read_as_int8, unit_scales
from tflq.engine.kernels.families.recurrent.activation import activate, function_of
from tflq.engine.kernels.fully_connected.dense import prepare_float
from tflq.engine.kernels.fully_connected.shapes import fixed_point_reals, output_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.contract import Contraction, accumulators_int32
from tflq.engine.numerics.dynamic_range import ByteMatrix, quantize_rows
from tflq.engine.numerics.lanes import is_zero
from tflq.model.ir import Record
from tflq.typing import Array

_BLOCK = 16
_DENSE, _COMPRESSED = 0, 1

#: The largest value of a byte of the hybrid form's ledger.
_LEDGER_LARGEST = 255


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the int8 form."""

    shape: Shape  # of the output
    input_zero_point: ZeroPoint  # LSB of input
    products: Contraction
    lowest_pairs: Contraction | None  # 65536 where both weights of a pair are -128; None if no pair is
    output: Output


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
    """Constants of the form with float activations."""

    shape: Shape  # of the output
    matrix: ByteMatrix
    row_sums: Array  # of the weights, int32
    asymmetric: bool
    activation: int


def check_blocks(node: Node, largest: int | None = None) -> Array:
    """Return the weights: rows of blocks of sixteen, at most `largest` blocks a row and no later position."""
    w = node.input(1)
    sparsity = w.sparsity
    assert sparsity is not None  # rows of this table are found for such weights only
    units, length = w.shape
    levels: list[Record] = list(sparsity["dim_metadata"])
    formats = [int(level["format"]) for level in levels]
    order = np.asarray(sparsity["traversal_order"]).tolist()
    blocked = np.asarray([] if sparsity["block_map"] is None else sparsity["block_map"]).tolist()
    rows_of_blocks = formats == [_DENSE, _COMPRESSED, _DENSE] and order == [0, 1, 2] and blocked == [1]
    node.check(rows_of_blocks, "sparse format", w, expected="rows of blocks along K", got=(formats, order, blocked))
    sizes = int(levels[0]["dense_size"]), int(levels[2]["dense_size"])
    node.check(sizes == (units, _BLOCK) and length % _BLOCK == 0, "block", w, expected=(units, _BLOCK), got=sizes)
    segments, indices = (
        np.asarray(levels[1][field]["values"]).astype(np.int64) for field in ("array_segments", "array_indices")
    )
    counts = np.diff(segments)
    within = np.ones(len(indices), bool)
    within[segments[:-1][counts > 0]] = False  # the first block of a row follows nothing
    node.check(bool((np.diff(indices, prepend=0)[within] > 0).all()), "blocks of a row are not in order", w)
    if largest is not None and len(indices):
        worst = max(int(counts.max()), int(indices.max()))
        node.check(worst <= largest, "blocks", w, expected=f"at most {largest}", got=worst)
    return read_as_int8(node.constant(1))


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with fixed-point multipliers, unlike dense weights."""
    shape = output_shape(node)
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    require_quantized(node, x, w)
    node.check(w.zero_point == 0, "zero point", w, expected=0, got=w.zero_point)
    weights = check_blocks(node)
    pairs = both_lowest(weights)
    stage = arithmetic.requantize(fixed_point_reals(node, arithmetic, (x, w, y), bias))
    data = OpData(
        shape=shape,
        input_zero_point=x.zero_point,
        products=Contraction.of(weights.T, code_span(x)),
        lowest_pairs=Contraction.of(pairs.T.astype(np.int32) * 65536, (0, 1)) if pairs.any() else None,
        output=output(node, stage, y, None if bias is None else node.constant(2), w.shape[0], np.int32),
    )
    return Prepared((shape,), data, eval_quantized)


def both_lowest(codes: Array) -> Array:
    """Return (R, K / 2) flags: code k and code k + 8 of a block are both -128."""
    lowest = (codes == -128).reshape(len(codes), -1, 2, _BLOCK // 2)
    return np.asarray(lowest.all(axis=2)).reshape(len(codes), -1)


def eval_quantized(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: ...1x16. Rounding: by the stage. Overflow: sums wrap; the sum of a pair's products wraps in 16 bits."""
    out = np.empty(data.shape, np.int8)
    length, units = data.products.shape
    rows = np.ascontiguousarray(x).reshape(-1)[: out.size // units * length].reshape(-1, length)
    sums = accumulators_int32(data.products(centre(rows, data.input_zero_point).astype(data.products.real)))
    if data.lowest_pairs is not None:
        sums -= accumulators_int32(data.lowest_pairs(both_lowest(rows).astype(data.lowest_pairs.real)))
    data.output.into(sums, out.reshape(-1, units))
    return out


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one scale a unit, if there are several."""
    shape = output_shape(node)
    w = node.input(1)
    weights = check_blocks(node, _LEDGER_LARGEST)
    data = HybridData(
        shape=shape,
        matrix=ByteMatrix.of(weights, unit_scales(node, w, w.shape[0])),
        row_sums=weights.sum(axis=1, dtype=np.int32),
        asymmetric=bool(node.options.get("asymmetric_quantize_inputs", 0)),
        activation=function_of(node),
    )
    return Prepared((shape,), data, eval_hybrid)


def eval_hybrid(data: HybridData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: EvalSparseHybridImpl. Rounding: zero points leave in float32, before the sums are added."""
    out = np.zeros(data.shape, np.float32)
    if bias is not None:
        out[...] = bias.reshape(-1)
    units, length = data.matrix.shape
    if out.size and not is_zero(x):
        sums = out.reshape(-1, units)
        rows = quantize_rows(
            np.ascontiguousarray(x).reshape(-1)[: len(sums) * length].reshape(-1, length), data.asymmetric
        )
        per_unit = isinstance(data.matrix.scale, np.ndarray)
        scale = (rows.scale if per_unit else rows.scale * data.matrix.scale)[:, None]
        unit_scale = data.matrix.scale if per_unit else np.float32(1)
        if data.asymmetric:
            shift = scale * rows.zero_point.astype(np.float32)[:, None] * unit_scale
            sums -= shift * data.row_sums.astype(np.float32)
        sums += data.matrix.sums(rows.codes).astype(np.float32) * (scale * unit_scale)
    return activate(data.activation, out, out)


_VERSIONS = (1, 14)
_WEIGHTS = (1,)

ROWS = (
    Kernel("FULLY_CONNECTED", "float32 float32 float32? -> float32", prepare_float, _VERSIONS, sparse=_WEIGHTS),
    Kernel("FULLY_CONNECTED", "int8 int8 int32? -> int8", prepare_quantized, _VERSIONS, sparse=_WEIGHTS),
    Kernel("FULLY_CONNECTED", "float32 int8|uint8 float32? -> float32", prepare_hybrid, _VERSIONS, sparse=_WEIGHTS),
)
