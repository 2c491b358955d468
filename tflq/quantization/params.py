"""Convert a range of real values to the scale and zero point of codes, and values to codes and back.

Source: TFLite 8-bit quantization specification; LiteRT 2.3 tflite/kernels/internal/quantization_util.h
ChooseQuantizationParams; tflite/converter/tools/optimize/quantization_utils.cc (narrow range of signed weights).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.checks import code_limits
from tflq.engine.numerics.codes import affine_codes
from tflq.engine.numerics.estimates import in_bfloat16
from tflq.errors import ModelError
from tflq.model.ir import CARRIER, Quantization, Record, TensorSpec, TensorType
from tflq.typing import Array

#: Types of quantized activations.
ACTIVATION_TYPES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)

#: Scale of values that are all zero. Any scale below 1 is safe: the comparison kernels abort at greater ones.
EMPTY_SCALE = np.float32(2.0**-8)
#: Values that spread by less than this share of their magnitude differ by rounding in float32 alone.
ROUNDING = 2.0**-21
#: The smallest scale in use: half of float32's exponents, so that the product of two stays a normal number.
SMALLEST_SCALE = np.float32(2.0**-62)


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """Least and greatest real value, float64[C]; C = 1 for a whole tensor, otherwise one per channel."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @staticmethod
    def of(low: float | Array, high: float | Array) -> Range:
        """Return a range of plain numbers or arrays."""
        return Range(np.atleast_1d(np.asarray(low, np.float64)), np.atleast_1d(np.asarray(high, np.float64)))


@dataclass(frozen=True, slots=True, eq=False)
class Params:
    """The mapping from codes to values: value = scale * (code - zero_point). C scales lie along dimension `axis`.

    `narrow` leaves the type's least code unused, so that codes are symmetric. If `block` is set, that many neighbours
    along the last dimension share a scale: scales are those of all blocks in order, zero points are 0.
    If `stride` exceeds 1, codes of constants are `residue` plus its multiples, and zero points are 0.
    """

    type: TensorType
    scale: NDArray[np.float32]
    zero_point: NDArray[np.int64]
    axis: int = 0
    narrow: bool = False
    block: int = 0
    stride: int = 1
    residue: int = 0

    @staticmethod
    def of(type_: TensorType, scale: float | np.float32, zero_point: int = 0) -> Params:
        """Return the parameters of a whole tensor."""
        return Params(type_, np.array([scale], np.float32), np.array([zero_point], np.int64))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Params) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> tuple[int, bytes, bytes, int, int]:
        """Everything by which two parameters are compared."""
        return (
            int(self.type),
            self.scale.tobytes(),
            self.zero_point.tobytes(),
            self.axis if self.scale.size > 1 else 0,
            self.block,
        )

    @property
    def quantization(self) -> Quantization:
        """The parameters as a file holds them; without block scales, which are in a tensor of their own."""
        if self.block:
            return Quantization(np.zeros(0, np.float32), np.zeros(0, np.int64))
        return Quantization(self.scale, self.zero_point, self.axis if self.scale.size > 1 else 0)

    def encode(self, values: Array) -> Array:
        """Return the codes of float constants: half_to_even(value / scale) plus zero point, saturated to the type.

        Quotients are float64. A float model's QUANTIZE divides in float32 and rounds halves away from zero: constants
        need not repeat that, since their codes are stored.
        """
        low, high = self.limits
        scale, zero_point = self._along(values.shape)
        steps = (np.asarray(values, np.float64) / scale - self.residue) / self.stride
        codes = half_to_even(steps) * self.stride + self.residue + zero_point
        saturated: Array = np.clip(codes, low, high).astype(CARRIER[self.type])
        return saturated

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest code that may be used."""
        low, high = code_limits(self.type)
        low += self.narrow
        return low + (self.residue - low) % self.stride, high - (high - self.residue) % self.stride

    def decode(self, codes: Array) -> NDArray[np.float32]:
        """Return the values of codes: scale * (code - zero_point) in float32, as DEQUANTIZE computes it."""
        scale, zero_point = self._along(codes.shape)
        return np.asarray(scale * (codes.astype(np.int64) - zero_point).astype(np.float32), np.float32)

    def _along(self, against: tuple[int, ...]) -> tuple[Array, Array]:
        """Return scale and zero point in shapes that broadcast with an array of that shape."""
        if self.block:
            return np.repeat(self.scale, self.block).reshape(against), self.zero_point[0]
        if self.scale.size == 1:
            return self.scale[0], self.zero_point[0]
        shape = tuple(-1 if d == self.axis else 1 for d in range(len(against)))
        return self.scale.reshape(shape), self.zero_point.reshape(shape)


def half_to_even(quotients: Array) -> NDArray[np.float64]:
    """Round to the nearest integer, halves to the even one."""
    return np.asarray(np.rint(quotients), np.float64)


def real(spec: TensorSpec, codes: Array) -> NDArray[np.float64]:
    """Return the real numbers of a tensor's codes, scale * (code - zero point) in float64.

    Values of a tensor without quantization are returned unchanged.
    """
    q = spec.quantization
    if q is None or not len(q.scale) or codes.dtype.kind not in "iu":
        return codes.astype(np.float64)
    if len(q.scale) == 1:
        return (codes.astype(np.float64) - float(q.zero_point[0])) * float(q.scale[0])
    if not 0 <= q.quantized_dimension < codes.ndim or codes.shape[q.quantized_dimension] != len(q.scale):
        raise ModelError("scales do not fit the shape", tensor=spec.name or "", expected=len(q.scale), got=codes.shape)
    shape = [-1 if d == q.quantized_dimension else 1 for d in range(codes.ndim)]
    return np.asarray((codes - q.zero_point.reshape(shape)) * q.scale.astype(np.float64).reshape(shape), np.float64)


def codes_of(spec: TensorSpec, values: Array) -> Array:
    """Return the codes for values that a caller passes to a quantized input; see `affine_codes`.

    Values for a tensor without quantization are returned unchanged.
    """
    q = spec.quantization
    if q is None or not len(q.scale) or spec.type not in ACTIVATION_TYPES or values.dtype.kind != "f":
        return values
    type_ = TensorType(spec.type)
    return affine_codes(values, q.scale[0], q.zero_point[0], code_limits(type_)).astype(CARRIER[type_])


def asymmetric(span: Range, type_: TensorType) -> Params:
    """Return parameters whose codes span the range, widened to hold 0, which gets a code of its own.

    int16 activations have zero point 0, so their range is widened to be symmetric.
    """
    if type_ == TensorType.INT16:
        return symmetric(span, type_)
    low, high = np.minimum(span.low, 0.0), np.maximum(span.high, 0.0)
    least, greatest = code_limits(type_)
    scale = usable((high - low) / (greatest - least))
    zero_point = np.clip(np.rint(least - low / scale.astype(np.float64)), least, greatest)
    return Params(type_, scale, zero_point.astype(np.int64))


def symmetric(span: Range, type_: TensorType, axis: int = 0) -> Params:
    """Return parameters with zero point 0: the greatest magnitude gets the greatest code, the least code is unused."""
    reach = np.maximum(np.abs(span.low), np.abs(span.high))
    scale = usable(reach / code_limits(type_)[1])
    return Params(type_, scale, np.zeros(scale.size, np.int64), axis, narrow=True)


def usable(scale: NDArray[np.float64]) -> NDArray[np.float32]:
    """Round scales to float32; the scale of all-zero values becomes EMPTY_SCALE, tiny ones SMALLEST_SCALE."""
    narrow = np.maximum(scale, float(SMALLEST_SCALE)).astype(np.float32)
    return np.where(scale > 0, narrow, EMPTY_SCALE)


#: The least scale of a block: float16 keeps all eight bits of mantissa, as bfloat16 has, of any number above it.
_LEAST_OF_BLOCK = 2.0**-17


def usable_of_blocks(scale: NDArray[np.float64]) -> NDArray[np.float32]:
    """Round scales of blocks, exact in float16, in which files hold them, and in bfloat16, which XNNPACK reads."""
    return in_bfloat16(np.maximum(scale, _LEAST_OF_BLOCK).astype(np.float32))


def with_block_scales(params: Params, scales: int) -> Quantization:
    """Return the entry of weights in blocks, whose scales are in the tensor `scales`."""
    fields = {"scales": scales, "zero_points": -1, "block_size": params.block}
    return replace(params.quantization, details=Record("BlockwiseQuantization", MappingProxyType(fields)))


def extent(values: Array, axis: int | None = None) -> Range:
    """Return the range of an array's values, or one per index along `axis`; 0 to 0 if there are no elements."""
    if not values.size:
        count = 1 if axis is None else values.shape[axis]
        return Range(np.zeros(count), np.zeros(count))
    others = None if axis is None else tuple(d for d in range(values.ndim) if d != axis % values.ndim)
    return Range.of(values.min(axis=others), values.max(axis=others))


def hull(ranges: Iterable[Range]) -> Range:
    """Return the smallest range that contains all of these."""
    ranges = tuple(ranges)
    return Range(np.min([r.low for r in ranges], axis=0), np.max([r.high for r in ranges], axis=0))
