"""Contractions of codes: multipliers, zero points, rows, matrices.

Shared parts of operators that contract with weights: real multipliers, the output, and rows of integers.

Source: LiteRT 2.3 kernel_util.cc PopulateConvolutionQuantizationParams, GetQuantizedConvolutionMultipler.

Rows that are multiplied by a matrix, and how they come out of an operand: as they lie there, or as patches.

Products of rows and a constant matrix by float BLAS, or by plain dot products for single rows: for any processor.

Rows of codes times constant matrices and through an output: bound in prepare to the fastest way that is exact.

On the integer units where the processor and the numbers allow, all in one pass or with int32 sums in between; else as
floats (`float_products`). All give the same codes.

Matrix products on AArch64: which of them go to the matrix-vector kernel, and how either kind is scaled.

Source: LiteRT 2.3 and TensorFlow 2.14 cpu_backend_gemm.h Gemm; cpu_backend_gemm_custom_gemv.h CustomGemv.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import DTypeLike

from tflq.engine.jit.compiled import Compiled, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import code_range
from tflq.engine.kernels.geometry.windows import Window, pack_patches, packed_geometry, patches_into
from tflq.engine.kernels.kernel import Call, Kernel, Node, Operand, in_turn
from tflq.engine.microkernels.product import CodeOperand, IntegerProduct, fuse, pack_rows, summed
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.products import Contraction, Range, centre_into, centred_range, in_place, suits
from tflq.engine.numerics.stage_roundings import DoubleRounding, SaturatedTwice
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, Reals, StageOf, repeat, type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Bias scale and product of scales may differ by this much, in LSB of the output per LSB of the bias.
_BIAS_SCALE_SLACK = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """Accumulators -> codes: bias, then scale, zero point, clamp and narrow type."""

    bias: Array  # LSB of accumulator, int32 or int64, length C, repeated
    pipeline: OutputPipeline

    def with_bias(self, bias: Array | None, channels: int) -> Output:
        """Return a copy with another bias."""
        return replace(self, bias=repeat(bias_of(bias, channels, self.bias.dtype)))

    def into(self, accumulators: Array, out: Array) -> None:
        """Fill `out` (R, C) with the codes of `accumulators` (R, C)."""
        p = self.pipeline
        p.stage.narrow(accumulators, out, self.bias, int(p.zero_point), *p.clamp)


def output(
    node: Node, stage: OutputStage, y: Operand, bias: Array | None, channels: int, accumulator: DTypeLike
) -> Output:
    """Return the output of an operator with a fused activation; an absent bias is zero."""
    dtype = CARRIER[y.type]
    pipeline = OutputPipeline(stage, y.zero_point, code_range(node, y, dtype), dtype)
    return Output(repeat(bias_of(bias, channels, accumulator)), pipeline)


def bias_of(bias: Array | None, channels: int, accumulator: DTypeLike) -> Array:
    """Return a bias of the accumulator's type, length `channels`: zero if there is none."""
    return np.zeros(channels, accumulator) if bias is None else np.asarray(bias, accumulator).reshape(-1)


def multipliers(
    node: Node, arithmetic: Arithmetic, x: Operand, w: Operand, bias: Operand | None, y: Operand, channels: int
) -> Reals:
    """Return the real multipliers of convolutions, length `channels`: uint8 has one, signed types one a channel."""
    scales = weight_scales(node, x, w, channels)
    if x.type == TensorType.UINT8:
        return np.full(channels, per_tensor_multiplier(node, arithmetic, x, w, bias, y))
    return float64_multipliers(x, scales, y, channels)


def float64_multipliers(x: Operand, weight_scales: Array, y: Operand, channels: int) -> Reals:
    """Return scale(x) * scale(w[c]) / scale(y), every step in float64; length `channels`."""
    with np.errstate(all="ignore"):
        real: Reals = np.float64(x.scale) * weight_scales.astype(np.float64) / np.float64(y.scale)
    return np.broadcast_to(real, channels).copy()


def per_tensor_multiplier(
    node: Node, arithmetic: Arithmetic, x: Operand, w: Operand, bias: Operand | None, y: Operand
) -> np.float64:
    """Return scale(x) * scale(w), rounded to the type of scales, over scale(y) in float64.

    Refused where the bias was quantized with a scale that does not go with that product.
    """
    with np.errstate(all="ignore"):
        if bias is not None:
            product = np.float64(x.scale) * np.float64(w.scale)
            slack = abs(product - np.float64(bias.scale)) / np.float64(y.scale)
            node.check(
                bool(slack <= _BIAS_SCALE_SLACK),
                "bias scale is not the product of input and weight scales",
                bias,
                expected=float(product),
                got=float(bias.scale),
            )
        rounded = arithmetic.scale_type(x.scale) * arithmetic.scale_type(w.scale)
        node.check(bool(rounded >= 0), "product of input and weight scales is negative", w, got=float(rounded))
        return np.float64(rounded) / np.float64(y.scale)


def weight_scales(node: Node, x: Operand, w: Operand, channels: int) -> Array:
    """Return the weights' scales (float32, length 1 or `channels`), checked as the source does."""
    require_quantized(node, x, w)
    quantization = w.quantization
    assert quantization is not None  # require_quantized saw to it
    scales = quantization.scale
    node.check(len(scales) in (1, channels), "number of weight scales", w, expected=f"1 or {channels}", got=len(scales))
    if len(scales) > 1:
        signed = w.type in (TensorType.INT8, TensorType.INT4)
        node.check(signed, "per-channel scales need signed 8 or 4-bit weights", w, got=w.type.label)
        dimension = quantization.quantized_dimension
        size = w.shape[dimension] if 0 <= dimension < len(w.shape) else None
        node.check(size == channels, "size of the quantized dimension", w, expected=channels, got=size)
    return scales


def require_quantized(node: Node, *operands: Operand) -> None:
    """Refuse operands without quantization parameters."""
    for operand in operands:
        quantization = operand.quantization
        node.check(quantization is not None and len(quantization.scale) > 0, "has no quantization parameters", operand)


def require_symmetric(node: Node, *operands: Operand | None) -> None:
    """Refuse operands with a zero point other than 0, in any channel."""
    for operand in operands:
        if operand is not None and operand.quantization is not None:
            points = operand.quantization.zero_point
            node.check(not np.any(points), "zero point", operand, expected=0, got=points.tolist()[:8])


def require_codes(node: Node, *operands: Operand) -> None:
    """Refuse operands whose zero point is no code of their type: products of codes count on it."""
    for operand in operands:
        low, high = type_range(CARRIER[operand.type])
        inside = low <= operand.zero_point <= high
        node.check(inside, "zero point", operand, expected=f"{low} to {high}", got=int(operand.zero_point))


def filter_zero_point(node: Node, x: Operand, w: Operand) -> ZeroPoint:
    """Return the number subtracted from each code of a filter: with uint8 activations its zero point, otherwise 0.

    Zero points of `x` and, where it counts, of `w` have to be codes.
    """
    if x.type != TensorType.UINT8:
        require_codes(node, x)
        return ZeroPoint(0)
    require_codes(node, x, w)
    return w.zero_point


def read_bias_type(node: Node, bias: Operand | None) -> TensorType:
    """Return the option quantized_bias_type, which the bias has if it is not FLOAT32, which states nothing."""
    said = TensorType(int(node.options.get("quantized_bias_type", 0)))
    if said not in (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64):
        node.refuse("quantized_bias_type", expected="int32 or int64", got=said.label)
    if bias is not None and said not in (TensorType.FLOAT32, bias.type):
        node.refuse("bias type", bias, expected=said.label, got=bias.type.label)
    return said


def accumulator_16x8(node: Node, bias: Operand | None) -> np.dtype[Any]:
    """Return the type of the accumulator of 16-bit activations: int64, or int32 where the options ask for it.

    A bias that the source would read with another width than it has is refused.
    """
    width = TensorType.INT32 if read_bias_type(node, bias) == TensorType.INT32 else TensorType.INT64
    if bias is not None and bias.type != width:
        raise UndefinedResultError(
            node.op, f"{bias.type.label} bias, read as {width.label} without quantized_bias_type"
        )
    return CARRIER[width]


def stage_of(arithmetic: Arithmetic, accumulator: np.dtype[Any], real: Reals) -> OutputStage:
    """Return the scaling that goes with an accumulator of that width."""
    return (arithmetic.requantize if accumulator == np.int32 else arithmetic.requantize_wide)(real)


def code_span(operand: Operand) -> Range:
    """Return the smallest and largest centred value that a tensor of that type and zero point can hold."""
    return centred_range(type_range(CARRIER[operand.type]), operand.zero_point)


def weights_read_as_int8(w: Array) -> Array:
    """Return weights as the 16x8 kernels read them: as int8, regardless of type. int16 weights give their first bytes.

    Source: EvalQuantizedPerChannel16x8 takes the data pointer without looking at the filter's type.
    """
    if w.dtype == np.int8:
        return w
    return np.ascontiguousarray(w).reshape(-1).view(np.int8)[: w.size].reshape(w.shape)


def centre(codes: Array, zero_point: int) -> Array:
    """Return code minus zero point: int16 for 8-bit codes, int32 for 16-bit ones.

    int8 codes with zero point 0 are returned as they are, since they are the weights of a model and may be large.
    """
    if codes.dtype == np.int8 and zero_point == 0:
        return codes
    wide: Array = codes.astype(np.int16 if codes.dtype.itemsize == 1 else np.int32)
    wide -= wide.dtype.type(zero_point)
    return wide


class OperandRows(Protocol):
    """How the rows of a product come out of an operand's codes."""

    packer: ClassVar[Compiled[..., None]]  # see microkernels.driving.product_into

    @property
    def zero_point(self) -> ZeroPoint:
        """Zero point of the codes."""
        ...

    def codes(self, x: Array) -> Array:
        """Return the operand as the packer and `fill` read it."""
        ...

    def geometry(self, group: int) -> Any:
        """Return the packer's other argument, for one group."""
        ...

    def fill(self, codes: Array, first_row: int, group: int, out: Array) -> None:
        """Write rows from `first_row` on, centred, in the type of `out` (R, K)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PlainRows:
    """Rows that lie one behind the other: `count` rows of `length` values. What comes behind them is not read."""

    zero_point: ZeroPoint
    count: int
    length: int

    packer: ClassVar[Compiled[..., None]] = pack_rows

    def codes(self, x: Array) -> Array:
        """Return the codes as (count, length)."""
        return np.ascontiguousarray(x).reshape(-1)[: self.count * self.length].reshape(self.count, self.length)

    def geometry(self, group: int) -> int:
        """Return 0: the packer needs no geometry."""
        return 0

    def fill(self, codes: Array, first_row: int, group: int, out: Array) -> None:
        """Write the rows; see Rows.fill."""
        centre_into(codes[first_row : first_row + len(out)].reshape(-1), int(self.zero_point), out.reshape(-1))


@dataclass(frozen=True, slots=True, eq=False)
class Patches:
    """Patches of an image N, H, W, C: each group sees `depth` channels of its own."""

    zero_point: ZeroPoint
    window: Window  # pixels
    depth: int

    packer: ClassVar[Compiled[..., None]] = pack_patches

    def codes(self, x: Array) -> Array:
        """Return the image."""
        return np.ascontiguousarray(x)

    def geometry(self, group: int) -> Array:
        """Return the geometry of the packed rows; see packed_geometry."""
        return packed_geometry(self.window, group * self.depth, self.depth)

    def fill(self, codes: Array, first_row: int, group: int, out: Array) -> None:
        """Write the rows; see Rows.fill."""
        patches_into(codes, int(self.zero_point), self.window, first_row, group * self.depth, out)


class Product(Protocol):
    """Rows of integers times one constant matrix: (R, K) -> (R, N)."""

    @property
    def real(self) -> np.dtype[Any]:
        """Type in which rows are given."""
        ...

    @property
    def accumulator(self) -> np.dtype[Any]:
        """Type of the sums."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N)."""
        ...

    @property
    def block_rows(self) -> int:
        """How many rows to give at a time."""
        ...

    def __call__(self, rows: Array, out: Array) -> Array:
        """Return the sums (R, N) of `rows` (R, K) in `out`."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Dots:
    """One or two rows: dot products of 16-bit integers in the source's own accumulator, which wraps as it does there.

    Reading the matrix is what takes time then, and 8-bit weights are a quarter of their floats.
    """

    weights: Array  # (N, K), centred, int8 or int16
    accumulator: np.dtype[Any]  # int32 or int64

    real: ClassVar[np.dtype[Any]] = np.dtype(np.int16)
    block_rows: ClassVar[int] = 2

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N)."""
        return self.weights.shape[1], self.weights.shape[0]

    def __call__(self, rows: Array, out: Array) -> Array:
        """Multiply; see Product.__call__."""
        dots_into(rows, self.weights, out)
        return out


@in_pieces(lambda rows, weights, out: rows.size * len(weights), rows="r", out="r")
@compiled
def dots_into(rows: Array, weights: Array, out: Array) -> None:
    """Compute out[r, n] = rows[r] . weights[n], in the type of `out`.

    Prepare guarantees: `rows` is (R, K), `weights` (N, K) and `out` (R, N).
    """
    zero = out.dtype.type(0)
    for r in range(rows.shape[0]):
        row = rows[r]
        for n in range(weights.shape[0]):
            factors, total = weights[n], zero
            for k in range(row.size):
                total += np.int32(row[k]) * np.int32(factors[k])
            out[r, n] = total


def product(weights: Array, span: Range, rows: int, accumulator: np.dtype[Any]) -> Product:
    """Return the way to multiply `rows` rows of values in `span` by centred `weights` (K, N)."""
    if rows > Dots.block_rows:
        return Contraction.of(weights, span)
    narrow = np.int8 if weights.size and weights.min() >= -128 and weights.max() <= 127 else np.int16
    return Dots(np.array(weights.T, narrow, order="C"), accumulator)


@dataclass(frozen=True, slots=True, eq=False)
class FloatProducts:
    """Sums as exact floats, or in the source's accumulator, of blocks that are small enough for the cache."""

    rows: OperandRows
    groups: tuple[Product, ...]
    output: Output

    def into(self, x: Array, out: Array) -> Call:
        """Return the call that fills `out` (R, C) with the codes of an operand's rows; each group has a part of C."""
        return partial(self._fill, self.rows.codes(x), out)

    def _fill(self, codes: Array, out: Array) -> None:
        rows, first = len(out), self.groups[0]
        depth, width = first.shape
        block = max(1, min(rows, first.block_rows))
        patches = np.empty((block, depth), first.real)
        sums = np.empty((block, out.shape[1]), first.accumulator)
        for start in range(0, rows, block):
            count = min(block, rows - start)
            for g, contraction in enumerate(self.groups):
                self.rows.fill(codes, start, g, patches[:count])
                contraction(patches[:count], sums[:count, g * width : (g + 1) * width])
            self.output.into(sums[:count], out[start : start + count])


#: Bytes of int32 sums that stay in a core's second-level cache.
_CACHE_BYTES = 1 << 18


class Products(Protocol):
    """Bound products of all groups, and what becomes of their sums."""

    def into(self, x: Array, out: Array) -> Call:
        """Return the call that fills `out` (R, C), contiguous, with the codes of an operand's rows; each group fills
        its part of C.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class FusedProducts:
    """On the integer units, codes to codes."""

    rows: OperandRows
    groups: tuple[tuple[IntegerProduct, Any], ...]  # with their geometries

    def into(self, x: Array, out: Array) -> Call:
        """Bind the product; see Products.into."""
        codes = self.rows.codes(x)
        return in_turn([product.into(out, 0, codes, geometry) for product, geometry in self.groups])


@dataclass(frozen=True, slots=True, eq=False)
class SummedProducts:
    """On the integer units, block by block, with int32 sums of a block in memory before its output is computed."""

    rows: OperandRows
    groups: tuple[tuple[IntegerProduct | RowsInPlace, Any], ...]  # with their geometries
    output: Output

    def into(self, x: Array, out: Array) -> Call:
        """Bind the product; see Products.into."""
        return partial(self._fill, self.rows.codes(x), out)

    def _fill(self, codes: Array, out: Array) -> None:
        rows, channels = out.shape
        block = max(1, min(rows, _CACHE_BYTES // (4 * max(1, channels))))
        sums = np.empty((block, channels), np.int32)
        for start in range(0, rows, block):
            part = out[start : start + block]
            for bound, geometry in self.groups:
                bound(sums[: len(part)], start, codes, geometry)
            self.output.into(sums[: len(part)], part)


@dataclass(frozen=True, slots=True, eq=False)
class RowsInPlace:
    """Sums of few rows times large weights (N, K) that are left where they lie."""

    rows: OperandRows
    weights: Array

    def __call__(self, out: Array, first_row: int, codes: Array, geometry: Any) -> None:
        """Fill `out` (R, N), int32, with the sums of the rows from `first_row` on."""
        centred = np.empty((len(out), self.weights.shape[1]), np.int16)
        self.rows.fill(codes, first_row, 0, centred)
        out[...] = in_place(centred, self.weights)


def _lies_by_columns(matrix: Array) -> bool:
    return matrix.dtype == np.int8 and matrix.T.flags.c_contiguous


def _fits(codes: CodeOperand, bias: Array) -> bool:
    """Return whether centred codes fit int16, and an accumulator of the bias's type wraps as int32 does."""
    return bias.dtype == np.int32 and codes.largest < 1 << 15


def products(
    rows: OperandRows, matrices: Sequence[Array], codes: np.dtype[Any], count: int, output: Output
) -> Products:
    """Return the best way to multiply `count` rows of codes by centred `matrices`, one (K, C / G) a group.

    K and C are above 0. Sums are those of an accumulator of the bias's type.
    """
    source = CodeOperand(np.dtype(codes), int(rows.zero_point), rows.packer)
    bias = output.bias[: sum(matrix.shape[1] for matrix in matrices)]
    geometries = [rows.geometry(group) for group in range(len(matrices))]
    if len(matrices) == 1 and suits(matrices[0], count) and _lies_by_columns(matrices[0]) and _fits(source, bias):
        return SummedProducts(rows, ((RowsInPlace(rows, matrices[0].T), geometries[0]),), output)
    if kernels := fuse(source, matrices, count, bias, output.pipeline):
        return FusedProducts(rows, tuple(zip(kernels, geometries, strict=True)))
    if kernels := summed(source, matrices, count, bias.dtype):
        return SummedProducts(rows, tuple(zip(kernels, geometries, strict=True)), output)
    low, high = type_range(codes)
    span = centred_range((low, high), rows.zero_point)
    return FloatProducts(rows, tuple(product(m, span, count, bias.dtype) for m in matrices), output)


#: The scaling of a product, by its numbers of units, summands and columns.
Scaling = Callable[[Arithmetic, int, int, int], StageOf]
#: Rows of the matrix that the matrix-vector kernel takes at a time, and the columns that it needs at least.
ROWS, COLUMNS = 4, 8


def ruy(arithmetic: Arithmetic, units: int, depth: int, columns: int) -> StageOf:
    """Return the scaling of (units, depth) times (depth, columns) by ruy."""
    return _vector_code(arithmetic) if is_matrix_vector(units, depth, columns) else arithmetic.requantize_gemm


def gemmlowp(arithmetic: Arithmetic, units: int, depth: int, columns: int) -> StageOf:
    """Return the output stage of gemmlowp's matrix products: the reference's, except for one row or column."""
    return _vector_code(arithmetic) if is_matrix_vector(units, depth, columns) else arithmetic.requantize


def scalar_gemmlowp(arithmetic: Arithmetic, units: int, depth: int, columns: int) -> StageOf:
    """Return the output stage of gemmlowp in a build without vector code, where shifts to the left saturate."""
    return SaturatedTwice.of if arithmetic.requantize == DoubleRounding.of else arithmetic.requantize


def is_matrix_vector(units: int, depth: int, columns: int) -> bool:
    """Return whether the product is a vector, of a matrix that is large enough for vector registers."""
    return columns == 1 and units >= ROWS and depth >= COLUMNS


def _vector_code(arithmetic: Arithmetic) -> StageOf:
    return arithmetic.requantize_simd


def by_type(quantized: tuple[Kernel, ...], unsigned: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Return the int8 rows of the first and the uint8 rows of the second."""
    return (
        *(row for row in quantized if row.signature.starts_with(TensorType.INT8)),
        *(row for row in unsigned if row.signature.starts_with(TensorType.UINT8)),
    )
