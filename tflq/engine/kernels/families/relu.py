"""Rectifiers as operators of their own: shared by RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1.

Source: LiteRT 2.3, activations.cc ReluPrepare, QuantizedReluX; optimized_ops::ReluX, Relu, Relu1, Relu0To1;
reference_ops::Relu6.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import clamp_in_place, quantized_limit
from tflq.engine.kernels.families.ordered_sums import clamp_std
from tflq.engine.kernels.families.unary import prepare_unary, same_type
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    zero_point: ZeroPoint  # LSB of input
    pipeline: OutputPipeline  # LSB of input -> codes between the limits


def kernels(
    op: str, low: float, high: float | None, types: Iterable[str], versions: tuple[int, int] = (1, 1)
) -> tuple[Kernel, ...]:
    """Return the kernels of a rectifier that holds reals inside [low, high] (None: open)."""

    def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = same_type(node)
        dtype = np.dtype(x.type.label)
        if not y.scale > 0:
            raise UndefinedResultError(node.op, "limits over an output without a positive scale of its own")
        if dtype == np.int16:
            for operand in (x, y):
                node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
        smallest, largest = type_range(dtype)
        floor = max(smallest, quantized_limit(low, y.scale, y.zero_point))
        ceiling = largest if high is None else min(largest, quantized_limit(high, y.scale, y.zero_point))
        stage = arithmetic.requantize(arithmetic.real_of_scales(x.scale, over=y.scale))
        data = OpData(x.zero_point, OutputPipeline(stage, y.zero_point, Clamp(floor, ceiling), dtype))
        return prepare_unary(node, data, eval_quantized, dtype)

    def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, _ = same_type(node)
        limits = np.float32(low), np.float32(np.inf if high is None else high)
        return Prepared((x.shape,), limits, eval_float)

    quantized = (Kernel(op, f"{t} -> {t}", prepare_quantized, versions) for t in types)
    return (Kernel(op, "float32 -> float32", prepare_float, versions), *quantized)


def eval_quantized(data: OpData, x: Array) -> Array:
    """Source: ReluX. Rounding: once, by the stage. Overflow: none."""
    return data.pipeline(x.astype(np.int32) - np.int32(data.zero_point))


@filling(lambda limits, x: (x.shape, x.dtype), once=lambda limits, x: clamp_in_place(np.array(x), *limits))
def eval_float(limits: tuple[np.float32, np.float32], out: Array, x: Array) -> Call:
    """Source: Relu, Relu1, Relu6, Relu0To1. Rounding: none. NaN stays."""
    return _clamp_into.bound(np.asarray(x, order="C").reshape(-1), *limits, out.reshape(-1))


@in_pieces(x="r", out="r")
@compiled
def _clamp_into(x: Array, low: Real, high: Real, out: Array) -> None:
    """Eval guarantees: `x` and `out` have the same size."""
    for i in range(out.size):
        out[i] = clamp_std(x[i], low, high)
