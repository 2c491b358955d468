"""FAKE_QUANT: reals held to the values that a quantized tensor could have.

| operand | shape | types   | quantization |
|---------|-------|---------|--------------|
| x       | any   | float32 | not looked at |
| y       | as x  | float32 | not looked at |

Options: min, max, num_bits; narrow_range is refused. The range is moved so that 0 is one of the values.
Source: LiteRT 2.3, fake_quant.cc; reference_ops.h FakeQuant; quantization_util.cc FakeQuantizeArray.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.rounding import nearest_half_away
from tflq.engine.numerics.scaling import nudge_quantization_range
from tflq.errors import UndefinedResultError
from tflq.typing import Array

_LARGEST_BITS = 31


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants, float32."""

    clamp: NumberClamp
    scale: np.float32
    inverse: np.float32


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute all constants in float32."""
    bits = int(node.options["num_bits"])
    node.check(not node.options["narrow_range"], "narrow_range is not supported")
    node.check(0 < bits <= _LARGEST_BITS, "num_bits", expected=f"1 to {_LARGEST_BITS}", got=bits)
    low, high = np.float32(node.options["min"]), np.float32(node.options["max"])
    if not low < high:
        raise UndefinedResultError(node.op, f"a range from {low} to {high}")
    low, high, scale = nudge_quantization_range(low, high, 0, 2**bits - 1)
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / scale
    return Prepared((node.input(0).shape,), OpData(NumberClamp(low, high), scale, inverse), evaluate)


def evaluate(data: OpData, x: Array) -> Array:
    """Source: FakeQuantizeArray. Rounding: half away from zero; every step in float32. NaN gives the low end."""
    low, high = data.clamp
    clamped = np.where(low < x, x, low)
    clamped = np.where(clamped < high, clamped, high)
    return np.asarray(nearest_half_away((clamped - low) * data.inverse) * data.scale + low)


KERNELS = (Kernel("FAKE_QUANT", "float32 -> float32", prepare, (1, 2)),)
