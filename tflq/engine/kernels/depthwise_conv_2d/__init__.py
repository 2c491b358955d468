"""DEPTHWISE_CONV_2D: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

FORMULAS = formulas(
    "DEPTHWISE_CONV_2D",
    "int8",
    "depthwise_conv.h",
    (when.opt(vectors=True), "DRU in blocks of 8 channels"),
    (when.opt(vectors=False), "DR"),
)
FAULTS = (
    Fault(
        "DEPTHWISE_CONV_2D",
        ("int8 int8 int32 -> int8",),
        "TensorFlow 1.15",
        "the fused activation is ignored: codes are clamped to -128..127 only",
        "depthwise_conv.cc EvalQuantizedPerChannel",
        (when.tf1("opt"),),
    ),
    Fault(
        "DEPTHWISE_CONV_2D",
        ("float32 float32 float32? -> float32", "uint8 uint8 int32? -> uint8", "int8 int8 int32? -> int8"),
        "optimized kernels, and XNNPACK, which leaves such nodes to them",
        "an absent bias is read through a null pointer, and the process dies: refused",
        "optimized/depthwiseconv_float.h and depthwiseconv_uint8.h DepthwiseConvInitAccBuffer",
        (when.opt(),),
    ),
    Fault(
        "DEPTHWISE_CONV_2D",
        ("int8 int8 int32 -> int8", "float32 float32 float32 -> float32"),
        "XNNPACK up to LiteRT 2.1; uint8 from LiteRT 1.0 on",
        "with SAME padding that is negative along an axis (a stride beyond the filter), no tap is read: every output "
        "is the bias alone, which is all zeros without one",
        "XNNPACK convolution-nhwc.c, SAME padding; right from LiteRT 2.2 on",
        (when.xnnpack(until="litert-2.1"),),
    ),
)
