"""Parts of an element's computation, and sums of products.

The parts of an element's computation.

Sums of products: convolutions, dense layers and matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.families.contraction import weights_read_as_int8
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Node
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import WorkedStep
from tflq.typing import Array

Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """A code that is read: its operand (by position), its place, and the zero point subtracted from it."""

    operand: int
    place: Index
    code: int | float
    zero_point: int = 0

    @property
    def centred(self) -> int | float:
        """Code minus zero point."""
        return self.code - self.zero_point


@dataclass(frozen=True, slots=True)
class Tap:
    """One term of an element: a value, times a weight if there is one, and the contribution to the sum."""

    value: Read
    weight: Read | None
    product: int | float


@dataclass(frozen=True, slots=True)
class Working:
    """Terms in the kernel's order, then steps; the value of the last step is the element's code.

    `outside` counts the taps that lie outside the image and add nothing.
    """

    taps: tuple[Tap, ...]
    steps: tuple[WorkedStep, ...]
    outside: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ElementSite:
    """An element of an output of a bound operator, and everything on which its arithmetic depends."""

    node: Node
    data: Any
    arithmetic: Arithmetic
    inputs: Sequence[Array | None]
    index: Index
    shape: Index  # of the output

    def operand(self, position: int) -> Array:
        """Return the array at an input position; raise ValueError if it is absent."""
        array = self.inputs[position]
        if array is None:
            raise ValueError(f"input {position} is absent")
        return array

    def optional(self, position: int) -> Array | None:
        """Return the array at an input position, or None."""
        return self.inputs[position] if position < len(self.inputs) else None

    @property
    def flat(self) -> int:
        """Number of the output's elements that come before this one in memory."""
        return int(np.ravel_multi_index(self.index, self.shape)) if self.shape else 0

    def read(self, operand: int, place: Index, zero_point: int = 0) -> Read:
        """Return one code of an operand."""
        return Read(operand, place, self.operand(operand)[place].item(), zero_point)

    def read_flat(self, operand: int, offset: int, zero_point: int = 0) -> Read:
        """Return the code that lies at an offset in memory."""
        shape = self.operand(operand).shape
        place = tuple(int(i) for i in np.unravel_index(offset, shape)) if shape else ()
        return self.read(operand, place, zero_point)


#: A function that traces an element.
Tracer = Callable[[ElementSite], Working]


def total_of(taps: Sequence[Tap], name: str = "sum of products") -> WorkedStep:
    """Return the step with the sum of all taps, before wrapping to any width."""
    return WorkedStep(name, sum(tap.product for tap in taps))


def zero_point_of(site: ElementSite, operand: int) -> int:
    """Return an operand's per-tensor zero point; 0 if it has none or is absent."""
    x = site.node.inputs[operand]
    return 0 if x is None else x.zero_point


def align(index: Index, shape: Index) -> Index:
    """Return the index into a broadcast operand for an index of the whole."""
    tail = index[len(index) - len(shape) :]
    return tuple(0 if size == 1 else i for i, size in zip(tail, shape, strict=True))


def variable(trace: Tracer, bias: int) -> Tracer:
    """Return the trace function for an operator whose weights, or whose bias at input `bias`, are computed."""

    def traced(site: ElementSite) -> Working:
        output = site.data.output.with_bias(site.optional(bias), site.shape[-1])
        return trace(replace(site, data=replace(site.data, output=output)))

    return traced


def convolved(site: ElementSite) -> Working:
    """Trace CONV_2D: patches of a group's channels times the filter of the output channel."""
    data, (n, *pixel, filter_) = site.data, site.index
    depth = site.operand(1).shape[3]
    group = filter_ // (site.shape[3] // data.group_count)
    taps = []
    inside, outside = _seen(data.window, pixel)
    for ky, kx, y, x in inside:
        for c in range(depth):
            value = site.read(0, (n, y, x, group * depth + c), data.input_zero_point)
            taps.append(_product(value, _weight(site, (filter_, ky, kx, c))))
    return _finish(site, taps, outside * depth)


def convolved_by_channel(site: ElementSite) -> Working:
    """Trace DEPTHWISE_CONV_2D: one channel's pixels times the output channel's filter."""
    data, (n, *pixel, channel) = site.data, site.index
    inside, outside = _seen(data.window, pixel)
    taps = [
        _product(
            site.read(0, (n, y, x, channel // data.times), data.input_zero_point), _weight(site, (0, ky, kx, channel))
        )
        for ky, kx, y, x in inside
    ]
    return _finish(site, taps, outside)


def dense(site: ElementSite) -> Working:
    """Trace FULLY_CONNECTED: a row of the input, as it lies in memory, times the unit's weights."""
    data = site.data
    units, depth = site.operand(1).shape
    row, unit = divmod(site.flat, units)
    taps = [
        _product(site.read_flat(0, row * depth + k, data.input_zero_point), _weight(site, (unit, k)))
        for k in range(depth)
    ]
    return _finish(site, taps)


def spread_out(site: ElementSite) -> Working:
    """Trace TRANSPOSE_CONV: the input pixels whose spread filters reach the output pixel."""
    taps = _spread_taps(site)
    return _finish(site, taps)


def spread_out_in_blocks(site: ElementSite) -> Working:
    """Trace TRANSPOSE_CONV of uint8 by vector code.

    Sums are the reference's, scaled by where the element lies in memory.
    """
    taps = _spread_taps(replace(site, data=site.data.sums.data))
    sums, channel, blocks = site.data.sums.data.output, site.index[-1], site.data.blocks
    bias = site.optional(3)
    total = total_of(taps)
    added = int((sums.bias if bias is None else bias.reshape(-1))[channel])
    size = int(np.prod(site.shape))
    stage = blocks.whole if site.flat < in_whole_blocks(size, blocks.block) else blocks.tail
    steps = replace(site.data.pipeline, stage=stage).worked(int(total.value), added)
    return Working(tuple(taps), (total, *steps))


def _spread_taps(site: ElementSite) -> list[Tap]:
    data, (n, *pixel, channel), depth = site.data, site.index, site.operand(2).shape[3]
    taps = []
    for y, x, ky, kx in _reaching(data.window, pixel):
        for c in range(depth):
            value = site.read(2, (n, y, x, c), data.input_zero_point)
            taps.append(_product(value, site.read(1, (channel, ky, kx, c), data.weight_zero_point)))
    return taps


def matrix_product(site: ElementSite) -> Working:
    """Trace BATCH_MATMUL: a row of the first matrix times a column of the second."""
    data, (*leading, row, column) = site.data, site.index
    length = site.operand(0).shape[-2 if data.adjoint[0] else -1]
    taps = []
    for k in range(length):
        first = (k, row) if data.adjoint[0] else (row, k)
        second = (column, k) if data.adjoint[1] else (k, column)
        left, right = (
            site.read(operand, (*_repeat(leading, site.operand(operand)), *place), data.zero_points[operand])
            for operand, place in enumerate((first, second))
        )
        taps.append(_product(left, right))
    total = total_of(taps)
    if data.pipeline is None:
        return Working(tuple(taps), (total,))
    return Working(tuple(taps), (total, *data.pipeline.worked(int(total.value))))


def _repeat(leading: list[int], matrices: Array) -> Index:
    """Return the leading dimensions of the output's index in an operand that may repeat some of them."""
    return align(tuple(leading), matrices.shape[:-2])


def _finish(site: ElementSite, taps: list[Tap], outside: int = 0) -> Working:
    output, channel = site.data.output, site.index[-1]
    total = total_of(taps)
    steps = output.pipeline.worked(int(total.value), int(output.bias[channel]), channel)
    return Working(tuple(taps), (total, *steps), outside)


def _weight(site: ElementSite, place: Index) -> Read:
    """Return a weight as the kernel reads it: 16-bit activations take theirs as int8."""
    if site.data.output.pipeline.dtype == np.int16 and len(place) == 4:
        w = weights_read_as_int8(site.operand(1))
        return Read(1, place, w[place].item(), site.data.weight_zero_point)
    return site.read(1, place, site.data.weight_zero_point)


def _product(value: Read, weight: Read) -> Tap:
    return Tap(value, weight, value.centred * weight.centred)


def _seen(window: Window, pixel: list[int]) -> tuple[list[tuple[int, int, int, int]], int]:
    """Return (ky, kx, y, x) of the taps inside the image for an output pixel, in order, and the number outside."""
    top, left = pixel[0] * window.stride_h - window.pad_top, pixel[1] * window.stride_w - window.pad_left
    places = [
        (ky, kx, top + ky * window.dilation_h, left + kx * window.dilation_w)
        for ky in range(window.kernel_h)
        for kx in range(window.kernel_w)
    ]
    inside = [p for p in places if 0 <= p[2] < window.height and 0 <= p[3] < window.width]
    return inside, len(places) - len(inside)


def _reaching(window: Window, pixel: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield (y, x, ky, kx) of the input pixels, in order, that contribute to an output pixel."""
    for y in range(window.out_h):
        ky = pixel[0] - (y * window.stride_h - window.pad_top)
        for x in range(window.out_w):
            kx = pixel[1] - (x * window.stride_w - window.pad_left)
            if 0 <= ky < window.kernel_h and 0 <= kx < window.kernel_w:
                yield y, x, ky, kx


def sum_codes(site: ElementSite) -> Working:
    """Trace BATCH_MATMUL to int32: unscaled sums, held in 32 bits."""
    working = matrix_product(site)
    total = int(working.steps[-1].value)
    return replace(
        working, steps=(*working.steps, WorkedStep("held in 32 bits", int(np.int64(total).astype(np.int32))))
    )
