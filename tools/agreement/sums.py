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

from tflq.ir import Model, view
from tflq.kernels.geometry.windows import Window
from tflq.profiles import Profile
from tflq.proof.operator import Bound, bind
from tflq.proof.products import Sums, sums_of
from tflq.proof.steps import codes_of

Array = NDArray[Any]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Product:
    """An operator that sums products with constant weights; `x` is the tensor that it reads."""

    index: int
    name: str
    x: int
    sums: Sums

    def accumulators(self, codes: Array) -> Ints:
        """Return its sums without the bias, (places, channels), for the codes of its input."""
        operand, data = self._operand, self._data
        centred = codes.reshape(operand.shape).astype(np.float64) - int(operand.zero_point)
        weights = self.sums.weights.astype(np.float64)
        window: Window | None = getattr(data, "window", None)
        if window is None:
            sums = centred.reshape(-1, weights.shape[1]) @ weights.T
        else:
            sums = np.concatenate([self._over(window, image, weights) for image in centred])
        return np.rint(sums).astype(np.int64)

    def _over(self, window: Window, image: Array, weights: Array) -> Array:
        """Return the sums of one image (H, W, C); every partial sum is an exact float64."""
        patches = seen(window, image)
        if self.name == "DEPTHWISE_CONV_2D":
            times = len(weights) // image.shape[2]
            return np.einsum("ptc,ct->pc", np.repeat(patches, times, axis=2), weights)
        depth = weights.shape[1] // window.taps
        filters = np.split(weights, image.shape[2] // depth)
        groups = np.split(patches, image.shape[2] // depth, axis=2)
        return np.concatenate([g.reshape(len(g), -1) @ f.T for g, f in zip(groups, filters, strict=True)], axis=1)

    @property
    def _operand(self) -> Any:
        return self.sums.bound.step.node.input(0)

    @property
    def _data(self) -> Any:
        prepared = self.sums.bound.step.prepared
        assert prepared is not None  # guaranteed by bind
        return prepared.data


def products(model: Model, profile: Profile) -> list[Product]:
    """Return the products of the first subgraph that can be read as sums."""
    found = []
    for operator in view(model).ops:
        bound = bind(model, operator.index, profile)
        sums = sums_of(bound) if isinstance(bound, Bound) else None
        if isinstance(bound, Bound) and sums is not None:
            x = bound.tensors[bound.step.node.input(0).index]
            found.append(Product(operator.index, operator.builtin, x, sums))
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
            accumulators = product.accumulators(tensors[product.x])
            self.counted[product.index][0] += accumulators.size
            self.counted[product.index][1] += at_thresholds(product, accumulators)
        self.inputs += 1
        self.seconds += monotonic() - began
