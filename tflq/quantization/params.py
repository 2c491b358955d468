"""From a range of real values to the scale and zero point of codes, and between values and codes.

Source: TFLite 8-bit quantization specification; LiteRT 2.3 tflite/kernels/internal/quantization_util.h
ChooseQuantizationParams; tflite/converter/tools/optimize/quantization_utils.cc (narrow range of signed weights).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.ir import CARRIER, Quantization, TensorType

Array = NDArray[Any]

#: Scale of values that are all zero. Any below 1 would do: the kernels of comparisons abort at greater ones.
EMPTY_SCALE = np.float32(2.0**-8)
#: The smallest scale that is given out: half of float32's exponents, so that products of two stay normal numbers.
SMALLEST_SCALE = np.float32(2.0**-62)


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """Least and greatest real value, float64[C]; C = 1 for a whole tensor, or one a channel."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @staticmethod
    def of(low: float | Array, high: float | Array) -> Range:
        """A range from plain numbers or arrays."""
        return Range(np.atleast_1d(np.asarray(low, np.float64)), np.atleast_1d(np.asarray(high, np.float64)))


@dataclass(frozen=True, slots=True, eq=False)
class Params:
    """How codes stand for values: value = scale * (code - zero_point). C scales lie along dimension `axis`.

    `narrow` leaves the type's least code unused, so that codes are symmetric.
    """

    type: TensorType
    scale: NDArray[np.float32]
    zero_point: NDArray[np.int64]
    axis: int = 0
    narrow: bool = False

    @staticmethod
    def of(type_: TensorType, scale: float | np.float32, zero_point: int = 0) -> Params:
        """Parameters of a whole tensor."""
        return Params(type_, np.array([scale], np.float32), np.array([zero_point], np.int64))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Params) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> tuple[int, bytes, bytes, int]:
        """What tells two of them apart."""
        return int(self.type), self.scale.tobytes(), self.zero_point.tobytes(), self.axis if self.scale.size > 1 else 0

    @property
    def quantization(self) -> Quantization:
        """As a file holds them."""
        return Quantization(self.scale, self.zero_point, self.axis if self.scale.size > 1 else 0)

    def encode(self, values: Array) -> Array:
        """Codes of float values: round(value / scale), halves to even, plus zero point, saturated to the type.

        Quotients are float64. A float model's QUANTIZE divides in float32 and rounds halves away from zero: constants
        need not repeat that, since their codes are stored.
        """
        low, high = limits(self.type)
        scale, zero_point = self._along(values.ndim)
        codes = np.rint(np.asarray(values, np.float64) / scale) + zero_point
        narrowed: Array = np.clip(codes, low + self.narrow, high).astype(CARRIER[self.type])
        return narrowed

    def decode(self, codes: Array) -> NDArray[np.float32]:
        """The values that codes stand for, as DEQUANTIZE computes them: scale * (code - zero_point) in float32."""
        scale, zero_point = self._along(codes.ndim)
        return np.asarray(scale * (codes.astype(np.int64) - zero_point).astype(np.float32), np.float32)

    def _along(self, dimensions: int) -> tuple[Array, Array]:
        """Scale and zero point, shaped to meet an array of so many dimensions."""
        if self.scale.size == 1:
            return self.scale[0], self.zero_point[0]
        shape = tuple(-1 if d == self.axis else 1 for d in range(dimensions))
        return self.scale.reshape(shape), self.zero_point.reshape(shape)


def limits(type_: TensorType) -> tuple[int, int]:
    """Least and greatest code of an integer type."""
    info = np.iinfo(type_.label)
    return int(info.min), int(info.max)


def asymmetric(wanted: Range, type_: TensorType) -> Params:
    """Parameters under which the codes span the range, which is widened to hold 0, and 0 has a code of its own.

    int16 activations have zero point 0, so their range is widened to be symmetric.
    """
    if type_ == TensorType.INT16:
        return symmetric(wanted, type_)
    low, high = np.minimum(wanted.low, 0.0), np.maximum(wanted.high, 0.0)
    least, greatest = limits(type_)
    scale = usable((high - low) / (greatest - least))
    zero_point = np.clip(np.rint(least - low / scale.astype(np.float64)), least, greatest)
    return Params(type_, scale, zero_point.astype(np.int64))


def symmetric(wanted: Range, type_: TensorType, axis: int = 0) -> Params:
    """Parameters with zero point 0; the greatest magnitude has the greatest code, and the least code is not used."""
    reach = np.maximum(np.abs(wanted.low), np.abs(wanted.high))
    scale = usable(reach / limits(type_)[1])
    return Params(type_, scale, np.zeros(scale.size, np.int64), axis, narrow=True)


def usable(scale: NDArray[np.float64]) -> NDArray[np.float32]:
    """Scales as float32: those of values that are all zero become EMPTY_SCALE, tiny ones the smallest given out."""
    narrow = np.maximum(scale, float(SMALLEST_SCALE)).astype(np.float32)
    return np.where(scale > 0, narrow, EMPTY_SCALE)


def extent(values: Array, axis: int | None = None) -> Range:
    """Least and greatest of an array's values, or for each index along `axis`; 0 to 0 of an array without elements."""
    if not values.size:
        count = 1 if axis is None else values.shape[axis]
        return Range(np.zeros(count), np.zeros(count))
    others = None if axis is None else tuple(d for d in range(values.ndim) if d != axis % values.ndim)
    return Range.of(values.min(axis=others), values.max(axis=others))


def hull(ranges: Iterable[Range]) -> Range:
    """The least range that holds all of them."""
    ranges = tuple(ranges)
    return Range(np.min([r.low for r in ranges], axis=0), np.max([r.high for r in ranges], axis=0))
