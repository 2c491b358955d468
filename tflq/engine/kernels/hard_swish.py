"""HARD_SWISH: y = x * min(6, max(0, x + 3)) / 6.

| operand | shape | types                | quantization |
|---------|-------|----------------------|--------------|
| x       | any   | float32, uint8, int8 | per tensor   |
| y       | as x  | as x                 | per tensor   |

Source: LiteRT 2.3, activations.cc HardSwishPrepare; reference/hard_swish.h HardSwish, SaturatingLeftShift,
SaturatingDoublingHighMul.

HARD_SWISH of the optimized resolver.

Floats on x86-64 go through vector code, four at a time: the input is divided by 6 first, as a product. Elsewhere they
are not claimed. 8-bit codes on AArch64 go through vector code, eight at a time: shifts round half up, the
last product is a floor. The reference does what is left over.
Source: LiteRT 2.3 optimized_ops.h HardSwish (float) with USE_NEON; LiteRT 2.3 and TensorFlow 2.14 optimized_ops.h
HardSwish (quantized) with __ARM_NEON.

HARD_SWISH of float32 by XNNPACK: see tflq/engine/kernels/families/xnnpack.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.unary import prepare_unary, same_type, tabulate, unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import TwoTables, eval_tables, in_whole_blocks
from tflq.engine.kernels.families.xnnpack import applying
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, filling, valid
from tflq.engine.kernels.validity import opt, xnnpack
from tflq.engine.numerics import xnnpack as xnnpack_functions
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.multiplier import ShortMultiplier, quantize_multiplier, reduce_multiplier
from tflq.engine.numerics.rounding import (
    clamp,
    divide_by_pot_half_away,
    divide_by_pot_half_up,
    doubling_high_mul,
    saturating_rounding_multiply_by_pot,
    wrap,
)
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    input_zero_point: ZeroPoint  # LSB of input
    output_zero_point: ZeroPoint  # LSB of output
    output: ShortMultiplier  # LSB of input / 128 -> LSB of output, shift <= 0
    reluish: ShortMultiplier  # LSB of input / 128 -> 3 / 2**15


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute scales in float32; multipliers are rounded from 31 to 15 bits, half up."""
    x, y = same_type(node)
    finer = np.float32(1 / 128) * x.scale
    output = _short(finer / y.scale)
    node.check(output.shift <= 0, "scale is too small for the input's", y, expected="exponent <= 0", got=output.shift)
    reluish = _short(finer / (np.float32(3) / np.float32(32768)))
    if min(output.shift, reluish.shift) < -15 or reluish.shift > 31:
        raise UndefinedResultError("HardSwish", f"int16 shifted by {output.shift} and {reluish.shift} bits")
    data = OpData(x.zero_point, y.zero_point, output, reluish)
    return prepare_unary(node, data, eval_quantized, np.dtype(x.type.label))


def _short(real: np.float32) -> ShortMultiplier:
    mantissa, shift = quantize_multiplier(float(real))
    return ShortMultiplier(int(reduce_multiplier(mantissa)), shift)


def eval_quantized(data: OpData, x: Array) -> Array:
    """Source: HardSwish. Rounding and overflow: as in `hard_swish`."""
    out = np.empty(x.shape, x.dtype)
    hard_swish(
        x.reshape(-1),
        int(data.input_zero_point),
        int(data.output_zero_point),
        *data.output,
        *data.reluish,
        *type_range(x.dtype),
        False,
        out.reshape(-1),
    )
    return out


@in_pieces(8, x="r", out="r")
@compiled
def hard_swish(
    x: Array,
    input_zero_point: Int,
    output_zero_point: Int,
    output_multiplier: Int,
    output_shift: Int,
    reluish_multiplier: Int,
    reluish_shift: Int,
    low: Int,
    high: Int,
    half_up: bool,
    out: Array,
) -> None:
    """Compute all codes; the vector code rounds shifts half up and the last product down.

    Prepare guarantees: `x` and `out` hold all 256 codes.
    """
    for i in range(len(out)):
        finer = wrap((np.int64(x[i]) - input_zero_point) << np.int64(7), 16)
        scaled = doubling_high_mul(finer, output_multiplier, 16)
        reluish = finer
        if reluish_shift > 0:
            reluish = saturating_rounding_multiply_by_pot(reluish, reluish_shift - 1, 16)
        reluish = doubling_high_mul(reluish, reluish_multiplier, 16)
        if reluish_shift > 0:
            reluish = saturating_rounding_multiply_by_pot(reluish, 1, 16)
        if reluish_shift < 0:
            reluish = _shift_right(reluish, -reluish_shift, half_up)
        gate = (reluish + np.int64(32768)) >> np.int64(1)  # 0 .. 1 in Q15, for -3 .. 3
        product = (gate * scaled) >> np.int64(15) if half_up else _doubling_high_mul_towards_zero(gate, scaled)
        shifted = _shift_right(product, -output_shift, half_up)
        out[i] = clamp(wrap(shifted + output_zero_point, 16), low, high)


@compiled
def _shift_right(x: Int, bits: Int, half_up: bool) -> Int:
    return divide_by_pot_half_up(x, bits) if half_up else divide_by_pot_half_away(x, bits)


@compiled
def _doubling_high_mul_towards_zero(a: Int, b: Int) -> Int:
    """Return a * b / 2**15 of int16 values, truncated. `a` is >= 0 here, so that nothing saturates."""
    product = np.int64(a) * np.int64(b)
    return product >> np.int64(15) if product >= 0 else -((-product) >> np.int64(15))


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    x, _ = same_type(node)
    return Prepared((x.shape,), None, eval_float)


@filling(lambda data, x: (x.shape, x.dtype))
def eval_float(data: None, out: Array, x: Array) -> Call:
    """Source: HardSwish (float)."""
    return _hard_swish_floats.bound(np.asarray(x, order="C").reshape(-1), out.reshape(-1))


@in_pieces(x="r", out="r")
@compiled
def _hard_swish_floats(x: Array, out: Array) -> None:
    """Rounding: sum, product and quotient, float32, left to right; NaN stays.

    Eval guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        gate = x[i] + np.float32(3)
        gate = np.float32(0) if gate < np.float32(0) else gate
        gate = np.float32(6) if gate > np.float32(6) else gate
        out[i] = x[i] * gate / np.float32(6)


ROWS = (
    Kernel("HARD_SWISH", "float32 -> float32", prepare_float, (1, 1)),
    Kernel("HARD_SWISH", "uint8 -> uint8", prepare_quantized, (1, 1)),
    Kernel("HARD_SWISH", "int8 -> int8", prepare_quantized, (1, 1)),
)

_REFERENCE = (*ROWS,)


#: Elements that the vector loop takes at a time.
BLOCK = 8


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare two tables of all codes, both from the reference's constants."""
    tail = prepare_quantized(node, arithmetic)
    data = tail.data.data
    codes = np.arange(256, dtype=np.uint8).view(CARRIER[node.input(0).type])
    whole = tabulate(data, lambda changed: eval_whole(changed, codes))
    return Prepared(tail.shapes, TwoTables(whole, tail.data, BLOCK), eval_tables)


def eval_whole(data: OpData, x: Array) -> Array:
    """Source: HardSwish. Rounding: half up in products and shifts, floor in the last product."""
    out = np.empty(x.shape, x.dtype)
    hard_swish(
        x,
        int(data.input_zero_point),
        int(data.output_zero_point),
        *data.output,
        *data.reluish,
        *type_range(x.dtype),
        True,
        out,
    )
    return out


#: Floats that the vector loop takes at a time.
FLOATS = 4


def prepare_float_optimized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    x, _ = same_type(node)
    return Prepared((x.shape,), None, eval_float_optimized)


def eval_float_optimized(data: None, x: Array) -> Array:
    """Source: HardSwish (float). Rounding: each sum and product; the elements left over multiply by 1/6 at the end."""
    sixth, flat = np.float32(1) / np.float32(6), x.reshape(-1)
    gate = np.minimum(np.float32(6), np.maximum(np.float32(0), flat + np.float32(3)))
    out, whole = flat * sixth * gate, in_whole_blocks(flat.size, FLOATS)
    out[whole:] = flat[whole:] * gate[whole:] * sixth
    return np.asarray(out.reshape(x.shape))


_OPTIMIZED = (
    *valid(opt(), *unclaimed_floats(ROWS)),
    *valid(
        opt("litert-1.0", cpu="x86-64"), Kernel("HARD_SWISH", "float32 -> float32", prepare_float_optimized, (1, 1))
    ),
    *valid(opt(cpu="arm64"), *(Kernel("HARD_SWISH", f"{t} -> {t}", prepare, (1, 1)) for t in ("uint8", "int8"))),
)


_XNNPACK = valid(
    xnnpack("litert-2.1", cpu="x86-64"), applying("HARD_SWISH", ROWS, lambda *_: xnnpack_functions.HARD_SWISH)
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_OPTIMIZED, *_XNNPACK)
