"""Accumulators of a model's products, and those next to a threshold: where a code ends and the next one begins.

Runtimes that round otherwise give other codes there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.profiles import Profile
from tflq.model.ir import Model, view
from tflq.proof.operator import BoundOperator, bind
from tflq.proof.products import ReachedSums, codes_of, sums_of

Array = NDArray[Any]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Product:
    """An operator that sums products with constant weights; `x` is the tensor that it reads."""

    index: int
    name: str
    x: int
    sums: ReachedSums

    def accumulators(self, codes: Array) -> Ints:
        """Return its sums without the bias, (places, channels), for the codes of its input."""
        operand = self.sums.x
        centred = codes.reshape(operand.shape).astype(np.float64) - int(operand.zero_point)
        weights = self.sums.weights.astype(np.float64)
        sums = self._sums(centred, weights)
        return np.rint(sums).astype(np.int64)

    def _sums(self, centred: Array, weights: Array) -> Array:
        """Return the sums; every partial sum is an exact float64."""
        prepared = self.sums.bound.step.prepared
        assert prepared is not None  # guaranteed by bind
        window: Window | None = getattr(prepared.data, "window", None)
        if window is None:
            return centred.reshape(-1, weights.shape[1]) @ weights.T
        over = _OVER[self.name]
        return np.concatenate([over(window, image, weights) for image in centred])


def convolved(window: Window, image: Array, weights: Array) -> Array:
    """Return the sums of an image (H, W, C) with weights (O, taps * C / groups)."""
    depth = weights.shape[1] // window.taps
    groups = image.shape[2] // depth
    parts = zip(np.split(seen(window, image), groups, axis=2), np.split(weights, groups), strict=True)
    return np.concatenate([patches.reshape(len(patches), -1) @ filters.T for patches, filters in parts], axis=1)


def convolved_by_channel(window: Window, image: Array, weights: Array) -> Array:
    """Return the sums of an image (H, W, C) with weights (O, taps), O a multiple of C."""
    patches = np.repeat(seen(window, image), len(weights) // image.shape[2], axis=2)
    sums: Array = np.einsum("ptc,ct->pc", patches, weights)
    return sums


def spread(window: Window, image: Array, weights: Array) -> Array:
    """Return the sums to which each pixel of an image (H, W, C) adds its taps; the window is over the output."""
    taps = weights.reshape(len(weights), window.kernel_h, window.kernel_w, -1)
    rows, columns = ((n - 1) * s + 1 for n, s in zip(image.shape, (window.stride_h, window.stride_w), strict=False))
    size = (max(rows + window.kernel_h, window.pad_top + window.height), columns + window.kernel_w)
    out = np.zeros((size[0], max(size[1], window.pad_left + window.width), len(weights)))
    for y, x in np.ndindex(window.kernel_h, window.kernel_w):
        out[y : y + rows : window.stride_h, x : x + columns : window.stride_w] += image @ taps[:, y, x].T
    inside = out[window.pad_top :, window.pad_left :][: window.height, : window.width]
    return inside.reshape(-1, len(weights))


_OVER = {"CONV_2D": convolved, "DEPTHWISE_CONV_2D": convolved_by_channel, "TRANSPOSE_CONV": spread}


def products(model: Model, profile: Profile) -> list[Product]:
    """Return the products of the first subgraph that can be read as sums."""
    found = []
    for operator in view(model).ops:
        bound = bind(model, operator.index, profile)
        sums = sums_of(bound) if isinstance(bound, BoundOperator) else None
        if isinstance(bound, BoundOperator) and sums is not None:
            found.append(Product(operator.index, operator.builtin, bound.tensors[sums.x.index], sums))
    return found


def seen(window: Window, image: Array) -> Array:
    """Return what every place sees of an image (H, W, C), 0 outside of it: (places, taps, C)."""
    rows = _taps(window.out_h, window.stride_h, window.kernel_h, window.dilation_h)
    columns = _taps(window.out_w, window.stride_w, window.kernel_w, window.dilation_w)
    height = max(rows.max() + 1, window.pad_top + window.height)
    width = max(columns.max() + 1, window.pad_left + window.width)
    padded = np.zeros((height, width, image.shape[2]), image.dtype)
    padded[window.pad_top :, window.pad_left :][: window.height, : window.width] = image
    patches = padded[rows[:, None, :, None], columns[None, :, None, :]]
    return patches.reshape(window.out_h * window.out_w, window.taps, -1)


def _taps(out: int, stride: int, kernel: int, dilation: int) -> Ints:
    """Return the padded position of every tap at every place, along one axis."""
    return np.arange(out)[:, None] * stride + np.arange(kernel) * dilation


def at_thresholds(product: Product, accumulators: Ints) -> int:
    """Return the number of accumulators that are the last of a code or the first of the next."""
    output = product.sums.output
    below, here, above = (codes_of(output, accumulators + step) for step in (-1, 0, 1))
    return int(np.count_nonzero((below != here) | (here != above)))


@dataclass
class Census:
    """Accumulators per product in a number of inputs: all, and those at thresholds."""

    products: list[Product]
    counted: dict[int, list[int]]
    inputs: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, found: list[Product]) -> Census:
        """Return a census without counts."""
        return cls(found, {product.index: [0, 0] for product in found})

    def add(self, tensors: Mapping[int, Array], budget: float = 0) -> None:
        """Count the accumulators of one run; after `budget` seconds of counting, if that is not 0, no more."""
        if budget and self.seconds > budget:
            return
        began = monotonic()
        for product in self.products:
            if product.x not in tensors:  # only outputs are compared
                continue
            accumulators = product.accumulators(tensors[product.x])
            self.counted[product.index][0] += accumulators.size
            self.counted[product.index][1] += at_thresholds(product, accumulators)
        self.inputs += 1
        self.seconds += monotonic() - began
