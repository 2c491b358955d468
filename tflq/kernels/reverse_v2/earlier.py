"""REVERSE_V2: of several axes only the first is turned around.

Operands: tflq/kernels/reverse_v2/reference.py.
Source: TensorFlow 2.14 lite/kernels/reverse.cc Eval.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.kernel import Node, Prepared, valid
from tflq.kernels.operands import axis_within, integers, require_rank, require_same_type
from tflq.kernels.reverse_v2.reference import KERNELS as REFERENCE
from tflq.kernels.reverse_v2.reference import eval_reverse
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the first axis only; the release ignores further ones."""
    x, operand = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    require_rank(node, operand, 1)
    require_rank(node, x, 1, 8)
    axes = integers(node, 1)
    node.check(len(axes) > 0, "number of axes", operand, expected="at least 1", got=0)
    return Prepared((x.shape,), (axis_within(node, axes[0], len(x.shape)),), eval_reverse)


KERNELS = valid(tflite(until="tflite-2.14"), *(replace(row, prepare=prepare) for row in REFERENCE))
