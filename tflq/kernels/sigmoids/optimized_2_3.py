"""LOGISTIC and TANH int16 in 2.3: scales that are no power of two are cut off to whole multiples of 2**-12.

Multiples below 1 take gemmlowp's functions, as the powers of two do; the others the published table. TANH doubles its
input where the scale's nearest power of two is 2**-11, and, below 2**-12, whenever it is not 2**-12. LOGISTIC begins
its table anew where it ends, which is refused.
Operands, options and other refusals: tflq/kernels/sigmoids/logistic.py, tanh.py.
Source: TensorFlow 2.3.4's package for x86-64, by its outputs for 33 scales of 2**-15 to 2**-8, and activations.cc
TanhPrepare, SigmoidPrepare; reference_integer_ops::Logistic, Tanh (int16).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.sigmoids import logistic, tanh
from tflq.kernels.sigmoids.optimized_logistic import eval_q3 as logistic_q3
from tflq.kernels.sigmoids.optimized_tanh import eval_q3 as tanh_q3
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.scaling import checked_log2

#: What the table's units are: this many to 2**-12.
_UNITS = 3
#: The first element of LOGISTIC's table of 256 steps whose neighbour lies beyond it, in units of the table.
_END = 255 << 9


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of LOGISTIC by table."""

    op: str
    multiplier: int  # LSB of input -> units of the table


def prepare_logistic(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Checks are the reference's."""
    shapes = logistic.prepare_int16(node, arithmetic).shapes
    x = node.input(0)
    exponent, is_pot = checked_log2(x.scale)
    multiple = 0 if is_pot and exponent == -12 else int(float(x.scale) * 4096.0)
    if multiple == 0:
        return Prepared(shapes, None, logistic_q3)
    return Prepared(shapes, OpData(node.op, _UNITS * multiple), eval_logistic)


def eval_logistic(data: OpData, x: Array) -> Array:
    """Source: Logistic (int16). Rounding: as in logistic_int16."""
    if x.size and np.abs(x.astype(np.int64)).max() * data.multiplier >= _END:
        raise UndefinedResultError(data.op, "inputs beyond the table begin it anew")
    return logistic.eval_int16((data.multiplier, 0), x)


def prepare_tanh(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Checks are the reference's."""
    shapes = tanh.prepare_int16(node, arithmetic).shapes
    x = node.input(0)
    exponent, is_pot = checked_log2(x.scale)
    shift = exponent + 12
    multiple = 0 if is_pot and shift in (0, 1) else int(float(x.scale) * 4096.0)
    if multiple == 0:
        return Prepared(shapes, min(abs(shift), 1), tanh_q3)
    return Prepared(shapes, (_UNITS * multiple << (shift == 1), 0), tanh.eval_int16)


KERNELS = valid(
    opt(until="tf-2.3"),
    Kernel("LOGISTIC", "int16 -> int16", prepare_logistic, (1, 3)),
    Kernel("TANH", "int16 -> int16", prepare_tanh, (1, 3)),
)
