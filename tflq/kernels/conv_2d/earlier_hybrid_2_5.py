"""CONV_2D, hybrid, up to 2.5: floats with 8-bit filters are not modelled. Refused.

2.5.3 was seen to give results that have nothing in common with those of later releases.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from tflq.errors import UndefinedResultError
from tflq.kernels.conv_2d.reference_hybrid import KERNELS as REFERENCE
from tflq.kernels.kernel import Node, valid
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def refuse(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator."""
    raise UndefinedResultError(node.op, "float activations with 8-bit filters are not modelled up to release 2.5")


KERNELS = valid(tflite(until="tf-2.5"), *(replace(row, prepare=refuse) for row in REFERENCE))
