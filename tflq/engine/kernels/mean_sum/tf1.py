"""MEAN and SUM of r1.15 on 8 bits.

| operand | shape                           | types       | quantization |
|---------|---------------------------------|-------------|--------------|
| x       | any; MEAN of int8: N,H,W,C      | uint8, int8 | per tensor   |
| axes    | any; MEAN of int8: 1 and 2      | int32       |              |
| y       | x without, or with 1            | as x        | per tensor   |

Options: keep_dims.
MEAN of uint8 divides plain codes if both quantizations are equal, SUM adds them if both scales are; otherwise both work
in float32, are half a step too high, and wrap. MEAN of int8 rescales the sum before it divides; its loops know only
four dimensions and the two in their middle.
The optimized MEAN differs over images: channels go in blocks of 8 while at least one is left after the block. Their
sums are multiplied by an *estimate* of the reciprocal of n, so that these bits belong to a processor. The last 1 to 8
channels are divided.
Source: TensorFlow r1.15 lite/kernels/reduce.cc EvalMean, EvalSum; reference_ops.h Mean, ReduceGeneric,
QuantizedMeanOrSum; reference/integer_ops/mean.h; optimized_ops.h Mean, MeanImpl; optimized/integer_ops/mean.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.reduction import AXES, Reduced, reduced_axes, sum_int32
from tflq.engine.kernels.families.rescaled_reduction import (
    Narrow,
    Rescaled,
    Rule,
    eval_mean_of_codes,
    eval_sum_of_codes,
    has_same_quantization,
)
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.mean_sum.images import has_image_axes, prepare_divided_last
from tflq.engine.kernels.validity import tf1
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.reciprocal_estimate import ReciprocalEstimate
from tflq.engine.numerics.rounding import floats_to_int32, nearest_half_away
from tflq.errors import UndefinedResultError
from tflq.typing import Array

_MEAN = Rule(divide=True, narrow=Narrow.WRAP, half_step=True)
_SUM = Rule(divide=False, narrow=Narrow.WRAP, half_step=True)
#: Channels that the optimized loop takes at a time.
BLOCK = 8
ESTIMATE = ReciprocalEstimate.read("reciprocal_estimate.json")


def prepare_sum(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compare the scales alone."""
    if node.input(0).scale != node.outputs[0].scale:
        return _SUM.prepare(node, arithmetic)
    reduced = reduced_axes(node)
    return Prepared((reduced.shape,), reduced, eval_sum_of_codes)


def prepare_mean(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse a mean of no elements."""
    reduced = reduced_axes(node)
    _check_count(reduced)
    if has_same_quantization(node):
        return Prepared((reduced.shape,), reduced, eval_mean_of_codes)
    return _MEAN.prepare(node, arithmetic)


def _check_count(reduced: Reduced) -> None:
    if reduced.count == 0:
        raise UndefinedResultError("Mean", "a mean of no elements")


def prepare_mean_of_image(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse forms that the loops do not know: they leave outputs unwritten."""
    _check_image(node)
    return prepare_divided_last(node, arithmetic)


def _check_image(node: Node) -> None:
    """Refuse shapes that the four-dimensional loops over height and width do not expect."""
    x, reduced = node.input(0), reduced_axes(node)
    _check_count(reduced)
    if not has_image_axes(node) or not covers(reduced.shape, x.shape):
        raise UndefinedResultError("Mean", f"int8 of shape {list(x.shape)} to {list(reduced.shape)}")


def covers(output: Shape, image: Shape) -> bool:
    """Return whether an output, filled up to four dimensions from the left, is (N, 1, 1, C)."""
    return (1,) * (4 - len(output)) + output == (image[0], 1, 1, image[3])


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedData:
    """Constants of an optimized mean over an image."""

    general: Rescaled
    same: bool  # whether input and output have one quantization
    reciprocal: np.float32  # an estimate of 1 / n
    estimated: int  # channels in whole blocks


def prepare_estimated(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Look up the reciprocal of n as this processor estimates it."""
    reduced = reduced_axes(node)
    whole = BLOCK * ((node.input(0).shape[3] - 1) // BLOCK)
    data = EstimatedData(_MEAN.of(node, reduced), has_same_quantization(node), ESTIMATE(reduced.count), whole)
    return Prepared((reduced.shape,), data, eval_estimated)


def prepare_optimized_uint8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use the loop over images if dimensions are kept, else the general form."""
    x = node.input(0)
    is_image = has_image_axes(node) and bool(node.options["keep_dims"]) and 0 not in x.shape
    return (prepare_estimated if is_image else prepare_mean)(node, arithmetic)


def prepare_optimized_int8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require an image; the loop is four-dimensional for any rank of the output."""
    _check_image(node)
    return prepare_estimated(node, arithmetic)


def eval_estimated(data: EstimatedData, x: Array, axes: Array) -> Array:
    """Source: MeanImpl. Rounding: products to float32, then half to even in blocks, half away behind them; uint8 in
    blocks without rescaling half up. Overflow: wraps, except that negative results in blocks of uint8 give 0.
    """
    general = data.general
    sums = sum_int32(general.reduced.rows(x)).astype(np.float32)
    blocks, rest = sums[:, : data.estimated] * data.reciprocal, sums[:, data.estimated :]
    rest = rest / np.float32(general.reduced.count)
    if data.same:
        whole = np.floor(blocks + np.float32(0.5)) if x.dtype == np.uint8 else np.rint(blocks)
        codes = floats_to_int32(whole), floats_to_int32(nearest_half_away(rest))
    else:
        whole = np.rint(blocks * general.scale + general.bias)
        codes = (
            floats_to_int32(whole) + np.int32(general.zero_point),
            general.integers(rest * general.scale + general.bias),
        )
    first = np.maximum(codes[0], 0) if x.dtype == np.uint8 else codes[0]
    return np.concatenate((first, codes[1]), axis=1).astype(x.dtype).reshape(general.reduced.shape)


KERNELS = (
    *valid(
        tf1(),
        Kernel("MEAN", "uint8 int32 -> uint8", prepare_mean, (1, 2), AXES),
        Kernel("MEAN", "int8 int32 -> int8", prepare_mean_of_image, (1, 2), AXES),
        *(Kernel("SUM", f"{t} int32 -> {t}", prepare_sum, (1, 2), AXES) for t in ("uint8", "int8")),
    ),
    *valid(
        tf1("opt"),
        Kernel("MEAN", "uint8 int32 -> uint8", prepare_optimized_uint8, (1, 2), AXES),
        Kernel("MEAN", "int8 int32 -> int8", prepare_optimized_int8, (1, 2), AXES),
    ),
)
