"""ADD, SUB, ADD_N: sums and differences.

ADD, SUB: y = a + b, y = a - b.

| operand | shape             | types                                      | quantization                    |
|---------|-------------------|--------------------------------------------|---------------------------------|
| a, b    | any, broadcasting | float32, int32, int64, int16, uint8, int8; | per tensor; int16: zero point 0 |
|         |                   | ADD: float16                               | none                            |
| y       | broadcast         | as a                                       | per tensor; int16: zero point 0 |

Options: fused_activation_function; pot_scale_int16 (int16 whose scales are powers of two: shifts, no multipliers).
ADD of int16 without quantization is plain arithmetic that wraps.
float32 on AArch64: see tflq/engine/kernels/families/binary.py.
Source: LiteRT 2.3, add.cc Prepare; reference/add.h AddElementwise, Add, BroadcastAdd6DSlow; sub.cc PrepareGeneralSubOp;
reference/sub.h SubElementwise, SubWithActivation, BroadcastSubSlow.

ADD and SUB of TensorFlow Lite Micro: 16 bits always have multipliers, even if scales are powers of two.

| operand | shape             | types | quantization |
|---------|-------------------|-------|--------------|
| a, b    | any, broadcasting | int16 | per tensor   |
| y       | broadcast         | int16 | per tensor   |

Options: fused_activation_function; pot_scale_int16 is ignored.
Source: tflite-micro (October 2026), add_common.cc CalculateOpDataAdd; sub_common.cc CalculateOpDataSub.

ADD and SUB of the optimized resolver.

ADD of codes runs vector code: inputs reach the common scale with one rounding less than in the reference. The sum is
scaled as there, and 8-bit sums then keep 16 bits, in which they wrap; what is left over after whole blocks is identical
to the reference. If one operand is broadcast whole, int8 goes as uint8 does. Up to 2.5, 16-bit ADD is the reference's.
In 2.3, 16-bit ADD and SUB always go by shifts, regardless of the options; broadcast operands are refused.
Source: LiteRT 2.3 optimized_ops.h AddElementwise, AddScalarBroadcast (uint8); optimized/integer_ops/add.h
AddElementwiseInt8, AddElementwiseInt16, AddScalarBroadcast, all with USE_NEON and without AVX2. TensorFlow 2.3 and 2.5,
add.cc, sub.cc Prepare, EvalAddQuantized.

ADD and SUB of r1.15 on int16: scales are powers of two, at most one input is shifted, nothing broadcasts.

| operand | shape             | types | quantization                                                 |
|---------|-------------------|-------|--------------------------------------------------------------|
| a, b    | any, equally many | int16 | powers of two, one the output's, the other finer; zero point 0 |
| y       | as a              | int16 | a power of two, zero point 0                                 |

Options: fused_activation_function.
Source: TensorFlow r1.15 lite/kernels/add.cc, sub.cc Prepare; reference_ops.h Add (int16), Sub16.

ADD and SUB by XNNPACK.

8-bit codes: both ratios of scales become integers with a common shift, chosen so that the larger one has 21 bits; the
contribution of each input's code is tabulated when the operator is prepared.
float32: see tflq/engine/kernels/families/xnnpack.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitBinaryNode; XNNPACK's qs8 and qu8 vadd.

ADD_N: the sum of two or more tensors.

| operand | shape           | types          |
|---------|-----------------|----------------|
| x...    | equal           | float32, int32 |
| y       | as the first x  | as x           |

Float sums are held inside the finite float32 range after every addition. More than one thread would add in another
order: one is meant.
Source: LiteRT 2.3, add_n.cc; optimized_ops::AddN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_same_type, require_zero_point_zero
from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized, ratio_lies
from tflq.engine.kernels.families.binary import (
    COMPARED,
    NUMBERS,
    Loops,
    both,
    in_vectors,
    limit,
    of_equals,
    of_sums,
    prepare_clamped,
    where_equal,
)
from tflq.engine.kernels.families.scaled_sum import (
    OpData,
    centre_codes,
    common_scale,
    eval_general,
    has_pot_scales,
    prepare_general,
    prepare_pot,
    unsigned,
    without_broadcast,
)
from tflq.engine.kernels.families.scaled_sum import OpData as General
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks, of_equal_rank, run_of
from tflq.engine.kernels.families.xnnpack import Operation, computing, even_range
from tflq.engine.kernels.geometry.axes import broadcast_shape, spread
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepare, Prepared, valid
from tflq.engine.kernels.validity import micro, opt, ref, tf1, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.multiplier import check_log2, quantize_multiplier
from tflq.engine.numerics.rounding import wrap_int32
from tflq.engine.numerics.stage_roundings import SingleRounding
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.model.ir import TensorType
from tflq.typing import Array

prepare_add_of_numbers = prepare_clamped(np.add)
prepare_add = partial(prepare_general, sign=1)


def prepare_add_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Add plainly if nothing is quantized, by shifts if asked for and possible, else in general."""
    operands = both(node)
    if not any(operand.is_quantized for operand in operands):
        return prepare_add_of_numbers(node, arithmetic)
    for operand in operands:
        node.check(operand.is_quantized, "is not quantized, but others are", operand)
        require_zero_point_zero(node, operand)
    if not has_pot_scales(node):
        return prepare_add(node, arithmetic)
    without_broadcast(node)
    return prepare_pot(node, sign=1)


ADD = (
    *(Kernel("ADD", f"{t} {t} -> {t}", prepare_add, (1, 6)) for t in ("uint8", "int8")),
    Kernel("ADD", "int16 int16 -> int16", prepare_add_int16, (1, 6)),
    *(
        Kernel("ADD", f"{t} {t} -> {t}", prepare_add_of_numbers, (1, 6))
        for t in ("float32", "float16", "int32", "int64")
    ),
)

prepare_sub_of_numbers = prepare_clamped(np.subtract)


def prepare_sub(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require zero points inside the type's range."""
    for operand in both(node):
        low, high = type_range(operand.type.label)
        node.check(low <= operand.zero_point <= high, "zero point", operand, got=operand.zero_point)
    return prepare_general(node, arithmetic, sign=-1)


def prepare_sub_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Subtract by shifts if asked for and possible, else in general."""
    require_zero_point_zero(node, *both(node))
    return prepare_pot(node, sign=-1) if has_pot_scales(node) else prepare_sub(node, arithmetic)


SUB = (
    *(Kernel("SUB", f"{t} {t} -> {t}", prepare_sub, (1, 5)) for t in ("uint8", "int8")),
    Kernel("SUB", "int16 int16 -> int16", prepare_sub_int16, (1, 5)),
    *(Kernel("SUB", f"{t} {t} -> {t}", prepare_sub_of_numbers, (1, 5)) for t in ("float32", "int32", "int64")),
)


def _rows(add: Loops, sub: Loops) -> tuple[Kernel, ...]:
    return limit("ADD", np.add, add, (1, 6)), limit("SUB", np.subtract, sub, (1, 5))


_REFERENCE = (
    *ADD,
    *SUB,
    *valid(opt("litert-1.0", cpu="arm64"), *_rows(in_vectors, where_equal(in_vectors, COMPARED))),
    *valid(opt(until="tflite-2.14", cpu="arm64"), *_rows(of_sums, where_equal(in_vectors, NUMBERS))),
    *valid(
        ref(until="tflite-2.14", cpu="arm64"), *_rows(where_equal(of_equals, COMPARED), where_equal(of_equals, NUMBERS))
    ),
)


_MICRO = (
    *valid(
        micro(),
        Kernel("ADD", "int16 int16 -> int16", partial(prepare_general, sign=1), (1, 5)),
        Kernel("SUB", "int16 int16 -> int16", partial(prepare_general, sign=-1), (1, 5)),
    ),
)


Scaled = Callable[[Array, int, int, int], Array]
#: Beyond every 16-bit number.
_INT16 = 2**15


@dataclass(frozen=True, slots=True, eq=False)
class OptimizedData:
    """Constants of the vector form."""

    rest: General  # the reference's
    first: Array  # by code of the first input (as unsigned): int32 on the common scale, in whole blocks
    second: Array  # the same of the second input
    run: int  # elements that the vector loop goes through without a break
    whole: int  # how many of these fill whole blocks
    wraps: bool  # whether scaled sums can leave 16 bits, in which blocks hold them


def shift_at_once(centred: Array, left: int, mantissa: int, shift: int) -> Array:
    """Shift both ways before the product, which rounds half up; a shift to the right is a floor."""
    total = left + shift
    return _high(centred << total if total >= 0 else centred >> -total, mantissa)


def shift_after(centred: Array, left: int, mantissa: int, shift: int) -> Array:
    """Shift right after the product: the product rounds half up, the shift is a floor."""
    return _high(centred << left, mantissa) >> -shift


def _high(x: Array, mantissa: int) -> Array:
    """Source: vqrdmulh; nothing here is large enough to saturate."""
    return (x * np.int64(mantissa) + np.int64(1 << 30)) >> np.int64(31)


#: Type, and whether one operand is a single element -> elements in a block, and how inputs are scaled in it.
FORMS: dict[tuple[TensorType, bool], tuple[int, Scaled]] = {
    (TensorType.UINT8, False): (8, shift_after),
    (TensorType.UINT8, True): (8, shift_after),
    (TensorType.INT8, False): (16, shift_at_once),
    (TensorType.INT8, True): (8, shift_after),
    (TensorType.INT16, False): (16, shift_at_once),
}


def prepare_blocks(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, with tables for whole blocks."""
    return in_vectors_optimized(node, prepare_add(node, arithmetic))


def prepare_int16_blocks(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use vector code for the general form, unless a dimension is broadcast: shapes may differ by leading 1s."""
    a, b, _ = both(node)
    prepared = prepare_add_int16(node, arithmetic)
    first, second = of_equal_rank(a.shape, b.shape)
    return in_vectors_optimized(node, prepared) if isinstance(prepared.data, General) and first == second else prepared


def in_vectors_optimized(node: Node, prepared: Prepared) -> Prepared:
    """Return the reference's operator, with its own tables for whole blocks, if any."""
    a, b, _ = both(node)
    run, stands_still = run_of(a.shape, b.shape)
    block, scaled = FORMS[a.type, stands_still]
    whole = in_whole_blocks(run, block)
    if not whole:
        return prepared
    twice, left = common_scale(a, b), 15 if a.type == TensorType.INT16 else 20

    def table(operand: Operand) -> Array:
        mantissa, shift = quantize_multiplier(float(np.float64(operand.scale) / twice))
        return scaled(centre_codes(operand), left, mantissa, shift).astype(np.int32)

    data = OptimizedData(prepared.data, table(a), table(b), run, whole, wraps=False)
    return Prepared(
        prepared.shapes, replace(data, wraps=a.type != TensorType.INT16 and _leaves_16_bits(data)), eval_blocks
    )


def _leaves_16_bits(data: OptimizedData) -> bool:
    """Return whether the largest sum of blocks, scaled and moved by the zero point, needs more than 16 bits."""
    pipeline = data.rest.pipeline
    ends = [sum(int(end(side.astype(np.int64))) for side in (data.first, data.second)) for end in (np.min, np.max)]
    scaled = np.asarray(pipeline.stage(np.clip(ends, -(2**31), 2**31 - 1).astype(np.int32)), np.int64)
    return bool(np.max(np.abs(scaled)) + abs(pipeline.zero_point) >= _INT16)


def eval_blocks(data: OptimizedData, a: Array, b: Array) -> Array:
    """Source: AddElementwise. Rounding: each input's, then the output's.

    Overflow: blocks keep the low 16 bits of 8-bit sums, and add the zero point in 16 bits.
    """
    rest = data.rest
    accumulator = np.empty(rest.shape, np.int32)
    _add_looked_up(
        *(unsigned(spread(x, rest.shape)).reshape(-1, data.run) for x in (a, b)),
        data.first,
        data.second,
        rest.first,
        rest.second,
        data.whole,
        0,
        accumulator.reshape(-1, data.run),
    )
    return _wrap(data, accumulator) if data.wraps else rest.pipeline(accumulator)


def _wrap(data: OptimizedData, accumulator: Array) -> Array:
    """Return the codes of sums that blocks keep in 16 bits. Source: vmovn_s32, vaddq_s16."""
    pipeline = data.rest.pipeline
    codes = pipeline(accumulator).reshape(-1, data.run)
    blocks = accumulator.reshape(-1, data.run)[:, : data.whole]
    narrowed = pipeline.stage(blocks).astype(np.int16) + np.int16(pipeline.zero_point)
    codes[:, : data.whole] = np.clip(narrowed, *pipeline.clamp)
    return codes.reshape(data.rest.shape)


@writes("out")
@in_pieces(a="rc", b="rc", column="c", out="rc")
@compiled
def _add_looked_up(
    a: Array,
    b: Array,
    first: Array,
    second: Array,
    rest_first: Array,
    rest_second: Array,
    whole: Int,
    column: Int,
    out: Array,
) -> None:
    """Add runs as rows, from `column` on; the first `whole` columns use the tables of blocks.

    Prepare guarantees: `a`, `b` and `out` have the same shape; all tables have an entry for every unsigned code.
    """
    rows, columns = out.shape
    split = min(max(whole - column, 0), columns)
    for r in range(rows):
        for c in range(split):
            out[r, c] = wrap_int32(np.int64(first[a[r, c]]) + np.int64(second[b[r, c]]))
        for c in range(split, columns):
            out[r, c] = wrap_int32(np.int64(rest_first[a[r, c]]) + np.int64(rest_second[b[r, c]]))


def by_shifts(node: Node, sign: int) -> Prepared:
    """Require zero points 0, scales that are powers of two and operands of one shape."""
    for operand in both(node):
        require_zero_point_zero(node, operand)
        is_pot = bool(operand.scale > 0) and check_log2(operand.scale)[1]
        node.check(is_pot, "scale", operand, expected="a power of two", got=operand.scale)
    without_broadcast(node)
    return prepare_pot(node, sign)


def prepare_shifted_add(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a sum."""
    return by_shifts(node, 1)


def prepare_shifted_sub(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a difference."""
    return by_shifts(node, -1)


_OPTIMIZED = (
    *valid(
        opt(vectors=True),
        *(Kernel("ADD", f"{t} {t} -> {t}", prepare_blocks, (1, 6)) for t in ("uint8", "int8")),
        Kernel("ADD", "int16 int16 -> int16", prepare_int16_blocks, (1, 6)),
    ),
    *valid(opt(until="tf-2.5", vectors=True), *(row for row in ADD if row.signature.starts_with(TensorType.INT16))),
    *valid(
        opt(until="tf-2.3", vectors=True),
        Kernel("ADD", "int16 int16 -> int16", prepare_shifted_add, (1, 2)),
        Kernel("SUB", "int16 int16 -> int16", prepare_shifted_sub, (1, 3)),
    ),
)


def prepare_with(sign: int) -> Prepare:
    """Return a prepare for a + sign * b."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        for operand in both(node):
            node.check(operand.is_quantized, "is not quantized", operand)
            require_zero_point_zero(node, operand)
            node.check(check_log2(operand.scale)[1], "scale must be a power of two", operand, got=operand.scale)
        without_broadcast(node)
        return prepare_pot(node, sign)

    return prepare


_TF1 = valid(
    tf1(),
    Kernel("ADD", "int16 int16 -> int16", prepare_with(1), (1, 2)),
    Kernel("SUB", "int16 int16 -> int16", prepare_with(-1), (1, 2)),
)


#: Bits of the larger multiplier below its highest.
_PRECISION = 20
_LOWEST, _BEYOND = 2.0**-10, 256.0


def takes(node: Node) -> bool:
    """Return whether both inputs' scales lie between 1/1024 and 256 of the output's."""
    a, b, y = both(node)
    return (
        all(map(is_quantized, (a, b, y)))
        and has_shape(a)
        and has_shape(b)
        and ratio_lies(a, y, _LOWEST, _BEYOND)
        and ratio_lies(b, y, _LOWEST, _BEYOND)
    )


def prepare_sum(node: Node, sign: int) -> Prepared:
    """Prepare a + sign * b. Ratios are float32; multipliers are rounded half to even."""
    a, b, y = both(node)
    first, second = a.scale / y.scale, b.scale / y.scale
    shift = _PRECISION + 1 - int(np.frexp(max(first, second))[1])
    dtype = np.dtype(y.type.label)
    shape = broadcast_shape(node, a, b)
    data = OpData(
        first=_scale_codes(a, int(np.rint(np.ldexp(np.float64(first), shift)))),
        second=_scale_codes(b, sign * int(np.rint(np.ldexp(np.float64(second), shift)))),
        pipeline=OutputPipeline(halve_up(shift), y.zero_point, even_range(node, y), dtype),
        shape=shape,
    )
    return Prepared((shape,), data, eval_general)


def halve_up(shift: int) -> SingleRounding:
    """Return the stage that divides by 2**shift, half up; `shift` in 1..31."""
    stage = SingleRounding.of_fixed(1 << 30, 1 - shift)
    assert isinstance(stage, SingleRounding)
    return stage


def _scale_codes(operand: Operand, multiplier: int) -> Array:
    codes = np.arange(256, dtype=np.uint8).view(operand.type.label).astype(np.int64)
    return ((codes - operand.zero_point) * multiplier).astype(np.int32)


def prepare_add_xnnpack(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare x + y."""
    return prepare_sum(node, 1)


def prepare_sub_xnnpack(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare x - y, the sum of x and y with the sign -1."""
    return prepare_sum(node, -1)


_XNNPACK = (
    *valid(
        xnnpack(),
        *(delegate(Kernel("ADD", f"{t} {t} -> {t}", prepare_add_xnnpack, (1, 5)), takes) for t in ("uint8", "int8")),
        *(delegate(Kernel("SUB", f"{t} {t} -> {t}", prepare_sub_xnnpack, (1, 5)), takes) for t in ("uint8", "int8")),
    ),
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        computing("ADD", ADD, Operation.ADD),
        computing("SUB", SUB, Operation.SUBTRACT),
    ),
)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require shapes and types that agree."""
    first, *others = (node.input(position) for position in range(len(node.inputs)))
    node.check(len(others) >= 1, "number of inputs", expected="at least 2", got=len(node.inputs))
    require_same_type(node, first, *others, node.outputs[0])
    for x in others:
        node.check(x.shape == first.shape, "shape", x, expected=list(first.shape), got=list(x.shape))
    return Prepared((first.shape,), None, evaluate)


def evaluate(_: None, first: Array, *others: Array) -> Array:
    """Source: AddNWorkerTask::Run. Rounding: float32 sums from the first on. Overflow: int32 wraps."""
    total = first
    for x in others:
        total = total + x
        if total.dtype == np.float32:
            total = _finite(total)
    return np.array(total)


def _finite(x: Array) -> Array:
    limit = np.finfo(np.float32).max
    return np.clip(x, -limit, limit)


def prepare_open(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare sums that may be infinite. Source: tflite-micro (August 2026) add_n.cc, reference/add_n.h."""
    return replace(prepare(node, arithmetic), eval=eval_open)


def eval_open(_: None, first: Array, *others: Array) -> Array:
    """Source: AddN. Rounding: float32 sums from the first on."""
    total = first
    for x in others:
        total = total + x
    return np.array(total)


_ADD_N = (
    *(Kernel("ADD_N", f"{t}* -> {t}", prepare, (1, 1)) for t in ("float32", "int32")),
    *valid(micro(), Kernel("ADD_N", "float32* -> float32", prepare_open, (1, 1))),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO, *_OPTIMIZED, *_TF1, *_XNNPACK, *_ADD_N)
