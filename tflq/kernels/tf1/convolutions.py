"""CONV_2D and DEPTHWISE_CONV_2D of r1.15 on int8: their fused activation is ignored, only the type's range clamps.

Everything else is as in the reference kernels that share the name; uint8 and float32 honour the activation.
Source: TensorFlow r1.15 lite/kernels/conv.cc EvalQuantizedPerChannel; reference/integer_ops/conv.h ConvPerChannel;
depthwise_conv.cc EvalQuantizedPerChannel; reference/integer_ops/depthwise_conv.h DepthwiseConvPerChannel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.reference import conv_2d, depthwise_conv_2d
from tflq.numerics.arithmetic import Arithmetic

Prepare = Callable[[Node, Arithmetic], Prepared]


def without_activation(prepare: Prepare) -> Prepare:
    """`prepare` as if the operator had no fused activation."""

    def prepare_open(node: Node, arithmetic: Arithmetic) -> Prepared:
        fields = {**node.options.fields, "fused_activation_function": 0}
        return prepare(replace(node, options=replace(node.options, fields=fields)), arithmetic)

    return prepare_open


KERNELS = (
    Kernel("CONV_2D", "int8 int8 int32 -> int8", without_activation(conv_2d.prepare_quantized), (1, 3)),
    Kernel(
        "DEPTHWISE_CONV_2D", "int8 int8 int32? -> int8", without_activation(depthwise_conv_2d.prepare_quantized), (1, 3)
    ),
)
