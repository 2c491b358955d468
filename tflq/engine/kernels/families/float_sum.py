"""ADD, SUB as a float32 sum of codes times the ratios of scales, with its fields.

y = round(a * (scale_a / scale_y) + b * (scale_b / scale_y) + constant); devices differ in what the constant holds, in
the order of the sum, and in whether products are rounded before they are added.

Devices that know ranges (`numerics/code_ranges`) count both inputs in steps of the second's range. With steps u and v
above the lowest codes, ratio = step_a / step_b and shift = zero_a + zero_b * step_b / step_a, the ends of the first are
(0 - shift) * ratio and (steps - shift) * ratio, and the sum is u * ((high - low) / steps) + low + v. Either the
output's range is counted in these steps, too, or the sum is scaled back by step_b. SUB has -zero_b and -v.

Sources of fields: ONNX Runtime, MLAS qladd.cpp MlasQLinearAddKernelHelper (zero points folded, the constant first;
fused in qladd_avx2.cpp); OpenCV 5.0 dnn (folded one by one); OpenVINO 2026.4.1, AddTransformation,
FuseMultiplyToFakeQuantizeTransformation and FakeQuantizeTransformation of the low precision transformations (ranges).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.families.activation import code_range
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.through_floats import CODES
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.code_ranges import TO_CODES, CodeRange, range_of
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.divisions import ROUNDINGS
from tflq.engine.numerics.multiply_add import MultiplyAdd, fuse, round_apart
from tflq.engine.numerics.stages import type_range
from tflq.engine.numerics.stated_fields import reader
from tflq.model.ir import CARRIER
from tflq.typing import Array

FOLDED, ONE_BY_ONE = "folded into the constant", "folded into the constant one by one"
PRODUCTS: Mapping[str, MultiplyAdd] = {"rounded": round_apart, "fused": fuse}
#: Terms in the order in which they are added: the constant and both inputs.
ORDERS: Mapping[str, str] = {
    "constant, first, second": "cab",
    "constant, second, first": "cba",
    "first, second, constant": "abc",
    "second, first, constant": "bac",
    "first, second; constant after rounding": "ab",
    "second, first; constant after rounding": "ba",
}
#: Factors of codes: ratios to the output's scale, or ratios of steps of ranges.
TO_OUTPUT, COUNTED, SCALED_BACK = SCALES = (
    "to the output's scale",
    "to steps of the second range, in which the output's is counted",
    "to steps of the second range, and back",
)
#: The operators that have it.
OPERATORS = ("ADD", "SUB")
#: The values of each field.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "zero_points": ("subtracted from codes", FOLDED, ONE_BY_ONE),
    "order": tuple(ORDERS),
    "products": tuple(PRODUCTS),
    "rounding": tuple(ROUNDINGS),
    "scales": SCALES,
}


@dataclass(frozen=True, slots=True)
class FloatSum:
    """One point of the grammar of sums in floats. Fields are spelled as files of profiles spell them."""

    zero_points: str = "subtracted from codes"
    order: str = "first, second, constant"
    products: str = "rounded"
    rounding: str = "half to even"
    scales: str = TO_OUTPUT


#: The reader of what a file states.
float_sum_of = reader(FloatSum, FIELDS, "a sum in floats")


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants: ratios of scales, zero points that are subtracted (LSB), and the constant (LSB of the output)."""

    ratios: tuple[np.float32, np.float32]  # the second negative for a difference
    zeros: tuple[int, int]
    constant: np.float32
    clamp: Clamp
    dtype: np.dtype[Any]
    point: FloatSum


def sum_in_floats(row: Kernel, point: FloatSum) -> Kernel:
    """Return the row of ADD or SUB that adds codes times ratios of scales."""
    sign = -1 if row.op == "SUB" else 1

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b, y = both(node)
        for operand in (a, b, y):
            node.check(operand.type in CODES and operand.is_quantized, "has no scale to add with", operand)
        dtype = np.dtype(CARRIER[y.type])
        shape, clamp = broadcast_shape(node, a, b), code_range(node, y, dtype)
        if point.scales != TO_OUTPUT:
            ranges = [range_of(o.scale, int(o.zero_point), type_range(CARRIER[o.type])) for o in (a, b, y)]
            return Prepared((shape,), _in_steps(ranges, sign, clamp, dtype, point), eval_sum_in_steps)
        ratios = np.float32(a.scale / y.scale), np.float32(np.float32(sign) * (b.scale / y.scale))
        zeros, constant = (int(a.zero_point), int(b.zero_point)), np.float32(y.zero_point)
        terms = [np.float32(r * np.float32(z)) for r, z in zip(ratios, zeros, strict=True)]
        if point.zero_points == FOLDED:
            constant, zeros = np.float32(constant - (terms[0] + terms[1])), (0, 0)
        elif point.zero_points == ONE_BY_ONE:
            constant, zeros = np.float32(np.float32(constant - terms[0]) - terms[1]), (0, 0)
        return Prepared((shape,), OpData(ratios, zeros, constant, clamp, dtype, point), eval_float_sum)

    return replace(row, prepare=prepare, takes=None)


def eval_float_sum(data: OpData, a: Array, b: Array) -> Array:
    """Add in float32 and round. Rounding: by the point. Overflow: none, sums of 16-bit codes stay below 2**62."""
    point, terms = data.point, ORDERS[data.point.order]
    multiply_add = PRODUCTS[point.products]
    codes = {
        name: (x.astype(np.int64) - zero).astype(np.float32)
        for name, x, zero in zip("ab", np.broadcast_arrays(a, b), data.zeros, strict=True)
    }
    ratios = dict(zip("ab", data.ratios, strict=True))
    total: Any = None
    with np.errstate(all="ignore"):
        for term in terms:
            if total is None:
                total = data.constant if term == "c" else codes[term] * ratios[term]
            elif term == "c":
                total = total + data.constant
            else:
                total = multiply_add(codes[term], ratios[term], total)
        rounded = np.asarray(ROUNDINGS[point.rounding](np.asarray(total, np.float32)), np.float64)
    rounded = rounded if "c" in terms else rounded + float(data.constant)
    return np.asarray(np.clip(rounded, *data.clamp).astype(data.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class StepData:
    """Constants: both inputs' ranges, the first's as steps of the second, and the output's as what the sum counts."""

    first: CodeRange
    second: CodeRange
    output: CodeRange
    scale: np.float32  # what the sum is multiplied by
    sign: int
    clamp: Clamp
    dtype: np.dtype[Any]
    point: FloatSum


def _in_steps(ranges: Sequence[CodeRange], sign: int, clamp: Clamp, dtype: np.dtype[Any], point: FloatSum) -> StepData:
    f32 = np.float32
    a, b, y = ranges
    with np.errstate(all="ignore"):
        ratio = a.step / b.step
        shift = f32(a.zero + f32(sign) * f32(f32(b.zero * b.step) / a.step))
        first = a.make_again(shift, ratio)
        if point.scales == COUNTED:
            y, scale = replace(y, low=f32(y.low / b.step), high=f32(y.high / b.step)), f32(1)
        else:
            scale = b.step
    return StepData(first, b, y, scale, sign, clamp, dtype, point)


def eval_sum_in_steps(data: StepData, a: Array, b: Array) -> Array:
    """Add steps of ranges in float32 and quantize by the output's range. Rounding: by the point. Overflow: none."""
    point, first = data.point, data.first
    with np.errstate(all="ignore"):
        left = PRODUCTS[point.products](first.counted(a), first.step, first.low)
        right = data.second.counted(b)
        total = np.asarray(left + right if data.sign > 0 else left - right) * data.scale
        codes = TO_CODES["by range"].codes(total, data.output, ROUNDINGS[point.rounding])
    return np.asarray(np.clip(np.nan_to_num(codes, nan=0.0), *data.clamp).astype(data.dtype))
