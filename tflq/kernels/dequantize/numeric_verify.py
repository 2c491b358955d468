"""NumericVerify: how far a quantized tensor is from the floats that it stands for.

| operand   | shape | types                        | quantization                      |
|-----------|-------|------------------------------|-----------------------------------|
| x         | any   | int8, uint8, int16, float16  | as DEQUANTIZE takes it            |
| reference | as x  | float32                      |                                   |
| y         | as x  | float32, whatever is declared |                                  |

Options: tolerance, log_if_failed. With a tolerance of 0.1 or more, in LSB of x, log_if_failed makes a difference beyond
it fail the run.
Source: LiteRT 2.3, numeric_verify.cc; dequantize.h DequantizeImpl.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.dequantize.reference import prepare_dequantize, prepare_widen
from tflq.kernels.families.custom_options import flag, options_of, real
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic

_SMALLEST_TOLERANCE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """How to dequantize, and the largest difference that passes; None where all do."""

    dequantize: Prepared
    largest: np.float32 | None


def prepare_codes(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Integer types."""
    return prepare(node, prepare_dequantize(node, arithmetic))


def prepare_half(node: Node, arithmetic: Arithmetic) -> Prepared:
    """float16, which has no scale: nothing but equality passes where differences are looked at."""
    return prepare(node, prepare_widen(node, arithmetic))


def prepare(node: Node, dequantize: Prepared) -> Prepared:
    """The tolerance becomes a float32 product with the scale."""
    x, reference = node.input(0), node.input(1)
    enough = int(np.prod(reference.shape)) >= int(np.prod(x.shape))
    node.check(enough, "number of elements", reference, expected=x.shape, got=reference.shape)
    options = options_of(node)
    tolerance = np.float32(real(options, "tolerance"))
    watched = flag(options, "log_if_failed") and float(tolerance) >= _SMALLEST_TOLERANCE
    return Prepared((x.shape,), OpData(dequantize, tolerance * x.scale if watched else None), evaluate)


def evaluate(data: OpData, x: Array, reference: Array) -> Array:
    """Source: Eval. Rounding: one float32 difference."""
    y = data.dequantize.eval(data.dequantize.data, x)
    assert isinstance(y, np.ndarray)  # DEQUANTIZE has one output
    difference = np.asarray(y - reference.reshape(-1)[: x.size].reshape(x.shape))
    if data.largest is not None and (abs(difference) > data.largest).any():
        worst = np.nanmax(abs(difference))
        raise ArithmeticError(f"differs by {worst} from the reference, more than {data.largest}")
    return difference


KERNELS = (
    Kernel("NumericVerify", "int8|uint8|int16 float32 -> any", prepare_codes, (1, 1), makes=TensorType.FLOAT32),
    Kernel("NumericVerify", "float16 float32 -> any", prepare_half, (1, 1), makes=TensorType.FLOAT32),
)
