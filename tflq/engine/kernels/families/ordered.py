"""Float32 sums and products in the order of the runtimes.

Products of float32 rows and a constant matrix by tiles, every sum in its promised order: as ordered_sums, sooner.

A padded tap adds a product with 0 here where the loops of ordered_sums leave it out. That is the same as long as
weights are finite: sums begin with 0.0, so none is -0.0, and nothing else changes when a zero is added.

Float contractions in the reference kernels' order: product and sum rounded apart, one float32 sum per output.

Outputs are independent of each other, so the loops run over output channels innermost: the order within each sum is the
source's, and the machine still works on many sums at a time.
Source: LiteRT 2.3 reference/conv.h, depthwiseconv_float.h, transpose_conv.h, fully_connected.h, batch_matmul.h.

Products of float32 rows and a matrix as XNNPACK makes them on x86-64 with FMA: chains of fused multiply-adds.

A sum begins with the bias and takes the products in order of the matrix's rows; taps outside an image are products with
0. The size of XNNPACK's tiles, and with it AVX2 or AVX-512, changes no bit: each sum has a lane of its own. Only its
kernels for the first Zen cores go through k in another order.
Source: XNNPACK src/configs/gemm-config.c, f32-gemm and f32-igemm minmax broadcast for FMA3 and AVX-512F.

Convolutions of float32 as XNNPACK makes them on x86-64 with FMA, by the kernel that it chooses for a geometry.

One channel in and out a group: up to 25 taps are a depthwise kernel, whose chain goes down the columns of the filter.
All others are matrix products. Depthwise kernels have 3, 4, 9 or 25 taps: for filters of fewer, they multiply what lies
behind the window by 0, so that infinities and NaN there would count. Such images are refused. A single tap is one, too:
the release does not use XNNPACK's kernel for a product and a sum.
Source: XNNPACK src/operators/convolution-nhwc.c select_microkernel_type; src/reference/packing.cc
xnn_pack_f32_dwconv_ghw_w; f32-dwconv minmax for FMA3 and AVX-512F.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, writes
from tflq.engine.jit.flushing import begin_flushing, end_flushing, multiply_add
from tflq.engine.jit.native import Unavailable
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import limits
from tflq.engine.kernels.geometry.windows import Window, patches_into
from tflq.engine.kernels.kernel import Call, Node, Shape, filling, in_turn, once_known
from tflq.engine.microkernels import floats
from tflq.engine.microkernels.floats import pack, panel_starts
from tflq.engine.microkernels.kernel import FloatTile
from tflq.engine.numerics.codes import NumberClamp
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: Bytes of rows that stay in a core's second-level cache.
_BLOCK_BYTES = 1 << 17
#: Rows below which a product takes no less time by tiles: reading the matrix is what takes it.
_FEWEST_ROWS = 4

#: The function that computes a tile. `_by` replaces it where a tile has no machine code at an address.
tile_into: Any = floats.tile_into


def tiled(
    tile: FloatTile, out: Array, x: Array, window: Window, weights: Array, block: int, bias: Array, clamp: NumberClamp
) -> Call:
    """Return the call of `products_into` by a tile."""
    function, at = floats.function_of(tile) if tile.fused else (tile_into, floats.tile_into.address(tile))
    products = products_into if function is tile_into else _by(function)
    return products.bound(out, 0, x, window, weights, at, tile.rows, tile.columns, block, bias, *clamp)


@cache
def _by(function: Compiled[..., None]) -> Compiled[..., None]:
    """Return `products_into` with a function in place of machine code at an address."""
    return products_into.bind(tile_into=function)


def has_tiles() -> bool:
    """Return whether there is machine code of tiles whose products and sums are rounded apart."""
    try:
        floats.tile_into.address(floats.choose())
    except Unavailable:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class OrderedProduct:
    """Patches of an image, or rows, times a matrix (K, N), plus a bias, clamped.

    Sums of `block` k each run in order, and are added to each other in order.
    """

    window: Window
    weights: Array  # panels
    block: int

    @classmethod
    def of(cls, matrix: Array, window: Window, rows: int, block: int | None = None) -> OrderedProduct | None:
        """Bind `matrix` (K, N) for the number of `rows`. Return None if loops must do it, or take no longer."""
        if rows < _FEWEST_ROWS or not matrix.size:
            return None
        if not (window.is_pointwise or np.isfinite(matrix).all()):
            return None
        if not has_tiles():
            return None
        panels = floats.pack(matrix, floats.choose())
        return cls(window, panels, min(block or len(matrix), len(matrix)))

    @classmethod
    def of_rows(cls, matrix: Array, rows: int, block: int | None = None) -> OrderedProduct | None:
        """Return the product of `rows` rows: of an image (1, 1, rows, K)."""
        return cls.of(matrix, Window.of_one_tap(1, rows), rows, block)

    def into(self, x: Array, bias: Array, clamp: NumberClamp, out: Array) -> Call:
        """Return the call that fills `out` (R, N) from the image `x` (N, H, W, C), both contiguous; `bias` is (N)."""
        return tiled(floats.choose(), out, x, self.window, self.weights, self.block, bias, clamp)


def _passes(out: Array, first_row: Int, x: Array, window: Window, weights: Array, *rest: Any) -> int:
    """Return the passes of a scalar loop that take about as long, see pieces."""
    return int(out.size * (weights.shape[1] + 16)) >> 3


@writes("out")
@in_pieces(_passes, frees_threads=True, out="r", first_row="r")
@compiled
def products_into(
    out: Array,
    first_row: Int,
    x: Array,
    window: Window,
    weights: Array,
    tile: Int,
    tile_rows: Int,
    tile_columns: Int,
    block: Int,
    biases: Array,
    low: Real,
    high: Real,
) -> None:
    """Fill `out` (R, N) from pixel `first_row` of the output on; sums of `block` k each.

    `tile` is the address of a tile of that many rows and columns.

    Prepare guarantees: `window` lies over `x` (N, H, W, C), and pixels from `first_row` on are its; `weights` are the
    panels of a matrix (taps * C, N); `biases` is (N); `block` is positive.
    """
    rows, width, length = out.shape[0], out.shape[1], weights.shape[1]
    taps = window.kernel_h * window.kernel_w
    is_direct = taps * window.stride_h * window.stride_w == 1 and window.pad_top == 0 and window.pad_left == 0
    size = max(1, _BLOCK_BYTES // (4 * length * tile_rows)) * tile_rows
    patches = np.empty((0 if is_direct else min(size, rows), length), np.float32)
    pixels = x.reshape(-1, x.shape[3])
    edge, added = np.empty((tile_rows, tile_columns), np.float32), np.zeros(tile_columns, np.float32)
    if width < tile_columns:
        for c in range(width):
            added[c] = biases[c]
    for first in range(0, rows, size):
        count = min(size, rows - first)
        if is_direct:
            part = pixels[first_row + first : first_row + first + count]
        else:
            part = patches[:count]
            patches_into(x, 0, window, first_row + first, 0, part)
        for panel in range(weights.shape[0]):
            column = min(panel * tile_columns, width - tile_columns)
            for r in range(0, count, tile_rows):
                left, at = count - r, first + r
                if width >= tile_columns:
                    tile_into(tile, part, r, weights, panel, block, biases, low, high, out, at, column, left)
                else:
                    tile_into(tile, part, r, weights, panel, block, added, low, high, edge, 0, 0, left)
                    for i in range(min(tile_rows, left)):
                        for c in range(width):
                            out[at + i, c] = edge[i, c]


@compiled
def clamp_std(x: Real, low: Real, high: Real) -> Real:
    """Return std::min(std::max(x, low), high): NaN passes, and so does the sign of a zero at a limit."""
    x = low if x < low else x
    return high if high < x else x


@compiled
def finish(sums: Array, bias: Array, low: Real, high: Real, out: Array) -> None:
    """Compute out[c] = clamp(sums[c] + bias[c]).

    The caller guarantees: `sums` and `bias` have the size of `out`.
    """
    for c in range(out.shape[0]):
        out[c] = clamp_std(sums[c] + bias[c], low, high)


@writes("sums")
@in_pieces(sums="r")
@compiled
def finish_pixels(sums: Array, bias: Array, low: Real, high: Real) -> None:
    """Compute sums[i] = clamp(sums[i] + bias), pixel by pixel.

    Prepare guarantees: `sums` is (pixels, channels) and `bias` (channels).
    """
    for i in range(sums.shape[0]):
        finish(sums[i], bias, low, high, sums[i])


@writes("out")
@in_pieces(
    lambda x, w, start, bias, window, *_: len(x) * window.out_h * window.out_w * w.size,
    frees_threads=True,
    out="nyx",
    x="n",
    window="yx",
)
@compiled
def convolve_depthwise(
    x: Array, w: Array, start: Array, bias: Array, window: Window, low: Real, high: Real, out: Array
) -> None:
    """Compute DEPTHWISE_CONV_2D. `x` N, H, W, C; `w` KH, KW, C * M. Sums begin with `start` and end with `bias`.

    Products and sums have the type of `start`: float32, or int32 for centred codes.

    Prepare guarantees: `window` lies over an image of x's height and width, `start` and `bias` are (C * M), `out` is
    (N, out_h, out_w, C * M), and C > 0.
    """
    depth, channels = x.shape[3], w.shape[2]
    times, kind = channels // depth, start.dtype.type
    sums = np.empty(channels, start.dtype)
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            for ox in range(window.out_w):
                for o in range(channels):  # quicker to compile than an assignment of arrays
                    sums[o] = start[o]
                for ky in range(window.kernel_h):
                    y = oy * window.stride_h - window.pad_top + ky * window.dilation_h
                    if y < 0 or y >= window.height:
                        continue
                    for kx in range(window.kernel_w):
                        column = ox * window.stride_w - window.pad_left + kx * window.dilation_w
                        if column < 0 or column >= window.width:
                            continue
                        values, weights = x[n, y, column], w[ky, kx]
                        if times == 1:
                            for o in range(channels):
                                sums[o] += kind(values[o]) * kind(weights[o])
                        else:
                            for o in range(channels):
                                sums[o] += kind(values[o // times]) * kind(weights[o])
                finish(sums, bias, low, high, out[n, oy, ox])


@writes("out")
@in_pieces(lambda x, w, *_: len(x) * w.size, frees_threads=True, x="r", out="r")
@compiled
def multiply(x: Array, w: Array, bias: Array, low: Real, high: Real, out: Array) -> None:
    """Compute FULLY_CONNECTED and one matrix of BATCH_MATMUL. `x` (R, K), `w` (K, N), `out` (R, N).

    Prepare guarantees: these shapes, and that `bias` is (N).
    """
    rows, length = x.shape
    channels = w.shape[1]
    sums = np.empty(channels, np.float32)
    for r in range(rows):
        sums[:] = 0
        for k in range(length):
            value, weights = x[r, k], w[k]
            for o in range(channels):
                sums[o] += value * weights[o]
        finish(sums, bias, low, high, out[r])


@dataclass(frozen=True, slots=True, eq=False)
class FusedProduct:
    """Patches of an image, or rows, times a matrix (K, N), from a bias on, clamped."""

    window: Window
    tile: FloatTile
    weights: Array  # panels
    length: int

    @classmethod
    def of(cls, matrix: Array, window: Window) -> FusedProduct:
        """Bind `matrix` (K, N), which has elements, for the patches of `window`."""
        tile = floats.fused_tiles_choose(window.out_h * window.out_w, matrix.shape[1])
        return cls(window, tile, pack(matrix, tile), len(matrix))

    @classmethod
    def of_rows(cls, matrix: Array, rows: int) -> FusedProduct:
        """Return the product of `rows` rows: of an image (1, 1, rows, K)."""
        return cls.of(matrix, Window.of_one_tap(1, rows))

    def into(self, x: Array, bias: Array, clamp: NumberClamp, out: Array) -> Call:
        """Return the call that fills `out` (R, N) from the image `x` (N, H, W, C), both contiguous; `bias` is (N)."""
        return tiled(self.tile, out, x, self.window, self.weights, self.length, bias, clamp)


def open_range(node: Node) -> NumberClamp:
    """Return the clamp of the fused activation, with infinities for open ends.

    Source: ConvertActivationToOutputRange.
    """
    low, high = limits(node)
    return NumberClamp(np.float32(-np.inf if low is None else low), np.float32(np.inf if high is None else high))


#: Limits of what is not clamped.
NO_CLAMP = NumberClamp(np.float32(-np.inf), np.float32(np.inf))


def multiply_matrices(out: Array, left: Array, right: Array, tile: FloatTile) -> Call:
    """Return the call that fills `out` (..., R, N) with the products by a tile of (..., R, K) and (..., K, N).

    Leading dimensions broadcast. Matrices may be views of another order, and those on the right may hold codes.
    """
    rows, width = out.shape[-2:]
    length, leading = left.shape[-1], out.shape[:-2]
    starts = panel_starts(width, tile)
    panels = np.zeros((*right.shape[:-2], len(starts), length, tile.columns), np.float32)
    stored = left if left.flags.c_contiguous else np.empty(left.shape, np.float32)
    lefts = np.broadcast_to(stored, leading + left.shape[-2:])
    rights = np.broadcast_to(panels, leading + panels.shape[-3:])
    nothing, window = np.zeros(width, np.float32), Window.of_one_tap(1, rows)
    products = in_turn(
        [
            tiled(tile, out[index], lefts[index][None, None], window, rights[index], length, nothing, NO_CLAMP)
            for index in np.ndindex(*leading)
        ]
        if out.size
        else []
    )

    def call() -> None:
        if stored is not left:
            stored[...] = left
        for number, start in enumerate(starts):
            part = right[..., start : start + tile.columns]
            panels[..., number, :, : part.shape[-1]] = part
        products()

    return call


def matrix_products(left: Array, right: Array, shape: Shape) -> Array:
    """Return the products, of that shape, of `multiply_matrices`."""
    out = np.empty(shape, np.float32)
    multiply_matrices(out, left, right, floats.fused_tiles_choose(*shape[-2:]))()
    return out


#: Sums of pixels side by side that are added together, so that loops over few channels are long.
_SIDE_BY_SIDE = 512
#: Taps of XNNPACK's depthwise kernels.
_TAPS = (3, 4, 9, 25)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants. If the filter is computed, there are no `groups` and no `taps`: `bound` adds them."""

    window: Window  # pixels
    shape: Shape  # of the output
    group_count: int
    clamp: NumberClamp
    order: tuple[int, ...] = (0, 1, 2, 3)  # the filter's dimensions that are O, KH, KW, C/G
    groups: tuple[FusedProduct, ...] = ()
    taps: Array | None = None  # of a depthwise kernel, (KW, KH, pixels * O): the same for pixels side by side

    def bound(self, w: Array) -> OpData:
        """Return the constants with the filter."""
        filters = w.transpose(self.order)
        if filters.shape[3] == 1 and self.is_depthwise:
            taps, pixels = filters[..., 0].transpose(2, 1, 0), max(1, _SIDE_BY_SIDE // max(1, len(filters)))
            return replace(self, taps=np.ascontiguousarray(np.tile(taps, pixels)))
        parts = np.split(filters.reshape(len(filters), -1).T, self.group_count, axis=1)
        return replace(self, groups=tuple(FusedProduct.of(part, self.window) for part in parts))

    @property
    def is_depthwise(self) -> bool:
        """True if a group has one channel out, and XNNPACK's depthwise kernels have the taps."""
        return self.shape[3] == self.group_count and self.window.taps <= _TAPS[-1]


@filling(lambda data, *_: (data.shape, np.float32))
def convolve_fused(data: OpData, out: Array, x: Array, w: Array, bias: Array) -> Call:
    """Rounding: one for each product and sum, from the bias on."""
    image, bias = np.ascontiguousarray(x), np.ascontiguousarray(bias)
    if data.taps is None and not data.groups:
        return once_known(w, lambda: convolve_fused.bind(data.bound(w), out, image, w, bias))
    if data.taps is not None:
        repeated = np.tile(bias, data.taps.shape[2] // max(1, len(bias)))
        given = image.reshape(len(image), -1), data.shape[3]
        convolve = convolve_depthwise_fused.bound(*given, data.taps, repeated, data.window, *data.clamp, out)
        return convolve if data.window.taps in _TAPS else in_turn([partial(_check_finite, image), convolve])
    pixels = out.reshape(-1, data.shape[3])
    if len(data.groups) == 1:
        return data.groups[0].into(image, bias, data.clamp, pixels)

    def call() -> None:
        for g, product in enumerate(data.groups):
            depth, width = image.shape[3] // data.group_count, len(bias) // data.group_count
            channels = np.ascontiguousarray(image[..., g * depth : (g + 1) * depth])
            here = slice(g * width, (g + 1) * width)
            part = np.empty((len(pixels), width), np.float32)
            product.into(channels, np.ascontiguousarray(bias[here]), data.clamp, part)()
            pixels[:, here] = part

    return call


def _check_finite(image: Array) -> None:
    if not np.isfinite(image).all():
        raise UndefinedResultError("convolution", "XNNPACK multiplies infinities or NaN outside of the window by 0")


@writes("out")
@in_pieces(
    lambda x, channels, w, bias, window, *_: len(x) * window.out_h * window.out_w * window.taps * channels,
    frees_threads=True,
    out="nyx",
    x="n",
    window="yx",
)
@compiled
def convolve_depthwise_fused(
    x: Array, channels: Int, w: Array, bias: Array, window: Window, low: Real, high: Real, out: Array
) -> None:
    """Compute a depthwise convolution. `x` N, H * W * C; taps outside the image are products with 0.

    Prepare guarantees: `window` lies over the image, `out` is (N, out_h, out_w, C), `w` KW, KH, S * C and `bias` S * C
    repeat the channels for S pixels side by side, of which a step of 1 sees pixels in a row.
    """
    before = begin_flushing()
    most = w.shape[2] // channels
    nothing, sums = np.zeros(w.shape[2], np.float32), np.empty(w.shape[2], np.float32)
    inner = window.width - (window.kernel_w - 1) * window.dilation_w
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            ox = 0
            while ox < window.out_w:
                left = ox * window.stride_w - window.pad_left
                count = 1
                if window.stride_w == 1 and left >= 0:  # every tap sees this many pixels of the image
                    count = max(1, min(most, window.out_w - ox, inner - left))
                size = count * channels
                for c in range(size):  # quicker to compile than an assignment of arrays
                    sums[c] = bias[c]
                for kx in range(window.kernel_w):
                    column = left + kx * window.dilation_w
                    for ky in range(window.kernel_h):
                        y = oy * window.stride_h - window.pad_top + ky * window.dilation_h
                        is_inside = 0 <= y < window.height and 0 <= column < window.width
                        first = (y * window.width + column) * channels
                        values = x[n, first : first + size] if is_inside else nothing
                        weights = w[kx, ky]
                        for c in range(size):
                            sums[c] = multiply_add(values[c], weights[c], sums[c])
                for pixel in range(count):
                    given, made = sums[pixel * channels :], out[n, oy, ox + pixel]
                    for c in range(channels):
                        total = low if given[c] < low else given[c]
                        made[c] = high if high < total else total
                ox += count
    end_flushing(before)
