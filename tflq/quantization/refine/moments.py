"""Sums over calibration samples of what an operator sees, in the float model and in the integer one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Array
from tflq.quantization.refine.linear import Linear

Reals = NDArray[np.float64]

#: Diagonal added before solving, relative to the mean diagonal.
DAMPING = 0.01


@dataclass(slots=True, eq=False)
class Moments:
    """Of rows f (float model) and q (what the integer model's codes stand for), both [G, N, K], summed over N.

    Sums are float64 of float32 products; `first_*` are [G, K], the others [G, K, K].
    """

    count: int
    first_float: Reals
    first_integer: Reals
    float_float: Reals  # sum of f f^T
    float_integer: Reals  # sum of f q^T
    integer_integer: Reals  # sum of q q^T

    @staticmethod
    def empty(groups: int, size: int) -> Moments:
        """No rows yet."""
        row, square = np.zeros((groups, size)), np.zeros((groups, size, size))
        return Moments(0, row, row.copy(), square, square.copy(), square.copy())

    def add(self, floats: Array, integers: Array, *, squares: bool) -> None:
        """Count float32 rows [G, N, K] of the same samples; second moments only with `squares`."""
        self.count += floats.shape[1]
        self.first_float += floats.sum(axis=1, dtype=np.float64)
        self.first_integer += integers.sum(axis=1, dtype=np.float64)
        if squares:
            turned = floats.transpose(0, 2, 1)
            self.float_float += turned @ floats
            self.float_integer += turned @ integers
            self.integer_integer += integers.transpose(0, 2, 1) @ integers

    def means(self) -> tuple[Reals, Reals]:
        """Mean rows of the float and of the integer model, [G, K]."""
        count = max(1, self.count)
        return self.first_float / count, self.first_integer / count

    def centred(self) -> Moments:
        """The same about the means: what is left where a bias makes up for means."""
        f, q = self.first_float, self.first_integer
        count = max(1, self.count)
        return Moments(
            self.count,
            np.zeros_like(f),
            np.zeros_like(q),
            self.float_float - f[:, :, None] * f[:, None, :] / count,
            self.float_integer - f[:, :, None] * q[:, None, :] / count,
            self.integer_integer - q[:, :, None] * q[:, None, :] / count,
        )


def moments(linear: Linear, pairs: Iterable[tuple[Array, Array]], *, squares: bool) -> Moments:
    """Of the operator's input in the float model and in the integer one, sample by sample."""
    sums: Moments | None = None
    for floats, integers in pairs:
        f, q = linear.rows(floats), linear.rows(integers)
        if sums is None:
            sums = Moments.empty(f.shape[0], f.shape[2])
        sums.add(f, q, squares=squares)
    return sums or Moments.empty(linear.groups, 0)


def damped(square: Reals) -> Reals:
    """Matrices [G, K, K] of second moments, positive definite: inputs that are always 0 weigh next to nothing."""
    size = square.shape[1]
    weight = np.trace(square, axis1=1, axis2=2) / max(1, size)
    return square + np.eye(size) * np.where(weight > 0, DAMPING * weight, 1.0)[:, None, None]


def matched(targets: Reals, cross: Reals, square: Reals) -> Reals:
    """Real weights [G, O, K] that do on the integer model's rows what `targets` do on the float model's.

    They minimise the sum of |targets f - w q|^2 + damping |w - targets|^2 over w, C being the sum of f q^T and S that
    of q q^T: targets + targets (C - S) S_damped^-1.
    """
    missing = (targets @ (cross - square)).transpose(0, 2, 1)
    return targets + np.linalg.solve(damped(square), missing).transpose(0, 2, 1)
