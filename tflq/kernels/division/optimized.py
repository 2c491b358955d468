"""DIV of int32 in 2.3: quotients go through float32, which is not modelled. Refused."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from tflq.errors import UndefinedResultError
from tflq.ir import TensorType
from tflq.kernels.division import div
from tflq.kernels.kernel import Node, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic


def refuse_div(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator."""
    raise UndefinedResultError(node.op, "int32 quotients of 2.3 go through float32, which is not modelled")


KERNELS = valid(
    opt(until="tf-2.3"),
    *(replace(row, prepare=refuse_div) for row in div.KERNELS if row.signature.starts_with(TensorType.INT32)),
)
