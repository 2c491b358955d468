"""Convolutions of float32 as XNNPACK makes them on x86-64 with FMA, by the kernel that it chooses for a geometry.

One channel in and out a group: up to 25 taps are a depthwise kernel, whose chain goes down the columns of the filter.
All others are matrix products. Depthwise kernels have 3, 4, 9 or 25 taps: for filters of fewer, they multiply what lies
behind the window by 0, so that infinities and NaN there would count. Such images are refused. A single tap is one, too:
the release does not use XNNPACK's kernel for a product and a sum.
Source: XNNPACK src/operators/convolution-nhwc.c select_microkernel_type; src/reference/packing.cc
xnn_pack_f32_dwconv_ghw_w; f32-dwconv minmax for FMA3 and AVX-512F.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.jit.compiled import Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.fused_products import FusedProduct
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Shape
from tflq.engine.microkernels.flushed import begin_flushing, end_flushing, multiply_add
from tflq.engine.numerics.codes import NumberClamp
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: Taps of XNNPACK's depthwise kernels.
_TAPS = (3, 4, 9, 25)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants. `groups` are empty if the filter is computed, or if no matrix product makes the convolution."""

    window: Window  # pixels
    shape: Shape  # of the output
    group_count: int
    clamp: NumberClamp
    groups: tuple[FusedProduct, ...] = ()

    def bound(self, w: Array) -> OpData:
        """Return the constants with the filter (O, KH, KW, C/G) of a matrix product."""
        matrix = w.reshape(len(w), -1).T
        parts = np.split(matrix, self.group_count, axis=1)
        return replace(self, groups=tuple(FusedProduct.of(part, self.window) for part in parts))

    @property
    def is_depthwise(self) -> bool:
        """True if a group has one channel out, and XNNPACK's depthwise kernels have the taps."""
        return self.shape[3] == self.group_count and self.window.taps <= _TAPS[-1]


def convolve(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Return the convolution of an image with the filter (O, KH, KW, C/G) from a bias (O) on."""
    image, out = np.ascontiguousarray(x), np.empty(data.shape, np.float32)
    if w.shape[3] == 1 and data.is_depthwise:
        if data.window.taps not in _TAPS and not np.isfinite(image).all():
            raise UndefinedResultError("convolution", "XNNPACK multiplies infinities or NaN outside of the window by 0")
        taps = np.ascontiguousarray(w[..., 0].transpose(2, 1, 0))
        convolve_depthwise(image, taps, bias, data.window, *data.clamp, out)
        return out
    bound = data if data.groups else data.bound(w)
    pixels, depth, width = out.reshape(-1, data.shape[3]), w.shape[3], len(w) // data.group_count
    for g, product in enumerate(bound.groups):
        channels = np.ascontiguousarray(image[..., g * depth : (g + 1) * depth])
        here = slice(g * width, (g + 1) * width)
        part = np.empty((len(pixels), width), np.float32)
        product.into(channels, np.ascontiguousarray(bias[here]), data.clamp, part)()
        pixels[:, here] = part
    return out


@writes("out")
@in_pieces(
    lambda x, w, bias, window, *_: len(x) * window.out_h * window.out_w * w.size,
    frees_threads=True,
    out="nyx",
    x="n",
    window="yx",
)
@compiled
def convolve_depthwise(x: Array, w: Array, bias: Array, window: Window, low: Real, high: Real, out: Array) -> None:
    """Compute a depthwise convolution. `x` N, H, W, C; `w` KW, KH, C; taps outside the image are products with 0.

    Prepare guarantees: `window` lies over an image of x's height and width, `bias` is (C), `out` (N, out_h, out_w, C).
    """
    before = begin_flushing()
    channels = w.shape[2]
    nothing = np.zeros(channels, np.float32)
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            for ox in range(window.out_w):
                sums = out[n, oy, ox]
                for c in range(channels):  # quicker to compile than an assignment of arrays
                    sums[c] = bias[c]
                for kx in range(window.kernel_w):
                    column = ox * window.stride_w - window.pad_left + kx * window.dilation_w
                    for ky in range(window.kernel_h):
                        y = oy * window.stride_h - window.pad_top + ky * window.dilation_h
                        is_inside = 0 <= y < window.height and 0 <= column < window.width
                        values, weights = (x[n, y, column] if is_inside else nothing), w[kx, ky]
                        for c in range(channels):
                            sums[c] = multiply_add(values[c], weights[c], sums[c])
                for c in range(channels):
                    total = low if sums[c] < low else sums[c]
                    sums[c] = high if high < total else total
    end_flushing(before)
