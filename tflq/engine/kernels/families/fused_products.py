"""Products of float32 rows and a matrix as XNNPACK makes them on x86-64 with FMA: chains of fused multiply-adds.

A sum begins with the bias and takes the products in order of the matrix's rows; taps outside an image are products with
0. The size of XNNPACK's tiles, and with it AVX2 or AVX-512, changes no bit: each sum has a lane of its own. Only its
kernels for the first Zen cores go through k in another order.
Source: XNNPACK src/configs/gemm-config.c, f32-gemm and f32-igemm minmax broadcast for FMA3 and AVX-512F.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.activation import limits
from tflq.engine.kernels.families.ordered_products import tiled
from tflq.engine.kernels.filling import Call
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Node, Shape
from tflq.engine.microkernels import fused_tiles
from tflq.engine.microkernels.float_tiles import pack
from tflq.engine.numerics.codes import NumberClamp
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class FusedProduct:
    """Patches of an image, or rows, times a matrix (K, N), from a bias on, clamped."""

    window: Window
    weights: Array  # panels
    length: int

    @classmethod
    def of(cls, matrix: Array, window: Window) -> FusedProduct:
        """Bind `matrix` (K, N), which has elements, for the patches of `window`."""
        return cls(window, pack(matrix, fused_tiles.choose()), len(matrix))

    @classmethod
    def of_rows(cls, matrix: Array, rows: int) -> FusedProduct:
        """Return the product of `rows` rows: of an image (1, 1, rows, K)."""
        return cls.of(matrix, Window.of_one_tap(1, rows))

    def into(self, x: Array, bias: Array, clamp: NumberClamp, out: Array) -> Call:
        """Return the call that fills `out` (R, N) from the image `x` (N, H, W, C), both contiguous; `bias` is (N)."""
        return tiled(fused_tiles.choose(), out, x, self.window, self.weights, self.length, bias, clamp)


def open_range(node: Node) -> NumberClamp:
    """Return the clamp of the fused activation, with infinities for open ends.

    Source: ConvertActivationToOutputRange.
    """
    low, high = limits(node)
    return NumberClamp(np.float32(-np.inf if low is None else low), np.float32(np.inf if high is None else high))


_OPEN = NumberClamp(np.float32(-np.inf), np.float32(np.inf))


def matrix_products(left: Array, right: Array, shape: Shape) -> Array:
    """Return the products (..., R, N) of matrices (..., R, K) and (..., K, N), whose leading dimensions broadcast."""
    leading, out = shape[:-2], np.empty(shape, np.float32)
    nothing = np.zeros(shape[-1], np.float32)
    lefts = np.broadcast_to(left, leading + left.shape[-2:])
    rights = np.broadcast_to(right, leading + right.shape[-2:])
    for index in np.ndindex(*leading):
        product = FusedProduct.of_rows(rights[index], shape[-2])
        product.into(np.ascontiguousarray(lefts[index])[None, None], nothing, _OPEN, out[index])()
    return out
