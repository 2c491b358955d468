"""ADD, SUB: y = a + b, y = a - b.

| operand | shape             | types                                      | quantization                    |
|---------|-------------------|--------------------------------------------|---------------------------------|
| a, b    | any, broadcasting | float32, int32, int64, int16, uint8, int8; | per tensor; int16: zero point 0 |
|         |                   | ADD: float16                               | none                            |
| y       | broadcast         | as a                                       | per tensor; int16: zero point 0 |

Options: fused_activation_function; pot_scale_int16 (int16 whose scales are powers of two: shifts, no multipliers).
ADD of int16 without quantization is plain arithmetic that wraps.
float32 on AArch64: see tflq/engine/kernels/families/float_limits.py.
Source: LiteRT 2.3, add.cc Prepare; reference/add.h AddElementwise, Add, BroadcastAdd6DSlow; sub.cc PrepareGeneralSubOp;
reference/sub.h SubElementwise, SubWithActivation, BroadcastSubSlow.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.engine.kernels.families.binary import both, prepare_clamped
from tflq.engine.kernels.families.float_limits import (
    COMPARED,
    NUMBERS,
    Loops,
    in_vectors,
    limit,
    of_equals,
    of_sums,
    where_equal,
)
from tflq.engine.kernels.families.scaled_sum import has_pot_scales, prepare_general, prepare_pot, without_broadcast
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import opt, ref
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range

prepare_add_of_numbers = prepare_clamped(np.add)
prepare_add = partial(prepare_general, sign=1)


def prepare_add_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Add plainly if nothing is quantized, by shifts if asked for and possible, else in general."""
    operands = both(node)
    if not any(operand.is_quantized for operand in operands):
        return prepare_add_of_numbers(node, arithmetic)
    for operand in operands:
        node.check(operand.is_quantized, "is not quantized, but others are", operand)
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
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
    for operand in both(node):
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
    return prepare_pot(node, sign=-1) if has_pot_scales(node) else prepare_sub(node, arithmetic)


SUB = (
    *(Kernel("SUB", f"{t} {t} -> {t}", prepare_sub, (1, 5)) for t in ("uint8", "int8")),
    Kernel("SUB", "int16 int16 -> int16", prepare_sub_int16, (1, 5)),
    *(Kernel("SUB", f"{t} {t} -> {t}", prepare_sub_of_numbers, (1, 5)) for t in ("float32", "int32", "int64")),
)


def _rows(add: Loops, sub: Loops) -> tuple[Kernel, ...]:
    return limit("ADD", np.add, add, (1, 6)), limit("SUB", np.subtract, sub, (1, 5))


KERNELS = (
    *ADD,
    *SUB,
    *valid(opt("litert-1.0", cpu="arm64"), *_rows(in_vectors, where_equal(in_vectors, COMPARED))),
    *valid(opt(until="tflite-2.14", cpu="arm64"), *_rows(of_sums, where_equal(in_vectors, NUMBERS))),
    *valid(
        ref(until="tflite-2.14", cpu="arm64"), *_rows(where_equal(of_equals, COMPARED), where_equal(of_equals, NUMBERS))
    ),
)
