"""PAD, PADV2 up to 2.13: paddings are read as 32-bit integers, whatever their type is.

Operands and other refusals: tflq/kernels/pad/pad.py.
Source: TensorFlow 2.13 lite/kernels/pad.cc ResizeOutputTensor, Eval.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.ir import TensorType
from tflq.kernels.kernel import Node, Prepared, valid
from tflq.kernels.pad import pad
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """64-bit paddings give the lower and upper halves of their first half; narrower ones end too soon. Refused."""
    paddings = node.input(1)
    if paddings.type == TensorType.INT32:
        return pad.prepare(node, arithmetic)
    if paddings.type != TensorType.INT64:
        raise UndefinedResultError(node.op, f"paddings of {paddings.type.label} are read as int32, beyond their end")
    halves = np.ascontiguousarray(node.constant(1)).view(np.int32).reshape(-1)[: paddings.shape[0] * 2]
    read = replace(paddings, type=TensorType.INT32, value=halves.reshape(paddings.shape))
    return pad.prepare(replace(node, inputs=(node.inputs[0], read, *node.inputs[2:])), arithmetic)


KERNELS = valid(tflite(until="tflite-2.13"), *(replace(row, prepare=prepare) for row in pad.KERNELS))
