"""Element-wise operators, softmax and scaling as XNNPACK computes them.

Element by element operators of float32 by XNNPACK on x86-64.

XNNPACK reads subnormal numbers as zeros of their sign and writes zeros where a result, rounded, would be subnormal.
Where no activation is fused nothing is clamped: infinities stay.
Operands, options and refusals: the reference rows of each operator.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitBinaryNode, VisitUnaryNode; XNNPACK's f32 vbinary, vclamp, vlrelu, vprelu,
vrnd, and functions of tflq/engine/numerics/xnnpack.py.

Results of 8-bit operators, scaled and clamped as XNNPACK does.

Sums of products are the reference kernels': they are exact integers. Their multiplier is float32: scale(x) * scale(w),
then / scale(y), each rounded.

Codes of XNNPACK that are scaled by one multiplier at or above the zero point and by another below it.

Source: XNNPACK's qs8 and qu8 vlrelu and vcvt.

Softmax of float32 rows as XNNPACK computes it on x86-64.

Differences from the largest, exps by a polynomial of fused multiply-adds, their sum, its reciprocal, one product each.
Two sums alternate between registers of a row, which has four a round; then one takes the registers that are left, and
halves of a register are added. The number of lanes, 8 for AVX2 and 16 for AVX-512, is the order of the sum.
Source: XNNPACK's softmax_nc_f32, compute_floating_point_softmax, f32-raddstoreexpminusmax rr2_p5_u32_acc2 (AVX2) and
rr2_p5_u64_acc2 (AVX-512F).

Convolutions of XNNPACK up to LiteRT 2.1 with SAME padding whose windows do not reach over the image: a known fault.

Padding is computed without regard to its sign, and a negative one becomes a huge unsigned number: every tap lies in it,
and each output is the bias. Filters of one pixel go another way.
Source: LiteRT 2.1 xnnpack_delegate.cc CalculatePadding; XNNPACK of 2025 convolution-nhwc.c, SAME padding; observed in
tflite-runtime 2.12 and every LiteRT from 1.0 to 2.1. LiteRT 2.2 pads by 0.

Sums of float32 over axes as XNNPACK adds them on x86-64, or sums of squares.

Neighbouring axes are merged, reduced ones and kept ones. Each stretch of the last reduced axis has a sum of its own,
which is scaled and added to the output. If the axis is the innermost one, several registers take the stretch in turn
and are added in halves; if not, the elements are added one after the other.
Registers: AVX2 has four of 8 lanes. AVX-512 has two of 16 lanes, four for squares; it adds squares, and scaled sums of
registers, by fused multiply-adds.
Source: XNNPACK's reduce-nd.c, normalization.c xnn_normalize_reduction, operator-run.c xnn_compute_contiguous_reduce;
f32-rsum avx_u32_acc4 and avx512f_u32_acc2, f32-rsum2 avx_u32_acc4 and avx512f_u64_acc4, f32-rdsum and f32-rdsum2 7p7x.

Operators of 8-bit codes that XNNPACK computes by tables of 256 codes: the float function of each code, rounded once.

Rounding: half to even, after a product with the reciprocal of the output's scale and a sum with its zero point.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK unary-elementwise-nc.c init_lut_op_with_config,
reference/unary-elementwise.cc unary_ukernel_quantized, reference-utils.h quantize.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import groupby
from math import prod

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.flushing import add, begin_flushing, divide, end_flushing, multiply, multiply_add, read, subtract
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import axis_within
from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized, meeting, needs, result, row_of
from tflq.engine.kernels.families.activation import limits
from tflq.engine.kernels.families.binary import RowLoops, row_by_row
from tflq.engine.kernels.families.movement import Copying
from tflq.engine.kernels.families.ordered import NO_CLAMP, clamp_std, open_range
from tflq.engine.kernels.families.reduction import as_rows
from tflq.engine.kernels.families.unary import eval_loop, eval_table_8bit, same_type
from tflq.engine.kernels.geometry.windows import Padding
from tflq.engine.kernels.kernel import EXACT, Call, Kernel, Node, Operand, Prepare, Prepared, Shape, filling, in_turn
from tflq.engine.kernels.table import Rows
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, NumberClamp, ZeroPoint
from tflq.engine.numerics.libm import Elementwise
from tflq.engine.numerics.multiplier import FixedMultiplier
from tflq.engine.numerics.stage_roundings import FloatRoundingEven
from tflq.engine.numerics.stages import Reals, StageOf, type_range
from tflq.model.ir import TensorType
from tflq.typing import Array

#: All that the reference has: versions are looked up there.
_VERSIONS = (1, 16)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    operation: Operation
    clamp: NumberClamp  # infinities for open ends
    second: Array | None = None  # the second operand, if it is an option


def takes(node: Node) -> bool:
    """Return whether all operands are floats of ranks that XNNPACK knows, none empty."""
    present = [operand for operand in node.inputs if operand is not None]
    return all(operand.type == TensorType.FLOAT32 and has_shape(operand) for operand in present)


def takes_constant_slope(node: Node) -> bool:
    """Return whether XNNPACK takes the node: `takes` holds and the slope is constant."""
    return takes(node) and node.input(1).is_constant


@filling(lambda data, a, b=None: (np.broadcast_shapes(a.shape, () if b is None else b.shape), np.float32))
def evaluate(data: OpData, out: Array, a: Array, b: Array | None = None) -> Call:
    """Rounding: once for each operation. NaN passes the clamp, and so does -0 at a limit of 0."""
    b = data.second if b is None else b
    return row_by_row(_LOOPS, int(data.operation), _SWAPPED, data.clamp, out, a, a if b is None else b)


class Operation(IntEnum):
    """A function of two elements, or of the first, in `_flushed_row`; a slope is for negative ones."""

    ADD = 0
    SUBTRACT = 1
    SUBTRACT_FROM = 2
    MULTIPLY = 3
    DIVIDE = 4
    DIVIDE_INTO = 5
    SQUARED_DIFFERENCE = 6
    NEGATE = 7
    CEIL = 8
    FLOOR = 9
    RINT = 10
    COPY = 11
    SLOPE_BELOW_ZERO = 12
    SLOPE_BY_SIGN = 13


#: The operations whose operands may change places.
_SWAPPED: Mapping[int, int] = {
    Operation.ADD: Operation.ADD,
    Operation.SUBTRACT: Operation.SUBTRACT_FROM,
    Operation.MULTIPLY: Operation.MULTIPLY,
    Operation.DIVIDE: Operation.DIVIDE_INTO,
    Operation.SQUARED_DIFFERENCE: Operation.SQUARED_DIFFERENCE,
}


@compiled
def _flushed_row(a: Array, b: Array, operation: Int, low: Real, high: Real, out: Array) -> None:
    """Apply an `Operation` to one row, then clamp. The caller guarantees: `a`, `b` and `out` have the same size."""
    before = begin_flushing()
    zero, n = np.float32(0), out.size
    if operation == Operation.ADD:
        for i in range(n):
            out[i] = clamp_std(add(a[i], b[i]), low, high)
    elif operation == Operation.SUBTRACT:
        for i in range(n):
            out[i] = clamp_std(subtract(a[i], b[i]), low, high)
    elif operation == Operation.SUBTRACT_FROM:
        for i in range(n):
            out[i] = clamp_std(subtract(b[i], a[i]), low, high)
    elif operation == Operation.MULTIPLY:
        for i in range(n):
            out[i] = clamp_std(multiply(a[i], b[i]), low, high)
    elif operation == Operation.DIVIDE:
        for i in range(n):
            out[i] = clamp_std(divide(a[i], b[i]), low, high)
    elif operation == Operation.DIVIDE_INTO:
        for i in range(n):
            out[i] = clamp_std(divide(b[i], a[i]), low, high)
    elif operation == Operation.SQUARED_DIFFERENCE:
        for i in range(n):
            difference = subtract(a[i], b[i])
            out[i] = clamp_std(multiply(difference, difference), low, high)
    elif operation == Operation.NEGATE:
        for i in range(n):
            out[i] = clamp_std(subtract(zero, a[i]), low, high)
    elif operation == Operation.CEIL:
        for i in range(n):
            out[i] = clamp_std(np.ceil(read(a[i])), low, high)
    elif operation == Operation.FLOOR:
        for i in range(n):
            out[i] = clamp_std(np.floor(read(a[i])), low, high)
    elif operation == Operation.RINT:
        for i in range(n):
            out[i] = clamp_std(np.rint(read(a[i])), low, high)
    elif operation == Operation.COPY:
        for i in range(n):
            out[i] = clamp_std(read(a[i]), low, high)
    elif operation == Operation.SLOPE_BELOW_ZERO:
        for i in range(n):
            out[i] = multiply(a[i], b[i]) if read(a[i]) < zero else a[i]
    else:
        for i in range(n):
            out[i] = multiply(a[i], b[i]) if np.signbit(read(a[i])) else a[i]
    end_flushing(before)


_LOOPS = RowLoops.of(_flushed_row)


def computing(op: str, reference: Rows, operation: Operation, operands: int = 2) -> Kernel:
    """Return the row of an operator that computes `operation` and clamps to the fused activation."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        shapes = row_of(node, reference).prepare(node, arithmetic).shapes
        return Prepared(shapes, OpData(operation, open_range(node)), evaluate)

    return _row(op, operands, prepare)


def applying(op: str, reference: Rows, choose: Callable[[Node, Arithmetic], Elementwise | None]) -> Kernel:
    """Return the row of an operator that computes the chosen function of each element, or the reference's if None."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared, function = row_of(node, reference).prepare(node, arithmetic), choose(node, arithmetic)
        return prepared if function is None else Prepared(prepared.shapes, function, eval_loop)

    return _row(op, 1, prepare)


def clamping(op: str, reference: Rows, low: float, high: float | None) -> Kernel:
    """Return the row of an operator that is a clamp."""
    clamp = NumberClamp(np.float32(low), np.float32(np.inf if high is None else high))

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        shapes = row_of(node, reference).prepare(node, arithmetic).shapes
        return Prepared(shapes, OpData(Operation.COPY, clamp), evaluate)

    return _row(op, 1, prepare)


def sloping(op: str, reference: Rows, operands: int) -> Kernel:
    """Return the row of LEAKY_RELU, whose slope is an option, or PRELU, whose slope is an operand."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        alpha = None if operands == 2 else np.array(node.options["alpha"], np.float32)
        is_by_sign = arithmetic.xnnpack_negative is np.signbit
        operation = Operation.SLOPE_BY_SIGN if is_by_sign else Operation.SLOPE_BELOW_ZERO
        shapes = row_of(node, reference).prepare(node, arithmetic).shapes
        return Prepared(shapes, OpData(operation, NO_CLAMP, alpha), evaluate)

    return _row(op, operands, prepare, takes if operands == 1 else takes_constant_slope)


def _row(op: str, operands: int, prepare: Prepare, taken: Callable[[Node], bool] = takes) -> Kernel:
    types = " ".join(["float32"] * operands)
    return delegate(Kernel(op, f"{types} -> float32", prepare, _VERSIONS), taken)


#: Taps of the largest kernel of a convolution channel by channel.
_MOST_TAPS = 25


def rescaled(node: Node, prepared: Prepared, stage: StageOf, x: Operand, w: Operand, channels: int) -> Prepared:
    """Return a prepared contraction (its data have an `output`) with XNNPACK's scaling and limits."""
    y = node.outputs[0]
    assert w.quantization is not None  # the rules of delegation saw to it
    real = np.broadcast_to(x.scale * w.quantization.scale / y.scale, channels)
    check_multiplier(node, real)
    output = prepared.data.output
    pipeline = replace(output.pipeline, stage=stage(real), clamp=even_range(node, y))
    return replace(prepared, data=replace(prepared.data, output=replace(output, pipeline=pipeline)))


def check_multiplier(node: Node, real: Reals) -> None:
    """Refuse multipliers from 256 on, for which XNNPACK creates no operator.

    Source: XNNPACK convolution-nhwc.c init_requantization_scale_qs8; deconvolution-nhwc.c; fully-connected-nc.c.
    """
    node.check(bool((real < 256).all()), "XNNPACK takes multipliers below 256", got=float(real.max()))


def even_range(node: Node, y: Operand) -> Clamp:
    """Clamp in LSB of the output: the activation's limits / scale + zero point, rounded half to even.

    Source: xnn_qs8_quantize, xnn_qu8_quantize.
    """
    low, high = type_range(np.dtype(y.type.label))
    floor, ceiling = limits(node)
    if floor is not None:
        low = max(low, _even_code(floor, y))
    if ceiling is not None:
        high = min(high, _even_code(ceiling, y))
    return Clamp(low, high)


def _even_code(real: float, y: Operand) -> int:
    return int(np.rint(np.float32(real) / y.scale + np.float32(y.zero_point)))


def gemm(arithmetic: Arithmetic, x: Operand, w: Operand) -> StageOf:
    """Return the scaling of matrix products, which depends on the machine for each type."""
    if x.type == TensorType.UINT8:
        return arithmetic.xnnpack_uint8_gemm
    return arithmetic.xnnpack_int8_gemm if w.type == TensorType.INT8 else arithmetic.xnnpack_int4_gemm


def convolution(arithmetic: Arithmetic, x: Operand, w: Operand, *, is_by_channel: bool, taps: int) -> StageOf:
    """Return the scaling of a convolution whose groups may have one channel in and one out each.

    Of these, kernels of up to 25 taps have a loop of their own; all others are matrix products. Source: XNNPACK
    convolution-nhwc.c find_dwconv_ukernel; dwconv-config.c.
    """
    if not is_by_channel or taps > _MOST_TAPS:
        return gemm(arithmetic, x, w)
    return arithmetic.xnnpack_product if x.type == TensorType.UINT8 else FloatRoundingEven.of


def with_fitting_bias(node: Node, x: int = 0, w: int = 1, bias: int = 2) -> Node:
    """Return the node with the bias's scale that goes with one scale of the weights: XNNPACK compares none."""
    operand, scale = node.optional(bias), np.float32(node.input(x).scale) * np.float32(node.input(w).scale)
    if operand is None or operand.quantization is None or not len(operand.quantization.scale) or not scale:
        return node
    fitting = replace(operand.quantization, scale=np.array([scale], np.float32), zero_point=np.zeros(1, np.int64))
    return node.with_input(bias, replace(operand, quantization=fitting))


#: Bits after the point.
BITS = 8


@dataclass(frozen=True, slots=True, eq=False)
class XnnpackSlopesData:
    """Constants."""

    input_zero_point: ZeroPoint  # LSB of input
    output_zero_point: ZeroPoint  # LSB of output
    positive: FixedMultiplier  # 2**-8 LSB of output per LSB of input, for x >= zero point
    negative: FixedMultiplier  # the same, times alpha
    clamp: Clamp  # LSB of output


def fix(real: np.float32) -> FixedMultiplier:
    """Return a real multiplier in steps of 1/256, half to even."""
    return FixedMultiplier(int(np.rint(np.float32(1 << BITS) * real)))


def evaluate_xnnpack_slopes(data: XnnpackSlopesData, x: Array) -> Array:
    """Rounding: half up, of the product and the zero point together. Overflow: none."""
    centred = x.astype(np.int64) - data.input_zero_point
    scaled = centred * np.where(centred >= 0, data.positive, data.negative)
    codes = (scaled + (1 << BITS - 1) >> BITS) + data.output_zero_point
    clamped: Array = np.clip(codes, *data.clamp).astype(x.dtype)
    return clamped


_LOG2E, _MAGIC = float.fromhex("0x1.715476p+0"), float.fromhex("0x1.8000FEp23")
_LN2_HIGH, _LN2_LOW = float.fromhex("-0x1.62E400p-1"), float.fromhex("-0x1.7F7D1Cp-20")
_C5, _C4, _C3 = float.fromhex("0x1.0F9F9Cp-7"), float.fromhex("0x1.573A1Ap-5"), float.fromhex("0x1.555A80p-3")
_C2, _C1 = float.fromhex("0x1.FFFDC6p-2"), float.fromhex("0x1.FFFFF6p-1")
#: Below it, exps are 0.
_CUTOFF = float.fromhex("-0x1.5D589Ep6")


@filling(lambda lanes, x: (x.shape, np.float32))
def softmax(lanes: int, out: Array, x: Array) -> Call:
    """Rounding: float32, products and sums of the polynomial fused, along the last dimension. Subnormals are zeros."""
    return softmax_rows.bound(np.ascontiguousarray(as_rows(x)), np.empty((2, lanes), np.float32), as_rows(out))


@compiled
def exp_of_difference(x: Real) -> Real:
    """Return exp(x), x <= 0."""
    if x < _CUTOFF:
        return np.float32(0)
    shifted = multiply_add(x, np.float32(_LOG2E), np.float32(_MAGIC))
    power = np.int32(np.float32(shifted).view(np.int32) << 23).view(np.float32)
    whole = add(shifted, np.float32(-_MAGIC))
    t = multiply_add(whole, np.float32(_LN2_LOW), multiply_add(whole, np.float32(_LN2_HIGH), x))
    p = multiply_add(np.float32(_C5), t, np.float32(_C4))
    p = multiply_add(p, t, np.float32(_C3))
    p = multiply_add(p, t, np.float32(_C2))
    p = multiply_add(p, t, np.float32(_C1))
    return multiply_add(multiply(t, power), p, power)


@in_pieces(lambda x, sums, out: 8 * x.size, x="r", out="r")
@compiled
def softmax_rows(x: Array, sums: Array, out: Array) -> None:
    """Fill `out` with the softmax of each row; `sums` is room for two registers.

    Prepare guarantees: `x` and `out` are (R, C) with C > 0, `sums` is (2, lanes) with a power of two of lanes.
    """
    before = begin_flushing()
    lanes, width = sums.shape[1], x.shape[1]
    for r in range(x.shape[0]):
        row, result = x[r], out[r]
        largest = row[0]
        for c in range(width):
            largest = row[c] if row[c] > largest else largest
        for c in range(width):
            result[c] = exp_of_difference(add(row[c], -largest))
        scale = np.float32(1) / _sum(result, sums, lanes)
        for c in range(width):
            result[c] = multiply(result[c], scale)
    end_flushing(before)


@compiled
def _sum(values: Array, sums: Array, lanes: Int) -> Real:
    """Return the sum of a row, in XNNPACK's order.

    The caller guarantees: `sums` is (2, `lanes`).
    """
    sums[:] = 0
    rounds = values.size // (4 * lanes) * 4 * lanes
    for first in range(0, rounds, lanes):
        total = sums[first // lanes % 2]
        for i in range(lanes):
            total[i] = add(values[first + i], total[i])
    total = sums[0]
    for i in range(lanes):
        total[i] = add(sums[1, i], total[i])
    for first in range(rounds, values.size, lanes):
        for i in range(min(lanes, values.size - first)):
            total[i] = add(values[first + i], total[i])
    half = lanes // 2
    while half:
        for i in range(half):
            total[i] = add(total[i + half], total[i])
        half //= 2
    return total[0]


@dataclass(frozen=True, slots=True, eq=False)
class NegativePaddingData:
    """Constants."""

    inner: Prepared  # of the kernel that would read the image
    blank: int  # code of 0, LSB of input; 0 for floats


def unread(row: Kernel, takes: Callable[[Node], bool] | None = None) -> Kernel:
    """Return the row, which reads nothing of the image if a total padding is negative; `takes` in place of its own."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        inner = row.prepare(node, arithmetic)
        if not is_negative(node):
            return inner
        return Prepared(
            inner.shapes,
            NegativePaddingData(inner, int(node.input(0).zero_point)),
            evaluate_negative_padding,
            exactness=EXACT,
        )

    return replace(row, prepare=prepare, takes=takes or row.takes)


def is_negative(node: Node) -> bool:
    """Return whether SAME padding is negative along an axis, under a filter of more than one pixel."""
    options, image, kernel = node.options, node.input(0).shape, node.input(1).shape
    if int(options["padding"]) != Padding.SAME or kernel[1:3] == (1, 1):
        return False
    totals = []
    for axis, letter in ((1, "h"), (2, "w")):
        stride, dilation = int(options[f"stride_{letter}"]), int(options.get(f"dilation_{letter}_factor", 1))
        reach = (kernel[axis] - 1) * dilation + 1
        totals.append((-(-image[axis] // stride) - 1) * stride + reach - image[axis])
    return min(totals) < 0


def evaluate_negative_padding(data: NegativePaddingData, x: Array, *rest: Array | None) -> Array | tuple[Array, ...]:
    """Compute with an image of zeros. Rounding: the bias, as the kernel rounds a sum."""
    return data.inner.eval(data.inner.data, np.full_like(x, data.blank), *rest)


#: The number of lanes of AVX-512.
_AVX512_LANES = 16
#: Elements that are added one after the other in a group. Zeros fill the last one: a negative zero becomes positive.
_GROUP = 7


@dataclass(frozen=True, slots=True, eq=False)
class XnnpackSums:
    """Sums over axes of an operand: `dims` are its merged dimensions, `order` brings the reduced ones to the end."""

    dims: Shape
    order: tuple[int, ...]
    outer: int  # stretches that make one output
    inner: int  # elements of a stretch
    registers: tuple[int, int]  # their number, lanes
    squared: bool
    fused: bool  # squares, and scaled sums of registers
    scale: np.float32

    @classmethod
    def of_node(cls, node: Node, lanes: int) -> XnnpackSums:
        """Return the sums or means of a reduction, by registers of that many lanes."""
        x = node.input(0)
        axes = {axis_within(node, int(v), len(x.shape), node.input(1)) for v in node.constant(1).reshape(-1)}
        return cls.over(x.shape, axes, lanes, squared=node.is_of_squares, mean=node.op == "MEAN")

    @classmethod
    def over(cls, shape: Shape, axes: set[int], lanes: int, *, squared: bool, mean: bool) -> XnnpackSums:
        """Return the sums of an operand of that shape over `axes`, one or more; or their means."""
        grouped = [
            (is_reduced, prod(shape[i] for i in group))
            for is_reduced, group in groupby(range(len(shape)), key=lambda i: i in axes)
        ]
        reduced = [i for i, (is_reduced, _) in enumerate(grouped) if is_reduced]
        kept = [i for i in range(len(grouped)) if i not in reduced]
        sizes = [grouped[i][1] for i in reduced]
        is_innermost = reduced[-1] == len(grouped) - 1
        count = 2 if lanes == _AVX512_LANES and not squared else 4
        return cls(
            dims=tuple(size for _, size in grouped),
            order=(*kept, *reduced),
            outer=prod(sizes[:-1]),
            inner=sizes[-1],
            registers=(count, lanes) if is_innermost else (1, 1),
            squared=squared,
            fused=lanes == _AVX512_LANES,
            scale=np.float32(1) / np.float32(prod(sizes)) if mean else np.float32(1),
        )

    def stretches(self, x: Array) -> Array:
        """Return the operand as (R, outer, inner): what makes each output, in the order of the kept dimensions."""
        return np.ascontiguousarray(x.reshape(self.dims).transpose(self.order)).reshape(-1, self.outer, self.inner)

    def into(self, x: Array, out: Array) -> Call:
        """Return the call that fills `out`, flat, with the sums, in the order of the kept dimensions."""
        ordered = x.reshape(self.dims).transpose(self.order)
        stored = ordered if ordered.flags.c_contiguous else np.empty(ordered.shape, np.float32)
        stretches, registers = stored.reshape(-1, self.outer, self.inner), np.empty(self.registers, np.float32)
        add_up = _sum_stretches.bound(stretches, registers, self.squared, self.fused, self.scale, out)
        return add_up if stored is ordered else in_turn([Copying(ordered, stored), add_up])


@in_pieces(lambda x, *_: 4 * x.size, x="r", out="r")
@compiled
def _sum_stretches(x: Array, registers: Array, squared: Int, fused: Int, scale: Real, out: Array) -> None:
    """Fill `out` (R) with the scaled sums of `x` (R, outer, inner).

    Prepare guarantees: these shapes; `registers` is (count, lanes), both powers of two.
    """
    before = begin_flushing()
    for r in range(x.shape[0]):
        total = np.float32(0)
        for o in range(x.shape[1]):
            part = _sum_xnnpack_sums(x[r, o], registers, squared, fused)
            is_once = fused and registers.shape[1] > 1
            total = multiply_add(part, scale, total) if is_once else add(multiply(part, scale), total)
        out[r] = total
    end_flushing(before)


@compiled
def _sum_xnnpack_sums(values: Array, registers: Array, squared: Int, fused: Int) -> Real:
    """Return the sum of a stretch; registers take blocks of it in turn, and the last blocks one each.

    The caller guarantees: there is a register, and it has a lane; both numbers are powers of two.
    """
    registers[:] = 0
    count, lanes = registers.shape
    blocks = values.size // lanes
    rounds = blocks // count * count
    for block in range(blocks):
        register = registers[block % count if block < rounds else block - rounds]
        for i in range(lanes):
            register[i] = _add(values[block * lanes + i], register[i], squared, fused)
    _fold(registers)
    first = registers[0]
    for i in range(values.size - blocks * lanes):
        first[i] = _add(values[blocks * lanes + i], first[i], squared, fused)
    half = lanes // 2
    while half:
        for i in range(half):
            first[i] = add(first[i + half], first[i])
        half //= 2
    if lanes == 1 and values.size % _GROUP:
        return add(np.float32(0), first[0])
    return first[0]


@compiled
def _fold(registers: Array) -> None:
    """Add the registers into the first one, half to half. The caller guarantees: their number is a power of two."""
    half = registers.shape[0] // 2
    while half:
        for j in range(half):
            for i in range(registers.shape[1]):
                registers[j, i] = add(registers[j + half, i], registers[j, i])
        half //= 2


@compiled
def _add(value: Real, total: Real, squared: Int, fused: Int) -> Real:
    """Return the total with one value more, or with its square."""
    if not squared:
        return add(value, total)
    return multiply_add(value, value, total) if fused else add(multiply(value, value), total)


@meeting(needs(0, is_quantized, has_shape), result(is_quantized))
def takes_xnnpack_tables(node: Node) -> bool:
    """Return whether each operand has one scale."""
    return True


def tabulated(op: str, types: tuple[str, ...], function: Callable[[Array], Array]) -> tuple[Kernel, ...]:
    """Return the rows of an operator of 8 bits; `function` maps float32 to float32, element by element."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = same_type(node)
        codes = np.arange(256, dtype=np.uint8).view(x.type.label)
        with np.errstate(all="ignore"):
            reals = function((codes.astype(np.float32) - np.float32(x.zero_point)) * x.scale)
            scaled = np.rint(reals * (np.float32(1) / y.scale) + np.float32(y.zero_point))
        table = np.clip(np.where(np.isnan(scaled), 0, scaled), *type_range(codes.dtype)).astype(codes.dtype)
        return Prepared((x.shape,), table, eval_table_8bit)

    return tuple(delegate(Kernel(op, f"{each} -> {each}", prepare, (1, 3)), takes_xnnpack_tables) for each in types)


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)) of float32 by float64. Source: SigmoidOp."""
    power = np.exp(np.clip(x, -100, 100).astype(np.float64))
    return np.asarray(np.where(x < -100, 0, np.where(x > 100, 1, power / (1 + power))), np.float32)
