"""DEPTHWISE_CONV_2D of r1.15 on int8: the fused activation is ignored, only the type's range clamps.

Everything else is as in the reference kernel; uint8 and float32 honour the activation.
Source: TensorFlow r1.15 lite/kernels/depthwise_conv.cc EvalQuantizedPerChannel;
reference/integer_ops/depthwise_conv.h DepthwiseConvPerChannel.
"""

from __future__ import annotations

from tflq.engine.kernels.depthwise_conv_2d.reference import prepare_quantized
from tflq.engine.kernels.families.activation import without_activation
from tflq.engine.kernels.kernel import Kernel, valid
from tflq.engine.kernels.validity import tf1

KERNELS = valid(
    tf1(), Kernel("DEPTHWISE_CONV_2D", "int8 int8 int32? -> int8", without_activation(prepare_quantized), (1, 3))
)
