"""Element-wise comparisons: what EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL share.

8-bit codes (int16 too, for equality) are compared as reals: a rounding multiplier brings both to the scale 1/256. Other
types are compared as they are.
Source: LiteRT 2.3, comparisons.cc ComparisonPrepareCommon, ComparisonQuantized; reference/comparisons.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.binary import Function, both
from tflq.engine.kernels.families.scaled_sum import scale_codes
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array

LEFT_SHIFT = 8


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    compare: Function
    first: Array  # by code of the first input (as unsigned): int32, real * 256
    second: Array


def kernels(op: str, compare: Function, plain: tuple[str, ...], versions: tuple[int, int]) -> tuple[Kernel, ...]:
    """Return the kernels of a comparison: `plain` are types compared as they are, with float32, int32 and int64."""

    def prepare_plain(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b, _ = both(node)
        return Prepared((broadcast_shape(node, a, b),), compare, eval_plain)

    def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b, _ = both(node)
        shape = broadcast_shape(node, a, b)
        first, second = (scale_codes(o, arithmetic, np.float64(o.scale), LEFT_SHIFT) for o in (a, b))
        return Prepared((shape,), OpData(compare, first, second), eval_quantized)

    def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
        quantized = node.input(0).is_quantized
        if op == "NOT_EQUAL" and not quantized:
            node.refuse("int16 that is not quantized leaves the output unwritten", node.input(0))
        return (prepare_quantized if quantized else prepare_plain)(node, arithmetic)

    same = ("float32", "float16", "int32", "int64", *plain)
    rows = [Kernel(op, f"{t} {t} -> bool", prepare_plain, versions) for t in same]
    rows += [Kernel(op, f"{t} {t} -> bool", prepare_quantized, versions) for t in ("uint8", "int8")]
    if "int16" not in plain:
        rows.append(Kernel(op, "int16 int16 -> bool", prepare_int16, versions))
    return tuple(rows)


def eval_plain(compare: Function, a: Array, b: Array) -> Array:
    """Compare without rounding. NaN is unequal to everything and never less."""
    return np.asarray(compare(a, b), np.bool_)


def eval_quantized(data: OpData, a: Array, b: Array) -> Array:
    """Source: ComparisonWithScaling. Rounding: each input's, by the stage, when the tables were computed."""
    return np.asarray(data.compare(_look_up(data.first, a), _look_up(data.second, b)))


def _look_up(table: Array, x: Array) -> Array:
    codes = x.view(f"u{x.dtype.itemsize}")
    return np.asarray(table[codes])
