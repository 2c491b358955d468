"""MEAN and SUM of the optimized resolver. Operands, options and refusals: tflq/engine/kernels/mean_sum/reference.py.

MEAN of 8-bit images runs vector code (kernels/mean_sum/images.py); to 2.5 it cuts off its bias. Every other form
is the reference's, but half a step too high in 2.3. Float sums begin with their first element; MEAN sums rows by Eigen
if the last dimension alone is reduced.
SUM of 8-bit and 16-bit codes: one float32 product, one addition, one rounding; codes are read as they are declared. In
2.14, 16 bits are added as they are and never rescaled. In 2.3, 8 bits are rescaled half a step too high, and wrap.
Source: LiteRT 2.3 reduce.cc EvalMean, EvalSum; optimized/reduce.h Mean (MeanLastDim/Float), MeanGeneral,
QuantizedMeanOrSum; reduce_utils.h ResolveAxis. TensorFlow 2.3 to 2.14 reduce.cc EvalMean, EvalSum; optimized_ops.h Mean
(uint8); reference_ops.h Mean, QuantizedMeanOrSum.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from tflq.engine.kernels.families.reduction import AXES, Reduced, fold_sum, reduced_axes
from tflq.engine.kernels.families.rescaled_reduction import Narrow, Rescaled, Rule, eval_rescaled
from tflq.engine.kernels.families.unclaimed import unclaimed_floats
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.mean_sum.images import names_image_axes, over_image, prepare_rounded, prepare_truncated
from tflq.engine.kernels.mean_sum.reference import (
    ADDED_INT16,
    MEAN_ROWS,
    SUM_ROWS,
    added_or,
    divided_or,
    eval_empty,
    mean_rows,
    prepare_divided,
    prepare_mean,
    prepare_mean_of_numbers,
    sum_rows,
)
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics import eigen
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import CARRIER
from tflq.typing import Array

_SUM = Rule(divide=False, narrow=Narrow.CLIP)
_RAISED_MEAN = Rule(divide=True, narrow=Narrow.CLIP_FLOAT, half_step=True)
_RAISED_SUM = Rule(divide=False, narrow=Narrow.WRAP, half_step=True)


def prepare_sum(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Give code 0 for a sum of no elements, regardless of the zero point."""
    x, reduced = node.input(0), reduced_axes(node)
    if prod(x.shape) == 0:
        return Prepared((reduced.shape,), np.zeros(reduced.shape, CARRIER[x.type]), eval_empty)
    return Prepared((reduced.shape,), _SUM.of(node, reduced), eval_sum)


def eval_sum(data: Rescaled, x: Array, axes: Array) -> Array:
    """Source: QuantizedMeanOrSum. Rounding: float32, product and sum apart, then half away. Overflow: int32 wraps."""
    return eval_rescaled(data, x, axes)


def prepare_mean_of_rows(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, except for sums of rows and those that begin with their first element."""
    prepared = prepare_mean_of_numbers(node, arithmetic)
    if prepared.eval is eval_empty:
        return prepared
    return replace(prepared, data=reduced_axes(node), eval=eval_rows if is_last(node) else eval_from_first)


def is_last(node: Node) -> bool:
    """Return whether axes at the end alone are reduced. Axes of size 1 do not count."""
    shape = node.input(0).shape
    axes = {int(axis) % len(shape) for axis in node.constant(1).reshape(-1)} if 0 not in shape and shape else set()
    is_reduced = [axis in axes for axis, size in enumerate(shape) if size != 1]
    return set(is_reduced) == {False, True} and is_reduced == sorted(is_reduced)


def eval_rows(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: MeanLastDim. Rounding: each sum, in Eigen's order, then the quotient."""
    rows = np.ascontiguousarray(x).reshape(-1, reduced.count)
    return np.asarray(eigen.row_sums(rows) / np.float32(reduced.count)).reshape(reduced.shape)


def eval_from_first(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: MeanGeneral. Rounding: float32 sums in order, which begin with the first element; one quotient."""
    rows = reduced.rows(x)
    sums = np.empty((rows.shape[0], rows.shape[2]), np.float32)
    fold_sum(rows, sums, True)
    return np.asarray(sums / np.float32(reduced.count)).reshape(reduced.shape)


_SUM_FROM_ZERO = next(row for row in SUM_ROWS if row.signature.is_float)


def prepare_sum_from_first(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; sums begin with the first element, so that negative zeros stay."""
    prepared = _SUM_FROM_ZERO.prepare(node, arithmetic)
    return replace(prepared, data=replace(prepared.data, reduced=replace(prepared.data.reduced, over_all=True)))


KERNELS = (
    *valid(
        opt(),
        *mean_rows(over_image(prepare_rounded, prepare_mean, names_image_axes), "uint8", "int8"),
        *unclaimed_floats(SUM_ROWS),
    ),
    *valid(opt(until="litert-2.1"), *mean_rows(over_image(prepare_rounded, prepare_mean), "uint8", "int8")),
    *valid(
        opt("litert-1.0"), *mean_rows(prepare_mean_of_rows, "float32"), *sum_rows(prepare_sum, "uint8", "int8", "int16")
    ),
    *valid(opt("litert-1.0", cpu="x86-64"), *sum_rows(prepare_sum_from_first, "float32")),
    *valid(
        opt(until="tflite-2.14"), *unclaimed_floats(MEAN_ROWS), *sum_rows(prepare_sum, "uint8", "int8"), *ADDED_INT16
    ),
    *valid(opt(until="tflite-2.12"), *mean_rows(over_image(prepare_rounded, prepare_divided), "uint8", "int8")),
    *valid(
        opt(until="tf-2.5", vectors=True), *mean_rows(over_image(prepare_truncated, prepare_divided), "uint8", "int8")
    ),
    *valid(opt(until="tf-2.3"), *sum_rows(added_or(_RAISED_SUM.prepare), "uint8", "int8")),
    *valid(
        opt(until="tf-2.3", vectors=True),
        *(
            Kernel("MEAN", f"{t} int32 -> {t}", over_image(prepare_truncated, divided_or(_RAISED_MEAN)), (1, 2), AXES)
            for t in ("uint8", "int8")
        ),
    ),
)
