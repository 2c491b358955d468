"""Measures of how far values lie from their reference: signal to noise, and divergences of scores."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tflq.typing import Array

Reals = NDArray[np.float64]


def decibels(reference: Array, other: Array) -> float:
    """Return 10 log10(sum reference^2 / sum (reference - other)^2), dB; inf without noise, -inf without signal.

    Equal values, also infinite ones and NaN, are no noise. Where only one is finite, the noise is infinite.
    """
    f, q = np.asarray(reference, np.float64).ravel(), np.asarray(other, np.float64).ravel()
    apart = ~((f == q) | (np.isnan(f) & np.isnan(q)))
    if not apart.any():
        return math.inf
    with np.errstate(invalid="ignore", over="ignore"):
        noise = float(np.sum(np.square(f[apart] - q[apart])))
        signal = float(np.sum(np.square(f[np.isfinite(f)])))
    if not math.isfinite(noise) or not signal:
        return -math.inf
    return 10 * math.log10(signal / noise) if noise else math.inf


def divergences(reference: Array, scores: Array) -> Reals:
    """Return the KL divergences, nats, of the distributions that scores define, by row: [..., C] to [...]."""
    logs = log_shares(reference)
    sums: Reals = np.sum(np.exp(logs) * (logs - log_shares(scores)), axis=-1)
    return sums


def log_shares(scores: Array) -> Reals:
    """Return the logarithm of SOFTMAX with beta 1 along the last axis."""
    real = np.asarray(scores, np.float64)
    below = real - real.max(axis=-1, keepdims=True)
    shares: Reals = below - np.log(np.exp(below).sum(axis=-1, keepdims=True))
    return shares
