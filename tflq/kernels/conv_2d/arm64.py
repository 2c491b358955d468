"""CONV_2D int8 and uint8 by ruy and the matrix-vector kernel; grouped convolutions are the reference's.

Operands, options and refusals: tflq/kernels/conv_2d/reference.py.
Source: LiteRT 2.3 conv.cc EvalQuantizedPerChannel, EvalQuantized on AArch64; ruy kernel_arm64.cc.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tflq.kernels.conv_2d.reference import prepare_quantized, shapes
from tflq.kernels.families.matrix_vector import Scaling, ruy
from tflq.kernels.families.vector_blocks import Prepare
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic


def by(scaling: Scaling) -> Prepare:
    """The reference's convolution with a scaling that depends on the shape of the product."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        _, shape, groups = shapes(node)
        if groups > 1:
            return prepare_quantized(node, arithmetic)
        stage = scaling(arithmetic, shape[3], prod(node.input(1).shape[1:]), prod(shape[:3]))
        return prepare_quantized(node, replace(arithmetic, requantize=stage))

    return prepare


def rows(scaling: Scaling) -> tuple[Kernel, ...]:
    """Both forms."""
    return (
        Kernel("CONV_2D", "int8 int8|int4 int32 -> int8", by(scaling), (1, 8)),
        Kernel("CONV_2D", "uint8 uint8 int32 -> uint8", by(scaling), (1, 8)),
    )


KERNELS = valid(opt("litert-1.0", cpu="arm64"), *rows(ruy))
