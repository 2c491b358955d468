"""TANH int16: gemmlowp's fixed-point function where the scale is 2**-12 or 2**-11, else the reference's table.

Operands, options and refusals: tflq/kernels/sigmoids/tanh.py.
Source: LiteRT 2.3 activations.cc TanhEval; optimized_ops.h Tanh (int16); gemmlowp fixedpoint.h tanh.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.sigmoids import tanh
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.elementary import tanh_into

#: Integer bits of the input: Q3.12.
INTEGER_BITS = 3


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The reference's multiplier is 0 where the scale is a power of two that the function takes."""
    prepared = tanh.prepare_int16(node, arithmetic)
    multiplier, left_shift = prepared.data
    return prepared if multiplier else Prepared(prepared.shapes, left_shift, eval_q3)


def eval_q3(left_shift: int, x: Array) -> Array:
    """Source: Tanh (int16). Rounding: gemmlowp's, in every step. Overflow: a shift of one bit saturates."""
    out = np.empty(x.shape, np.int16)
    shifted = np.clip(x.astype(np.int32) << left_shift, -(2**15), 2**15 - 1).astype(np.int16)
    tanh_into(shifted.reshape(-1), INTEGER_BITS, 16, out.reshape(-1))
    return out


KERNELS = valid(opt(), Kernel("TANH", "int16 -> int16", prepare_int16, (1, 3)))
