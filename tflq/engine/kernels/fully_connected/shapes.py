"""Shapes and multipliers of FULLY_CONNECTED, checked. Operands: tflq/engine/kernels/fully_connected/reference.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.families.activation import LIMITS
from tflq.engine.kernels.families.contraction import float64_multipliers, per_tensor_multiplier
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import Reals
from tflq.model.ir import TensorType

#: FullyConnectedOptionsWeightsFormat of the schema.
PLAIN, SHUFFLED = 0, 1
#: The version of sparse weights, which XNNPACK never takes. Source: LiteRT 2.3 VisitNode.
SPARSE_VERSION = 8


def output_shape(node: Node, weights_format: int = PLAIN) -> Shape:
    """Return the shape of the output, checked against weights, their format and bias."""
    said = int(node.options.get("weights_format", PLAIN))
    node.check(said == weights_format, "weights format (1: shuffled)", expected=weights_format, got=said)
    x, w, bias = node.input(0), node.input(1), node.optional(2)
    _check_activation(node, x, w)
    node.check(len(w.shape) == 2, "rank", w, expected=2, got=len(w.shape))
    units, length = w.shape
    keep = bool(node.options.get("keep_num_dims", 0))
    elements = int(np.prod(x.shape, dtype=np.int64))
    if bias is not None:
        size = int(np.prod(bias.shape))
        node.check(size == units, "bias length", bias, expected=units, got=size)
    if keep:
        node.check(len(x.shape) > 0 and x.shape[-1] == length, "last dimension", x, expected=length, got=x.shape)
        return (*x.shape[:-1], units)
    if length == 0:
        return int(np.prod(x.shape[:-1], dtype=np.int64)), units
    return elements // length, units  # elements beyond the last whole row are never read


def of_whole_rows(row: Kernel) -> Kernel:
    """Return the row of XNNPACK, which fails to prepare an input with elements beyond the last whole row.

    Observed in LiteRT 1.4, 2.1 and 2.3; TensorFlow Lite up to 2.14 and LiteRT 1.0 drop those elements. Source: XNNPACK
    subgraph/fully-connected.c reshape_fully_connected_operator.
    """

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, length = node.input(0), node.input(1).shape[-1]
        elements = int(np.prod(x.shape, dtype=np.int64))
        if length and elements % length:
            node.reject("XNNPACK asks for whole rows", x, expected=f"a multiple of {length} elements", got=elements)
        return row.prepare(node, arithmetic)

    return replace(row, prepare=prepare)


def _check_activation(node: Node, x: Operand, w: Operand) -> None:
    """Refuse fused activations that are no clamp, except with narrow weights of floats. Source: PrepareImpl."""
    if x.type == TensorType.FLOAT32 and w.type != TensorType.FLOAT32:
        return
    function = int(node.options.get("fused_activation_function", 0))
    if function not in LIMITS:
        node.refuse("fused activation function", expected="NONE, RELU, RELU_N1_TO_1 or RELU6", got=function)


def fixed_point_reals(
    node: Node, arithmetic: Arithmetic, operands: tuple[Operand, Operand, Operand], bias: Operand | None
) -> Reals:
    """Return the reals of prepare's multipliers, one a unit, for x, w and y; few forms use them, all check them."""
    x, w, y = operands
    units = w.shape[0]
    assert w.quantization is not None  # require_quantized saw to it
    if len(w.quantization.scale) <= 1:
        return np.full(units, per_tensor_multiplier(node, arithmetic, x, w, bias, y))
    node.check(x.type != TensorType.UINT8, "uint8 activations with per-unit weight scales", w)
    dimension, count = w.quantization.quantized_dimension, len(w.quantization.scale)
    node.check(dimension == 0, "quantized dimension", w, expected=0, got=dimension)
    node.check(count == units, "number of weight scales", w, expected=units, got=count)
    return float64_multipliers(x, w.quantization.scale, y, units)
