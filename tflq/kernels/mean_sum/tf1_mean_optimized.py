"""MEAN of r1.15's optimized kernels on 8 bits: images over height and width; else as mean.py.

Channels go in blocks of 8 while at least one is left after the block: their sums are multiplied by an *estimate* of the
reciprocal of n, so that these bits belong to a processor. The last 1 to 8 channels are divided.
Source: TensorFlow r1.15 lite/kernels/reduce.cc EvalMean; optimized_ops.h Mean, MeanImpl; optimized/integer_ops/mean.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.kernels.families.reduction import AXES, reduced_axes, sum_int32
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum import tf1_mean as mean
from tflq.kernels.mean_sum.tf1_mean import FloatData, float_data, over_image, rescaled, same_quantization
from tflq.kernels.mean_sum.tf1_reciprocal_estimate import ReciprocalEstimate
from tflq.kernels.validity import tf1
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.rounding import floats_to_int32, nearest_half_away

BLOCK = 8

Prepare = Callable[[Node, Arithmetic], Prepared]


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of an operator."""

    general: FloatData
    same: bool  # whether input and output have one quantization
    reciprocal: np.float32  # an estimate of 1 / n
    estimated: int  # channels in whole blocks


def prepare_with(estimate: ReciprocalEstimate) -> Prepare:
    """Return a prepare for images that uses that processor's reciprocal estimates."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        reduced = reduced_axes(node)
        channels = node.input(0).shape[3]
        data = OpData(
            float_data(node, reduced),
            same_quantization(node),
            estimate(reduced.count),
            BLOCK * ((channels - 1) // BLOCK),
        )
        return Prepared((reduced.shape,), data, evaluate)

    return prepare


def prepare_uint8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use the loop over images if dimensions are kept, else the general form."""
    x = node.input(0)
    is_image = len(x.shape) == 4 and over_image(node) and bool(node.options["keep_dims"]) and 0 not in x.shape
    return (prepare_estimated if is_image else mean.prepare_general)(node, arithmetic)


def prepare_int8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse everything but images; the loop is four-dimensional, whatever the output's rank."""
    mean.check_image(node)
    return prepare_estimated(node, arithmetic)


def evaluate(data: OpData, x: Array, axes: Array) -> Array:
    """Source: MeanImpl. Rounding: products to float32, then half to even in blocks, half away behind them; uint8 in
    blocks without rescaling half up. Overflow: wraps, but what is negative in blocks of uint8 gives 0.
    """
    sums = sum_int32(data.general.reduced.rows(x)).astype(np.float32)
    blocks, rest = sums[:, : data.estimated] * data.reciprocal, sums[:, data.estimated :]
    rest = rest / np.float32(data.general.reduced.count)
    if data.same:
        whole = np.floor(blocks + np.float32(0.5)) if x.dtype == np.uint8 else np.rint(blocks)
        codes = floats_to_int32(whole), floats_to_int32(nearest_half_away(rest))
    else:
        whole = np.rint(blocks * data.general.scale + data.general.bias)
        codes = floats_to_int32(whole) + np.int32(data.general.zero_point), rescaled(rest, data.general)
    first = np.maximum(codes[0], 0) if x.dtype == np.uint8 else codes[0]
    return np.concatenate((first, codes[1]), axis=1).astype(x.dtype).reshape(data.general.reduced.shape)


ESTIMATE = ReciprocalEstimate.read("reciprocal_estimate.json")
prepare_estimated = prepare_with(ESTIMATE)

KERNELS = valid(
    tf1("opt"),
    Kernel("MEAN", "uint8 int32 -> uint8", prepare_uint8, (1, 2), AXES),
    Kernel("MEAN", "int8 int32 -> int8", prepare_int8, (1, 2), AXES),
)
