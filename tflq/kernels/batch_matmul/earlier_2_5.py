"""BATCH_MATMUL of int8 to int32 up to 2.5: 8-bit codes fill the first quarter of the output. Refused.

Source: TensorFlow 2.5 lite/kernels/batch_matmul.cc EvalQuantized; the type of the output is not looked at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from tflq.errors import UndefinedResultError
from tflq.ir import TensorType
from tflq.kernels.batch_matmul.earlier import KERNELS as EARLIER
from tflq.kernels.kernel import Node, valid
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def refuse(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator."""
    raise UndefinedResultError(node.op, "int32 outputs are written as 8-bit codes, most of them not at all")


KERNELS = valid(
    tflite(until="tf-2.5"), *(replace(row, prepare=refuse) for row in EARLIER if row.signature.makes(TensorType.INT32))
)
