"""Checks of TensorFlow Lite Micro's Prepare beyond LiteRT's, and those of LiteRT that it lacks.

Source: tflite-micro (August 2026) kernels/: pooling_common.cc, broadcast_to.cc, strided_slice_common.cc,
transpose_common.cc, softmax_common.cc, lstm_eval.cc ValidateTensors, conv_common.cc; each was asked of the package of
23 October 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tflq.engine.kernels.kernel import Node, Operand
from tflq.engine.kernels.tables.micro_forms import (
    BIASED,
    CONSTANT,
    LSTM_ABSENT,
    LSTM_OPERANDS,
    LSTM_PRESENT,
    MOVED,
    RANK,
)
from tflq.model.ir import Quantization, TensorType


def check_constants(node: Node) -> None:
    """Refuse computed operands that have to be constant, and too many dimensions."""
    for position in CONSTANT.get(node.op, ()):
        operand = node.optional(position)
        if operand is not None and not operand.is_constant:
            node.reject("tflite-micro asks for a constant", operand, expected="a constant", got="a computed tensor")
    highest = RANK.get(node.op)
    if highest is not None and len(node.input(0).shape) > highest:
        node.reject("dimensions", node.input(0), expected=f"at most {highest}", got=len(node.input(0).shape))


def _broadcast(node: Node) -> None:
    """Refuse more dimensions of the output than the input may have."""
    count = int(np.prod(node.input(1).shape))
    if count > RANK["BROADCAST_TO"]:
        node.reject("dimensions", node.outputs[0], expected=f"at most {RANK['BROADCAST_TO']}", got=count)


def _pool(node: Node) -> None:
    """Refuse codes whose scales or zero points differ."""
    x, y = node.input(0), node.outputs[0]
    if x.type == TensorType.FLOAT32:
        return
    if not abs(float(x.scale) - float(y.scale)) <= 1e-6:
        node.reject("scale", y, expected=float(x.scale), got=float(y.scale))
    if x.zero_point != y.zero_point:
        node.reject("zero point", y, expected=int(x.zero_point), got=int(y.zero_point))


def _softmax(node: Node) -> None:
    """Refuse 16-bit results of 8-bit data unless their zero point is the lowest code."""
    x, y = node.input(0), node.outputs[0]
    if x.type == TensorType.INT8 and y.type == TensorType.INT16 and y.zero_point != -(2**15):
        node.reject("zero point", y, expected=-(2**15), got=int(y.zero_point))


def _product(node: Node) -> None:
    """Refuse a zero point other than 0 in 16-bit operands or their result, but nothing where the result is uint8."""
    if node.input(0).type != TensorType.INT16 or node.outputs[0].type == TensorType.UINT8:
        return
    for operand in (node.input(0), node.input(1), node.outputs[0]):
        if operand.zero_point:
            node.reject("zero point", operand, expected=0, got=int(operand.zero_point))


def _strided_slice(node: Node) -> None:
    """Refuse fewer entries than dimensions, new axes and an ellipsis."""
    x, begin = node.input(0), node.input(1)
    if begin.shape != (len(x.shape),):
        node.reject("shape", begin, expected=[len(x.shape)], got=list(begin.shape))
    for mask in ("new_axis_mask", "ellipsis_mask"):
        if int(node.options[mask]):
            node.reject(mask, x, expected=0, got=int(node.options[mask]))


def _dense(node: Node) -> None:
    """Refuse 4-bit weights with a scale for each unit."""
    w = node.input(1)
    if w.type == TensorType.INT4 and w.quantization is not None and len(w.quantization.scale) > 1:
        node.reject("number of scales", w, expected=1, got=len(w.quantization.scale))


def _depthwise(node: Node) -> None:
    """Refuse 16-bit results with a zero point, which are not modelled."""
    y = node.outputs[0]
    if y.type == TensorType.INT16 and y.zero_point:
        node.reject("16-bit results with a zero point are not modelled", y, expected=0, got=int(y.zero_point))


def _transpose(node: Node) -> None:
    """Refuse dimensions that are counted from the back."""
    if int(np.min(node.constant(1), initial=0)) < 0:
        node.reject("permutation", node.input(1), expected="no negative entry", got=node.constant(1).tolist())


def _lstm(node: Node) -> None:
    """Refuse other numbers of operands, coupled gates, peepholes, projections and normalized layers."""
    first = node.input(0)
    if len(node.inputs) != LSTM_OPERANDS:
        node.reject("number of inputs", first, expected=LSTM_OPERANDS, got=len(node.inputs))
    for positions, is_there in ((LSTM_PRESENT, True), (LSTM_ABSENT, False)):
        for position in positions:
            if (node.optional(position) is not None) != is_there:
                words = "present", "absent"
                node.reject(f"input {position}", first, expected=words[not is_there], got=words[is_there])


#: Operator -> what else it refuses.
CHECKS: Mapping[str, tuple[Callable[[Node], None], ...]] = {
    "AVERAGE_POOL_2D": (_pool,),
    "BROADCAST_TO": (_broadcast,),
    "DEPTHWISE_CONV_2D": (_depthwise,),
    "FULLY_CONNECTED": (_dense,),
    "MAX_POOL_2D": (_pool,),
    "MUL": (_product,),
    "SOFTMAX": (_softmax,),
    "STRIDED_SLICE": (_strided_slice,),
    "TRANSPOSE": (_transpose,),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (_lstm,),
}


def without_checks(node: Node) -> Node:
    """Return the node with the scales and zero points that LiteRT's kernels ask for and these do not look at."""
    if node.op in MOVED:
        first = node.input(0).quantization
        inputs = tuple(None if one is None else replace(one, quantization=first) for one in node.inputs)
        return replace(node, inputs=inputs, outputs=tuple(replace(y, quantization=first) for y in node.outputs))
    if node.op == "L2_NORMALIZATION":
        return replace(node, outputs=tuple(map(_as_unit, node.outputs)))
    if node.op in BIASED:
        inputs = tuple(
            _without_zero_point(one) if one is not None and (position == BIASED[node.op] or _is_wide(one)) else one
            for position, one in enumerate(node.inputs)
        )
        outputs = tuple(_without_zero_point(y) if _is_wide(y) else y for y in node.outputs)
        return replace(node, inputs=inputs, outputs=outputs)
    return node


def _as_unit(operand: Operand) -> Operand:
    """Return a result of L2_NORMALIZATION as its kernel scales it."""
    unit = Quantization(np.array([1 / 128], np.float32), np.zeros(1, np.int64))
    return replace(operand, quantization=unit) if operand.type == TensorType.INT8 else operand


def _is_wide(operand: Operand) -> bool:
    return operand.type == TensorType.INT16


def _without_zero_point(operand: Operand) -> Operand:
    q = operand.quantization
    return operand if q is None else replace(operand, quantization=replace(q, zero_point=np.zeros_like(q.zero_point)))
