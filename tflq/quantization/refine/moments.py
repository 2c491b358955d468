"""Sums over calibration samples of an operator's inputs, in the float model and in the integer one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.refine.products import MatrixProduct
from tflq.quantization.refine.squares import row_products

Reals = NDArray[np.float64]
Floats = NDArray[np.float32]

#: Diagonal added before solving, relative to the mean diagonal.
DAMPING = 0.01
#: Diagonal for weights that are matched to their inputs: with less, few samples are fitted too closely.
MATCHING = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums over N rows f (float model) and q (the values of the integer model's codes).

    First moments are [G, K], second ones [G, K, K] or None unless they are requested. `refine.squares` describes their
    precision.
    """

    count: int
    first_float: Reals
    first_integer: Reals
    float_float: Reals | None = None  # sum of f f^T
    float_integer: Reals | None = None  # sum of f q^T
    integer_integer: Reals | None = None  # sum of q q^T

    def means(self) -> tuple[Reals, Reals]:
        """Return the mean rows of the float and of the integer model, [G, K]."""
        count = max(1, self.count)
        return self.first_float / count, self.first_integer / count

    def centred(self) -> Moments:
        """Return the moments about the means: the remainder if a bias compensates for means."""
        f, q = self.first_float, self.first_integer

        def about(second: Reals | None, left: Reals, right: Reals) -> Reals | None:
            return None if second is None else second - left[:, :, None] * right[:, None, :] / max(1, self.count)

        return Moments(
            self.count,
            np.zeros_like(f),
            np.zeros_like(q),
            about(self.float_float, f, f),
            about(self.float_integer, f, q),
            about(self.integer_integer, q, q),
        )


@dataclass(frozen=True, slots=True)
class Needed:
    """The second moments that are needed."""

    float_float: bool = False  # sum of f f^T
    float_integer: bool = False  # sum of f q^T
    squares: bool = False  # sum of q q^T

    @property
    def floats(self) -> bool:
        """True if rows of the float model are needed, not their mean alone."""
        return self.float_float or self.float_integer


def moments(
    product: MatrixProduct,
    inputs: Iterable[tuple[Floats, Floats | None]],
    unit: float,
    first_float: Reals,
    needed: Needed,
) -> Moments:
    """Return the moments of an operator's rows over all samples, some of them at a time.

    `inputs` are its inputs in the integer model, in steps of size `unit`, and in the float model, if needed;
    `first_float` is the sum of the float model's rows.
    """
    count, first = 0, np.zeros_like(first_float)
    shape = (product.groups, product.inputs, product.inputs)
    ff, fq, qq = (np.zeros(shape) if n else None for n in (needed.float_float, needed.float_integer, needed.squares))
    for q, f in inputs:
        count += product.row_count(q)
        first += product.row_sum(q)
        if qq is not None:
            qq += row_products(product, q, q)
        if ff is not None and f is not None:
            ff += row_products(product, f, f)
        if fq is not None and f is not None:
            fq += row_products(product, f, q)
    return Moments(
        count, first_float, first * unit, ff, None if fq is None else fq * unit, None if qq is None else qq * unit**2
    )


def damp(square: Reals, damping: float = DAMPING) -> Reals:
    """Return second moments [G, K, K] made positive definite: inputs that are always 0 get almost no weight."""
    size = square.shape[1]
    weight = np.trace(square, axis1=1, axis2=2) / max(1, size)
    return square + np.eye(size) * np.where(weight > 0, damping * weight, 1.0)[:, None, None]


def match(targets: Reals, cross: Reals, square: Reals) -> Reals:
    """Return real weights [G, O, K] that give on the integer model's rows what `targets` give on the float model's.

    They minimize the sum of |targets f - w q|^2 + damping |w - targets|^2 over w. With C the sum of f q^T and S that of
    q q^T, they are targets + targets (C - S) S_damped^-1.
    """
    missing = (targets @ (cross - square)).transpose(0, 2, 1)
    return targets + np.linalg.solve(damp(square, MATCHING), missing).transpose(0, 2, 1)
