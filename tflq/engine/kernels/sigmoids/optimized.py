"""LOGISTIC and TANH of the optimized resolver. Operands and refusals: tflq/engine/kernels/sigmoids/reference.py.

int16: gemmlowp's fixed-point function if the scale is 2**-12 (TANH: or 2**-11), else the reference's table. float32:
Eigen's arrays from LiteRT 1.0 on; earlier floats, float16 and bfloat16 are not claimed.
int16 in 2.3 truncates scales that are no power of two to whole multiples of 2**-12. Multiples below 1 take gemmlowp's
functions, as the powers of two do; the others take the table. TANH doubles its input if the scale's nearest power of
two is 2**-11, and, below 2**-12, whenever it is not 2**-12. LOGISTIC starts its table again at its end: refused.
Source: LiteRT 2.3 activations.cc SigmoidEval, TanhEval; optimized_ops.h Logistic, Tanh; gemmlowp fixedpoint.h logistic,
tanh. TensorFlow 2.3.4's package for x86-64, by its outputs for 33 scales of 2**-15 to 2**-8, and activations.cc
TanhPrepare, SigmoidPrepare; reference_integer_ops::Logistic, Tanh (int16).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.exactness import EXACT, SAME_LIBM, Exactness
from tflq.engine.kernels.families.unary import same_type
from tflq.engine.kernels.families.unclaimed import UNCLAIMED, unclaimed_floats
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.sigmoids import reference
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics import eigen_activations
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.elementary import logistic_into, tanh_into
from tflq.engine.numerics.scaling import check_log2
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array

#: Integer bits of the input: Q3.12.
INTEGER_BITS = 3


def prepare_logistic_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use the function if the reference's multiplier is 0: the scale is its power of two."""
    prepared = reference.prepare_logistic_int16(node, arithmetic)
    multiplier, _ = prepared.data
    return prepared if multiplier else Prepared(prepared.shapes, None, eval_logistic_q3)


def eval_logistic_q3(data: None, x: Array) -> Array:
    """Source: Logistic (int16). Rounding: gemmlowp's, in every step."""
    out = np.empty(x.shape, np.int16)
    logistic_into(np.ascontiguousarray(x).reshape(-1), INTEGER_BITS, 16, out.reshape(-1))
    return out


def prepare_tanh_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use the function if the reference's multiplier is 0: the scale is one of its powers of two."""
    prepared = reference.prepare_tanh_int16(node, arithmetic)
    multiplier, left_shift = prepared.data
    return prepared if multiplier else Prepared(prepared.shapes, left_shift, eval_tanh_q3)


def eval_tanh_q3(left_shift: int, x: Array) -> Array:
    """Source: Tanh (int16). Rounding: gemmlowp's, in every step. Overflow: a shift of one bit saturates."""
    out = np.empty(x.shape, np.int16)
    shifted = np.clip(x.astype(np.int32) << left_shift, -(2**15), 2**15 - 1).astype(np.int16)
    tanh_into(shifted.reshape(-1), INTEGER_BITS, 16, out.reshape(-1))
    return out


def _row(op: str, function: Callable[[Array], Array], exactness: Exactness) -> Kernel:
    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, _ = same_type(node)
        return Prepared((x.shape,), None, lambda _, x: function(x))

    return Kernel(op, "float32 -> float32", prepare, (1, 3), exactness=exactness)


#: Units of the table in 2**-12.
_UNITS = 3

#: The first element of LOGISTIC's table of 256 steps whose neighbour lies beyond it, in units of the table.
_END = 255 << 9


@dataclass(frozen=True, slots=True, eq=False)
class TableData:
    """Constants of LOGISTIC by table."""

    op: str
    multiplier: int  # LSB of input -> units of the table


def prepare_truncated_logistic(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check like the reference kernel."""
    shapes = reference.prepare_logistic_int16(node, arithmetic).shapes
    x = node.input(0)
    exponent, is_pot = check_log2(x.scale)
    multiple = 0 if is_pot and exponent == -12 else int(float(x.scale) * 4096.0)
    if multiple == 0:
        return Prepared(shapes, None, eval_logistic_q3)
    return Prepared(shapes, TableData(node.op, _UNITS * multiple), eval_truncated_logistic)


def eval_truncated_logistic(data: TableData, x: Array) -> Array:
    """Source: Logistic (int16). Rounding: as in logistic_int16."""
    if x.size and np.abs(x.astype(np.int64)).max() * data.multiplier >= _END:
        raise UndefinedResultError(data.op, "inputs beyond the table wrap around to its start")
    return reference.eval_logistic_int16((data.multiplier, 0), x)


def prepare_truncated_tanh(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check like the reference kernel."""
    shapes = reference.prepare_tanh_int16(node, arithmetic).shapes
    x = node.input(0)
    exponent, is_pot = check_log2(x.scale)
    shift = exponent + 12
    multiple = 0 if is_pot and shift in (0, 1) else int(float(x.scale) * 4096.0)
    if multiple == 0:
        return Prepared(shapes, min(abs(shift), 1), eval_tanh_q3)
    return Prepared(shapes, (_UNITS * multiple << (shift == 1), 0), reference.eval_tanh_int16)


KERNELS = (
    *valid(
        opt(),
        Kernel("LOGISTIC", "int16 -> int16", prepare_logistic_int16, (1, 3)),
        Kernel("TANH", "int16 -> int16", prepare_tanh_int16, (1, 3)),
    ),
    *valid(opt(until="tflite-2.14"), *unclaimed_floats(reference.LOGISTIC), *unclaimed_floats(reference.TANH)),
    *valid(
        opt("litert-1.0"),
        _row("LOGISTIC", eigen_activations.logistic, SAME_LIBM),
        _row("TANH", eigen_activations.tanh, EXACT),
        *(
            replace(row, exactness=UNCLAIMED)
            for row in (*reference.LOGISTIC, *reference.TANH)
            if row.signature.makes(TensorType.FLOAT16, TensorType.BFLOAT16)
        ),
    ),
    *valid(
        opt(until="tf-2.3"),
        Kernel("LOGISTIC", "int16 -> int16", prepare_truncated_logistic, (1, 3)),
        Kernel("TANH", "int16 -> int16", prepare_truncated_tanh, (1, 3)),
    ),
)
