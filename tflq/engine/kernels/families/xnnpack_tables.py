"""Operators of 8-bit codes that XNNPACK computes by tables of 256 codes: the float function of each code, rounded once.

Rounding: half to even, after a product with the reciprocal of the output's scale and a sum with its zero point.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK unary-elementwise-nc.c init_lut_op_with_config,
reference/unary-elementwise.cc unary_ukernel_quantized, reference-utils.h quantize.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized
from tflq.engine.kernels.families.unary import eval_table_8bit, same_type
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range
from tflq.typing import Array


def takes(node: Node) -> bool:
    """Return whether each operand has one scale."""
    x = node.input(0)
    return is_quantized(x) and is_quantized(node.outputs[0]) and has_shape(x)


def tabulated(op: str, types: tuple[str, ...], function: Callable[[Array], Array]) -> tuple[Kernel, ...]:
    """Return the rows of an operator of 8 bits; `function` maps float32 to float32, element by element."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = same_type(node)
        codes = np.arange(256, dtype=np.uint8).view(x.type.label)
        with np.errstate(all="ignore"):
            reals = function((codes.astype(np.float32) - np.float32(x.zero_point)) * x.scale)
            scaled = np.rint(reals * (np.float32(1) / y.scale) + np.float32(y.zero_point))
        table = np.clip(np.where(np.isnan(scaled), 0, scaled), *type_range(codes.dtype)).astype(codes.dtype)
        return Prepared((x.shape,), table, eval_table_8bit)

    return tuple(delegate(Kernel(op, f"{each} -> {each}", prepare, (1, 3)), takes) for each in types)


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)) of float32 by float64. Source: SigmoidOp."""
    power = np.exp(np.clip(x, -100, 100).astype(np.float64))
    return np.asarray(np.where(x < -100, 0, np.where(x > 100, 1, power / (1 + power))), np.float32)
