"""Arithmetic of TensorFlow r1.15 that no later release has.

Source: TensorFlow r1.15 lite/kernels/internal/quantization_util.cc IntegerFrExp; lite/kernels/activations.cc LeakyRelu;
lite/kernels/internal/reference/reference_ops.h QuantizeLeakyRelu.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.multiplier import multiply_smaller_than_one, quantize_multiplier_smaller_than_one_exp
from tflq.engine.numerics.rounding import half_away

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


def integer_frexp(x: float) -> tuple[int, int]:
    """Return (fraction Q31, exponent) of a float64 by integer operations alone, for builds without floating point.

    Not quite frexp: ties round down in magnitude, a fraction may round up to 2**31, and a subnormal is given a leading
    one that it does not have. NaN gives (0, INT32_MAX), infinities the int64 limits with INT32_MAX.
    """
    (bits,) = struct.unpack("<Q", struct.pack("<d", x))
    negative, exponent, mantissa = bits >> 63, bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    if bits & ~(1 << 63) == 0:
        return 0, 0
    if exponent == 0x7FF:
        if mantissa >> 22:
            return 0, _INT32_MAX
        return (-_INT64_MAX - 1 if negative else _INT64_MAX), _INT32_MAX
    fraction = (1 << 30) + (mantissa >> 22)
    if mantissa & (1 << 22) - 1 > 1 << 21:
        fraction += 1
    return (-fraction if negative else fraction), exponent - 1023 + 1


@dataclass(frozen=True, slots=True)
class LeakyRelu:
    """uint8 LEAKY_RELU of r1.15. Inputs at the zero point or above are copied, for any output quantization.

    alpha is quantized with the input's own scale and zero point. The kernel keeps its centred value in a function-local
    static: the first LEAKY_RELU evaluated in a process sets it for all later ones. A value of this class is one node;
    the argument `centred_alpha` is the alpha that the process uses.
    """

    input_zero_point: int  # LSB of input
    output_zero_point: int  # LSB of output
    code_of_alpha: int  # LSB of input
    mantissa: int  # Q31
    shift: int  # <= 0

    @classmethod
    def of(
        cls,
        input_scale: np.float32,
        input_zero_point: int,
        output_scale: np.float32,
        output_zero_point: int,
        alpha: np.float32,
    ) -> LeakyRelu:
        """Prepare the node. The real multiplier, scale**2 / output scale in float32, has to be in (0, 1)."""
        ratio = np.float32(alpha) / np.float32(input_scale)
        code = half_away(float(np.float32(input_zero_point) + ratio))
        real = np.float32(input_scale) * np.float32(input_scale) / np.float32(output_scale)
        mantissa, shift = quantize_multiplier_smaller_than_one_exp(float(real))
        return cls(input_zero_point, output_zero_point, min(max(code, 0), 255), mantissa, shift)

    @property
    def centred_alpha(self) -> int:
        """alpha in LSB of input."""
        return self.code_of_alpha - self.input_zero_point

    def __call__(self, x: NDArray[np.uint8], centred_alpha: int | None = None) -> NDArray[np.uint8]:
        """Return the codes of `x`. `centred_alpha` is the process's first one, if another node set it."""
        alpha = self.centred_alpha if centred_alpha is None else centred_alpha
        codes = np.arange(256, dtype=np.uint8)
        for code in range(self.input_zero_point):
            product = (code - self.input_zero_point) * alpha
            scaled = multiply_smaller_than_one(product, self.mantissa, self.shift) + self.output_zero_point
            codes[code] = min(max(int(scaled), 0), 255)
        return codes[x]
