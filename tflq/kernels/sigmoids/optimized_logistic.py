"""LOGISTIC int16: gemmlowp's fixed-point function where the scale is 2**-12, else the reference's table.

Operands, options and refusals: tflq/kernels/sigmoids/logistic.py.
Source: LiteRT 2.3 activations.cc SigmoidEval; optimized_ops.h Logistic (int16); gemmlowp fixedpoint.h logistic.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.unclaimed import unclaimed_floats
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.sigmoids import logistic, tanh
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.elementary import logistic_into

#: Integer bits of the input: Q3.12.
INTEGER_BITS = 3


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The reference's multiplier is 0 where the scale is the power of two that the function takes."""
    prepared = logistic.prepare_int16(node, arithmetic)
    multiplier, _ = prepared.data
    return prepared if multiplier else Prepared(prepared.shapes, None, eval_q3)


def eval_q3(data: None, x: Array) -> Array:
    """Source: Logistic (int16). Rounding: gemmlowp's, in every step."""
    out = np.empty(x.shape, np.int16)
    logistic_into(np.ascontiguousarray(x).reshape(-1), INTEGER_BITS, 16, out.reshape(-1))
    return out


KERNELS = (
    *valid(opt(), Kernel("LOGISTIC", "int16 -> int16", prepare_int16, (1, 3))),
    *valid(opt(until="tflite-2.14"), *unclaimed_floats(logistic.KERNELS)),
    *valid(opt(until="tflite-2.14"), *unclaimed_floats(tanh.KERNELS)),
)
