"""FULLY_CONNECTED int8 and uint8 by ruy and the matrix-vector kernel.

Operands, options and refusals: tflq/kernels/fully_connected/reference.py.
Source: LiteRT 2.3 fully_connected.cc EvalQuantized on AArch64; ruy kernel_arm64.cc.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tflq.kernels.families.matrix_vector import Scaling, ruy
from tflq.kernels.families.vector_blocks import Prepare
from tflq.kernels.fully_connected.reference import output_shape, prepare_quantized
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic, prepared_real


def by(scaling: Scaling) -> Prepare:
    """The reference's product, scaled as its shape asks for, with the multipliers that Prepare quantizes."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        shape = output_shape(node)
        stage = scaling(arithmetic, shape[-1], node.input(1).shape[1], prod(shape[:-1]))
        return prepare_quantized(node, replace(arithmetic, dense_real=prepared_real, requantize_dense=stage))

    return prepare


def rows(scaling: Scaling) -> tuple[Kernel, ...]:
    """All 8-bit forms."""
    return (
        Kernel("FULLY_CONNECTED", "int8 int8|int4|int2 int32? -> int8", by(scaling), (1, 14)),
        Kernel("FULLY_CONNECTED", "uint8 uint8 int32? -> uint8", by(scaling), (1, 14)),
        Kernel("FULLY_CONNECTED", "uint8 uint8 int32 -> int16", by(scaling), (1, 14)),
    )


KERNELS = valid(opt("litert-1.0", cpu="arm64"), *rows(ruy))
