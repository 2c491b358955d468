"""TRANSPOSE_CONV: the reference's sums; vector code scales eight channels or, for uint8, sixteen elements at a time.

16-bit activations with 64-bit accumulators are the reference's. AArch64 up to 2.14 and x86-64 up to 2.12 have the same
code for 8 bits. Up to 2.5 there are no fused activations, and accumulators of 16-bit activations have 64 bits. In 2.3,
one weight scale gives only the first output channel of int8 its multiplier; the others read what memory holds: refused.
Operands, options and refusals: tflq/engine/kernels/transpose_conv/reference.py.
Source: LiteRT 2.3 optimized/integer_ops/transpose_conv.h TransposeConvV2 (int8, int16); optimized_ops.h
TransposeConvV2, Quantize (uint8): one run over all images. TensorFlow 2.12 and 2.14, the same files. TensorFlow 2.3 and
2.5, transpose_conv.cc Prepare, Eval, EvalQuantizedPerChannel16x8; kernel_util.cc PopulateConvolutionQuantizationParams.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.families.contraction import multipliers
from tflq.engine.kernels.families.unclaimed import unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import FlatBlocks, eight_channels, requantizing
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.transpose_conv import reference
from tflq.engine.kernels.transpose_conv.reference import prepare_quantized, without_activations
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import OutputPipeline
from tflq.engine.numerics.unscaled import Unscaled
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: Elements that the uint8 form's vector loop takes at a time.
BLOCK = 16


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the uint8 form."""

    sums: Prepared  # the same operator, without scaling
    blocks: FlatBlocks
    pipeline: OutputPipeline


def prepare_uint8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the reference's operator; its accumulators are kept and scaled afterwards."""
    prepared = prepare_quantized(node, arithmetic)
    pipeline = prepared.data.output.pipeline
    w, x, bias, y = node.input(1), node.input(2), node.optional(3), node.outputs[0]
    real = multipliers(node, arithmetic, x, w, bias, y, 1)
    output = replace(prepared.data.output, pipeline=Unscaled.pipeline())
    data = OpData(
        sums=replace(prepared, data=replace(prepared.data, output=output)),
        blocks=FlatBlocks(arithmetic.requantize_simd(real), arithmetic.requantize(real), BLOCK),
        pipeline=pipeline,
    )
    return replace(prepared, data=data, eval=eval_uint8)


def eval_uint8(data: OpData, *operands: Array) -> Array:
    """Source: TransposeConvV2 (uint8). Rounding: by the stages. Overflow: the accumulator wraps."""
    sums = data.sums.eval(data.sums.data, *operands)
    assert isinstance(sums, np.ndarray)  # one output
    return data.blocks(sums, data.pipeline)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare weights with a zero point like the reference kernel."""
    prepare = prepare_quantized if node.input(1).zero_point else requantizing(prepare_quantized, eight_channels)
    return prepare(node, arithmetic)


INT16 = Kernel("TRANSPOSE_CONV", "int32 int8 int16 int32|int64? -> int16", prepare_int16, (1, 5), (0,))
BYTES = (
    Kernel("TRANSPOSE_CONV", "int32 uint8 uint8 int32? -> uint8", prepare_uint8, (1, 5), (0,)),
    Kernel(
        "TRANSPOSE_CONV",
        "int32 int8 int8 int32? -> int8",
        requantizing(prepare_quantized, eight_channels),
        (1, 5),
        (0,),
    ),
)
_UNACTIVATED = without_activations(*BYTES)


def prepare_one_scale(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse several channels that share a scale."""
    weights = node.input(1)
    if weights.quantization is not None and len(weights.quantization.scale) == 1 and weights.shape[0] > 1:
        raise UndefinedResultError(node.op, "one weight scale for several channels: only the first gets a multiplier")
    return _UNACTIVATED[1].prepare(node, arithmetic)


KERNELS = (
    *valid(opt(), *unclaimed_floats(reference.ROWS)),
    *valid(opt("litert-1.0"), INT16, *BYTES),
    *valid(opt(until="tflite-2.14", cpu="arm64"), *BYTES),
    *valid(
        opt(until="tflite-2.12", cpu="x86-64", vectors=True),
        *BYTES,
        replace(reference.INT16, prepare=requantizing(reference.INT16.prepare, eight_channels)),
    ),
    *valid(opt(until="tf-2.5", vectors=True), *_UNACTIVATED, *reference.WIDE_INT16),
    *valid(opt(until="tf-2.3", vectors=True), replace(_UNACTIVATED[1], prepare=prepare_one_scale)),
)
