"""MEAN over height and width of 8-bit images: one multiplier of the raw sum, and a bias for both zero points.

Taken for four dimensions, kept, when the axes are 1 and 2; every other form is the reference's.
Operands, options and refusals: tflq/kernels/mean_sum/mean.py.
Source: LiteRT 2.3 reduce.cc EvalMean, BuildMeanParamsFor4D; optimized/integer_ops/mean.h Mean, MeanImpl;
optimized_ops.h Mean (uint8). One thread: blocks of channels begin anew at each thread's first channel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes, sum_int32
from tflq.kernels.families.unclaimed import unclaimed_floats
from tflq.kernels.families.vector_blocks import channel_blocks
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum import mean
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import ZeroPoint
from tflq.numerics.rounding import float_to_int32, wrap_int32
from tflq.numerics.stages import OutputPipeline, type_range

#: Channels that the vector loop takes at a time.
BLOCK = 16

Prepare = Callable[[Node, Arithmetic], Prepared]


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the special form."""

    reduced: Reduced
    pipeline: OutputPipeline  # raw sums -> codes; the zero point is the bias


def is_over_image(node: Node) -> bool:
    """Whether the source takes its special form: axes 1 and 2 of four, kept, each named once."""
    x = node.input(0)
    rank = len(x.shape)
    axes = sorted(int(v) % 4 for v in node.constant(1).reshape(-1)) if rank == 4 else []
    return axes == [1, 2] and bool(node.options["keep_dims"]) and prod(x.shape) > 0


def over_image(otherwise: Prepare) -> Prepare:
    """A prepare of the special form; `otherwise` prepares every other one."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        return (prepare_over_image if is_over_image(node) else otherwise)(node, arithmetic)

    return prepare


def prepare_over_image(node: Node, arithmetic: Arithmetic) -> Prepared:
    """All real arithmetic is float32: zero point * scale / scale, rounded half away, and scale / (n * scale)."""
    x, y = node.input(0), node.outputs[0]
    shifted = np.float32(x.zero_point) * x.scale / y.scale
    half = np.float32(0.5)
    offset = int(float_to_int32(np.trunc(shifted + half if shifted > 0 else shifted - half)))
    return prepare_biased(node, arithmetic, int(wrap_int32(y.zero_point - offset)))


def prepare_biased(node: Node, arithmetic: Arithmetic, bias: int) -> Prepared:
    """`bias` is what both zero points make, LSB of output."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    real = np.float64(x.scale / (np.float32(reduced.count) * y.scale))
    dtype = CARRIER[x.type]
    stage = channel_blocks(arithmetic, BLOCK)(np.full(x.shape[3], real))
    data = OpData(reduced, OutputPipeline(stage, ZeroPoint(bias), type_range(dtype), dtype))
    return Prepared((reduced.shape,), data, eval_over_image)


def eval_over_image(data: OpData, x: Array, axes: Array) -> Array:
    """Source: MeanImpl. Rounding: by the stage. Overflow: the sum wraps int32."""
    return data.pipeline(sum_int32(data.reduced.rows(x))).reshape(data.reduced.shape)


prepare_quantized = over_image(mean.prepare_quantized)


KERNELS = (
    *valid(opt(), *(Kernel("MEAN", f"{t} int32 -> {t}", prepare_quantized, (1, 3), AXES) for t in ("uint8", "int8"))),
    *valid(opt(until="tflite-2.14"), *unclaimed_floats(mean.KERNELS)),
)
