"""ADD and SUB of the optimized resolver. Operands, options and refusals: tflq/engine/kernels/add_sub/reference.py.

ADD of codes runs vector code: inputs reach the common scale with one rounding less than in the reference. The sum is
scaled as there, and 8-bit sums then keep 16 bits, in which they wrap; what is left over after whole blocks is identical
to the reference. If one operand is broadcast whole, int8 goes as uint8 does. Up to 2.5, 16-bit ADD is the reference's.
In 2.3, 16-bit ADD and SUB always go by shifts, regardless of the options; broadcast operands are refused.
Source: LiteRT 2.3 optimized_ops.h AddElementwise, AddScalarBroadcast (uint8); optimized/integer_ops/add.h
AddElementwiseInt8, AddElementwiseInt16, AddScalarBroadcast, all with USE_NEON and without AVX2. TensorFlow 2.3 and 2.5,
add.cc, sub.cc Prepare, EvalAddQuantized.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.add_sub import reference
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.scaled_sum import OpData as General
from tflq.engine.kernels.families.scaled_sum import centre_codes, common_scale, prepare_pot, unsigned, without_broadcast
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks, of_equal_rank, run_of
from tflq.engine.kernels.geometry.broadcast import spread
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, valid
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.multiplier import quantize_multiplier
from tflq.engine.numerics.rounding import wrap_int32
from tflq.engine.numerics.scaling import check_log2
from tflq.model.ir import TensorType
from tflq.typing import Array

Scaled = Callable[[Array, int, int, int], Array]
#: Beyond every 16-bit number.
_INT16 = 2**15


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
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
    return in_vectors(node, reference.prepare_add(node, arithmetic))


def prepare_int16_blocks(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use vector code for the general form, unless a dimension is broadcast: shapes may differ by leading 1s."""
    a, b, _ = both(node)
    prepared = reference.prepare_add_int16(node, arithmetic)
    first, second = of_equal_rank(a.shape, b.shape)
    return in_vectors(node, prepared) if isinstance(prepared.data, General) and first == second else prepared


def in_vectors(node: Node, prepared: Prepared) -> Prepared:
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

    data = OpData(prepared.data, table(a), table(b), run, whole, wraps=False)
    return Prepared(
        prepared.shapes, replace(data, wraps=a.type != TensorType.INT16 and _leaves_16_bits(data)), eval_blocks
    )


def _leaves_16_bits(data: OpData) -> bool:
    """Return whether the largest sum of blocks, scaled and moved by the zero point, needs more than 16 bits."""
    pipeline = data.rest.pipeline
    ends = [sum(int(end(side.astype(np.int64))) for side in (data.first, data.second)) for end in (np.min, np.max)]
    scaled = np.asarray(pipeline.stage(np.clip(ends, -(2**31), 2**31 - 1).astype(np.int32)), np.int64)
    return bool(np.max(np.abs(scaled)) + abs(pipeline.zero_point) >= _INT16)


def eval_blocks(data: OpData, a: Array, b: Array) -> Array:
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


def _wrap(data: OpData, accumulator: Array) -> Array:
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
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
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


KERNELS = (
    *valid(
        opt(vectors=True),
        *(Kernel("ADD", f"{t} {t} -> {t}", prepare_blocks, (1, 6)) for t in ("uint8", "int8")),
        Kernel("ADD", "int16 int16 -> int16", prepare_int16_blocks, (1, 6)),
    ),
    *valid(
        opt(until="tf-2.5", vectors=True),
        *(row for row in reference.ADD if row.signature.starts_with(TensorType.INT16)),
    ),
    *valid(
        opt(until="tf-2.3", vectors=True),
        Kernel("ADD", "int16 int16 -> int16", prepare_shifted_add, (1, 2)),
        Kernel("SUB", "int16 int16 -> int16", prepare_shifted_sub, (1, 3)),
    ),
)
