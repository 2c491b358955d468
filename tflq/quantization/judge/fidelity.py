"""The fidelity of one tensor of a model to that of another, over all elements of all samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, compiled
from tflq.quantization.params import ROUNDING
from tflq.typing import Array

Reals = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Fidelity:
    """Sums over all elements of all samples of one tensor: reference f and other q.

    The signal is what f carries about its mean over samples, element by element: a constant part does not depend on
    the input. Elements with a range of codes from `first` to `last` count as cut off beyond it.
    """

    name: str
    op: str  # the operator that produces it in the reference
    index: int  # the operator's index there
    first: float = -math.inf
    last: float = math.inf
    elements: int = 0
    samples: int = 0
    power: float = 0.0  # sum of f^2
    signal: float = 0.0  # sum of (f - its element's mean)^2
    noise: float = 0.0  # sum of (f - q)^2
    bias: float = 0.0  # sum of (q - f)
    largest: float = 0.0  # max of |f - q|
    low: float = math.inf  # min of f
    high: float = -math.inf  # max of f
    holders: tuple[int, int] = (-1, -1)  # the only samples that reach min and max, counted from 0; -1 if several do
    beyond: int = 0  # elements cut off
    cut: float = 0.0  # sum of their (f - q)^2
    means: Reals = field(default_factory=lambda: np.zeros(0))  # of each element so far

    def add(self, reference: Array, other: Array, scale: float = 1.0, zero_point: float = 0.0) -> None:
        """Count one sample's tensor; the values of `other` are scale * (other - zero_point)."""
        f, q = np.ascontiguousarray(reference).reshape(-1), np.ascontiguousarray(other).reshape(-1)
        if not self.samples:
            self.means = np.zeros(f.size)
        self.samples += 1
        if f.size != self.means.size:  # elements of several sizes have no means
            self.means = np.zeros(0)
        steady = self.means.size > 0
        means = self.means if steady else np.zeros(f.size)
        power, signal, noise, bias, largest, beyond, cut = _sums(
            f, q, scale, zero_point, means, self.samples if steady else 0, self.first, self.last
        )
        self.elements += f.size
        self.power += power
        self.signal += signal
        self.noise += noise
        self.bias += bias
        self.largest = max(self.largest, largest)
        self.beyond += int(beyond)
        self.cut += cut
        if f.size:
            self._stretch(float(f.min()), float(f.max()))

    def _stretch(self, low: float, high: float) -> None:
        """Widen the range, and note whose values are its ends."""
        now = self.samples - 1
        self.holders = (
            now if low < self.low else -1 if low == self.low else self.holders[0],
            now if high > self.high else -1 if high == self.high else self.holders[1],
        )
        self.low, self.high = min(self.low, low), max(self.high, high)

    @property
    def step(self) -> float:
        """The distance of two codes; infinite without a range of codes, which reaches half a step beyond either end."""
        return (self.last - self.first) / 256

    @property
    def spread(self) -> float:
        """Standard deviation of the reference's elements about their means over samples; NaN if it is not known."""
        freedom = self.elements * (self.samples - 1) / max(1, self.samples)
        return math.sqrt(self.signal / freedom) if freedom and self.means.size else math.nan

    @property
    def is_constant(self) -> bool:
        """True if the reference's elements are the same in all of several samples, up to rounding."""
        return self.spread <= ROUNDING * max(abs(self.low), abs(self.high))

    @property
    def judging(self) -> float:
        """The signal that noise is compared with: about the mean over samples, as expected of many samples.

        It is the whole power if that mean is not known (one sample), or if the reference is constant.
        """
        is_known = not math.isnan(self.spread) and not self.is_constant
        return self.signal * self.samples / (self.samples - 1) if is_known else self.power

    @property
    def sqnr(self) -> float:
        """10 log10(judging / noise), dB; inf without noise, -inf with noise but no signal."""
        if self.noise == 0:
            return math.inf
        return 10 * math.log10(self.judging / self.noise) if self.judging else -math.inf


@compiled
def _sums(
    f: Array, q: Array, scale: float, zero_point: float, means: Reals, samples: Int, first: float, last: float
) -> tuple[float, float, float, float, float, float, float]:
    """Return sums over a sample: f^2, f's squares about its means, error^2, error, the greatest |error|, what is cut.

    `means` are those of the elements in `samples`, this one included, and are updated (Welford 1962); without samples
    they stay. error = scale * (q - zero_point) - f. The last two are the number of f beyond first..last and their
    error^2. The caller guarantees: f, q and means have the same length. All sums are float64, in order.
    """
    power = signal = noise = bias = largest = beyond = cut = 0.0
    for k in range(f.shape[0]):
        value = np.float64(f[k])
        error = scale * (np.float64(q[k]) - zero_point) - value
        power += value * value
        noise += error * error
        bias += error
        largest = max(largest, abs(error))
        if samples > 0:
            off = value - means[k]
            means[k] += off / samples
            signal += off * (value - means[k])
        if value < first or value > last:
            beyond += 1.0
            cut += error * error
    return power, signal, noise, bias, largest, beyond, cut
