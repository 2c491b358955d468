"""Output stages that devices use instead of the runtime's, for any real multipliers.

They are plain NumPy: slower than those of tflq/numerics, and able to make every modelled mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.numerics.divisions import Divide, Ints
from tflq.numerics.multiplier import quantize_multipliers
from tflq.numerics.stages import OutputStage, Reals

Array = NDArray[Any]

#: Accumulators that are shifted to the left saturate in 32 bits.
_MOST = np.int64(2**31 - 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Plain:
    """An OutputStage by its `scaled`; the resulting code is clamped in 64 bits, then cut to its type."""

    real: Reals

    def scaled(self, total: Ints) -> Ints:
        """Return accumulators with their bias (..., C) in LSB of output."""
        raise NotImplementedError

    def __call__(self, accumulator: Array) -> NDArray[np.int32]:
        """Scale int32 accumulators; see OutputStage.__call__."""
        return self.scaled(accumulator.astype(np.int64)).astype(np.int32)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Add the bias, scale, add the zero point and clamp; see OutputStage.narrow."""
        total = accumulator.astype(np.int64) + _per_channel(bias, accumulator.shape[1]).astype(np.int64)
        out[...] = np.clip(self.scaled(total) + zero_point, low, high).astype(out.dtype)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Scale, add the zero point and clamp; see OutputStage.narrow_flat."""
        out[...] = np.clip(self.scaled(accumulator.astype(np.int64)) + zero_point, low, high).astype(out.dtype)


def _per_channel(values: Array, channels: int) -> Array:
    """Return `values`, of length 1, C or repeated, as one per channel or as one for all."""
    return values[:channels] if len(values) >= channels else values[:1]


def _shifted_left(total: Ints, shift: Ints) -> Ints:
    """Return total * 2**shift, saturated if a shift exceeds 32 bits."""
    near = np.minimum(shift, 31)
    leaves = (shift > 0) & (np.abs(total) > _MOST >> near)
    return np.where(leaves, np.sign(total) * _MOST, total << near)


@dataclass(frozen=True, slots=True, eq=False)
class RealRounding(_Plain):
    """The product of accumulator and multiplier in `dtype`, float64 or float32, rounded once."""

    round: Callable[[Array], Array]
    dtype: type[np.floating[Any]] = np.float64

    def again(self, real: ArrayLike) -> RealRounding:
        """Return the same rounding for other multipliers."""
        return replace(self, real=np.atleast_1d(np.asarray(real, np.float64)))

    def scaled(self, total: Ints) -> Ints:
        """Multiply in floating point and round; results beyond int32 saturate."""
        product = total.astype(self.dtype) * _per_channel(self.real, total.shape[-1]).astype(self.dtype)
        return np.clip(self.round(product).astype(np.float64), -(2.0**31), 2.0**31 - 1).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class FixedRounding(_Plain):
    """A mantissa of `bits` bits after its sign and a shift (> 0 is left) per channel.

    With `first`, the product is divided by 2**bits by this rounding and then by the shift's power with `last`. Without
    it, there is one division with `last`.
    """

    mantissa: Ints
    shift: Ints
    bits: int
    first: Divide | None
    last: Divide
    cut: bool = False  # the mantissa's lowest bits were dropped without rounding

    @classmethod
    def of(
        cls, first: Divide | None, last: Divide, bits: int = 31, *, cut: bool = False
    ) -> Callable[[ArrayLike], FixedRounding]:
        """Return a function that makes such a stage for real multipliers.

        `cut` drops the mantissa's lowest bits without rounding.
        """

        def make(real: ArrayLike) -> FixedRounding:
            reals = np.atleast_1d(np.asarray(real, np.float64))
            mantissas, shifts = (values.astype(np.int64) for values in quantize_multipliers(reals))
            dropped = np.int64(31 - bits)
            half = np.int64(0) if cut else (np.int64(1) << dropped) >> 1
            return cls(reals, (mantissas + half) >> dropped, shifts, bits, first, last, cut)

        return make

    def again(self, real: ArrayLike) -> FixedRounding:
        """Return the same rounding for other multipliers."""
        return FixedRounding.of(self.first, self.last, self.bits, cut=self.cut)(real)

    def scaled(self, total: Ints) -> Ints:
        """Multiply by mantissa and shift, rounding once or twice."""
        channels = total.shape[-1]
        mantissa, shift = _per_channel(self.mantissa, channels), _per_channel(self.shift, channels)
        product = _shifted_left(total, np.maximum(shift, 0)) * mantissa
        bits, right = np.full_like(shift, self.bits), np.maximum(-shift, 0)
        if self.first is None:
            return self.last(product, bits + right)
        return self.last(self.first(product, bits), right)


@dataclass(frozen=True, slots=True, eq=False)
class NarrowAccumulator:
    """Another stage whose accumulators, bias included, have only `bits` bits: they wrap or saturate."""

    inner: OutputStage
    bits: int
    wraps: bool

    @property
    def real(self) -> Reals:
        """The real multipliers of the stage that follows."""
        return self.inner.real

    def __call__(self, accumulator: Array) -> NDArray[np.int32]:
        """Limit the accumulators, then scale them; see OutputStage.__call__."""
        return self.inner(self._limited(accumulator.astype(np.int64)))

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Limit the accumulators with their bias, then scale and clamp; see OutputStage.narrow."""
        total = accumulator.astype(np.int64) + _per_channel(bias, accumulator.shape[1]).astype(np.int64)
        none = np.zeros(accumulator.shape[1], np.int32)
        self.inner.narrow(self._limited(total), out, none, zero_point, low, high)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Limit the accumulators, then scale and clamp; see OutputStage.narrow_flat."""
        self.inner.narrow_flat(self._limited(accumulator.astype(np.int64)), out, zero_point, low, high)

    def _limited(self, total: Ints) -> Ints:
        half = np.int64(1) << np.int64(self.bits - 1)
        if self.wraps:
            return ((total + half) & (2 * half - 1)) - half
        return np.clip(total, -half, half - 1)
