"""RANDOM_STANDARD_NORMAL of 2.7: numbers of another generator, which is not modelled. Refused.

Source: TensorFlow 2.7 lite/kernels/random_standard_normal.cc.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from tflq.errors import UndefinedResultError
from tflq.kernels.kernel import Node, valid
from tflq.kernels.random_numbers.random_standard_normal import KERNELS as REFERENCE
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def refuse(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator: its random generator is not modelled."""
    raise UndefinedResultError(node.op, "the generator of 2.7 is not modelled")


KERNELS = valid(tflite(until="tflite-2.7"), *(replace(row, prepare=refuse) for row in REFERENCE))
