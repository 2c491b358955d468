"""The fidelity of one tensor of a model to that of another, over all elements of all samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.typing import Array


@dataclass(slots=True)
class Fidelity:
    """Sums over all elements of all samples of one tensor: reference f and other q."""

    name: str
    op: str  # the operator that produces it in the reference
    index: int  # the operator's index there
    elements: int = 0
    signal: float = 0.0  # sum of f^2
    noise: float = 0.0  # sum of (f - q)^2
    bias: float = 0.0  # sum of (q - f)
    largest: float = 0.0  # max of |f - q|
    low: float = math.inf  # min of f
    high: float = -math.inf  # max of f

    def add(self, reference: Array, other: Array, scale: float = 1.0, zero_point: float = 0.0) -> None:
        """Count one sample's tensor; the values of `other` are scale * (other - zero_point)."""
        f, q = np.ascontiguousarray(reference).reshape(-1), np.ascontiguousarray(other).reshape(-1)
        signal, noise, bias, largest = _sums(f, q, scale, zero_point)
        self.elements += f.size
        self.signal += signal
        self.noise += noise
        self.bias += bias
        self.largest = max(self.largest, largest)
        if f.size:
            self.low, self.high = min(self.low, float(f.min())), max(self.high, float(f.max()))

    @property
    def sqnr(self) -> float:
        """10 log10(signal / noise), dB; inf without noise, -inf with noise but no signal."""
        if self.noise == 0:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf


@compiled
def _sums(f: Array, q: Array, scale: float, zero_point: float) -> tuple[float, float, float, float]:
    """Return the sums of f^2, error^2 and error, and the greatest |error|; error = scale * (q - zero_point) - f.

    The caller guarantees: both have the same length. All sums are float64, in order.
    """
    signal = noise = bias = largest = 0.0
    for k in range(f.shape[0]):
        value = np.float64(f[k])
        error = scale * (np.float64(q[k]) - zero_point) - value
        signal += value * value
        noise += error * error
        bias += error
        largest = max(largest, abs(error))
    return signal, noise, bias, largest
