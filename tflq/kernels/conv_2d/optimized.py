"""CONV_2D: the reference's sums, scaled as ruy's matrix product scales them. Groups are the reference's.

Operands, options and refusals: tflq/kernels/conv_2d/reference.py.
Source: LiteRT 2.3 conv.cc EvalQuantizedPerChannel; optimized/integer_ops/conv.h
ConvPerChannel; ruy kernel_avx.cc, apply_multiplier.cc.
"""

from __future__ import annotations

from collections.abc import Callable

from tflq.kernels.conv_2d import reference
from tflq.kernels.conv_2d.reference import prepare_quantized
from tflq.kernels.families.unclaimed import beside_dense, unclaimed_floats
from tflq.kernels.families.vector_blocks import Prepare, gemm, requantizing
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import StageOf


def multiplied(scaling: Callable[[Arithmetic], StageOf]) -> Prepare:
    """A prepare whose sums are scaled by `scaling`, except where there are groups."""
    otherwise = requantizing(prepare_quantized, scaling)

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        is_grouped = node.input(0).shape[-1:] != node.input(1).shape[-1:]
        return (prepare_quantized if is_grouped else otherwise)(node, arithmetic)

    return prepare


KERNELS = (
    *valid(opt(), Kernel("CONV_2D", "int8 int8|int4 int32 -> int8", multiplied(gemm), (1, 8))),
    *valid(opt(), *unclaimed_floats(beside_dense(reference.KERNELS))),
)
