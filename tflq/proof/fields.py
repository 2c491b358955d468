"""Operators with constant weights as sums of products: their weights, and what each channel reads at each place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.conv_2d import reference as conv_2d
from tflq.engine.kernels.depthwise_conv_2d import reference as depthwise_conv_2d
from tflq.engine.kernels.families.contraction import centre, weights_read_as_int8
from tflq.engine.kernels.fully_connected import dense as fully_connected
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Node
from tflq.engine.kernels.transpose_conv import reference as transpose_conv
from tflq.typing import Array

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ReceptiveField:
    """The input elements (flat) and columns of the weights (C, K) that one output channel sees at one place."""

    elements: Ints
    taps: Ints


#: A channel's receptive fields.
Fields = Callable[[int], Sequence[ReceptiveField]]


@dataclass(frozen=True, slots=True)
class Reader:
    """How an operator's sums are read: the eval that computes them, the position of its data, weights and fields."""

    eval: Callable[..., Array]
    read: Callable[[Node, Any], tuple[Array, Fields]]
    x: int = 0


def _convolution(node: Node, data: conv_2d.OpData) -> tuple[Array, Fields]:
    w = _weights(node, data)
    filters, _, _, depth = w.shape
    seen, channels, every = _seen(data.window), np.arange(depth), node.input(0).shape[3]
    return w.reshape(filters, -1), lambda channel: [
        _over_channels(pixels * every + channel // (filters // data.group_count) * depth, taps * depth, channels)
        for taps, pixels in seen
    ]


def _depthwise(node: Node, data: depthwise_conv_2d.OpData) -> tuple[Array, Fields]:
    w = _weights(node, data)
    seen, depth = _seen(data.window), node.input(0).shape[3]
    return w.reshape(-1, w.shape[3]).T, lambda channel: [
        ReceptiveField(pixels * depth + channel // data.times, taps) for taps, pixels in seen
    ]


def _dense(node: Node, data: fully_connected.OpData) -> tuple[Array, Fields]:
    w = centre(node.constant(1), data.weight_zero_point)
    every = np.arange(w.shape[1])
    return w, lambda channel: [ReceptiveField(every, every)]


def _transpose(node: Node, data: transpose_conv.OpData) -> tuple[Array, Fields]:
    """Return weights (O, KH * KW * C); each output pixel sees the taps that some input pixel spreads to it."""
    w = centre(node.constant(1), data.weight_zero_point)
    filters, _, _, depth = w.shape
    at, channels = data.window, np.arange(depth)
    rows = _largest([_spread_to(at, y, 0) for y in range(at.height)])
    columns = _largest([_spread_to(at, x, 1) for x in range(at.width)])
    seen = _grid(rows, columns, at.kernel_w, at.out_w)
    return w.reshape(filters, -1), lambda channel: [
        _over_channels(pixels * depth, taps * depth, channels) for taps, pixels in seen
    ]


def _over_channels(elements: Ints, taps: Ints, channels: Ints) -> ReceptiveField:
    """Return the field that reads all these channels of a pixel by the taps that follow each other."""
    return ReceptiveField((elements[:, None] + channels).reshape(-1), (taps[:, None] + channels).reshape(-1))


def _weights(node: Node, data: conv_2d.OpData | depthwise_conv_2d.OpData) -> Array:
    w = node.constant(1)
    return centre(weights_read_as_int8(w) if data.output.pipeline.dtype == np.int16 else w, data.weight_zero_point)


#: How sums are read, by the type of the prepared data.
READERS: Mapping[type, Reader] = {
    conv_2d.OpData: Reader(conv_2d.eval_quantized, _convolution),
    depthwise_conv_2d.OpData: Reader(depthwise_conv_2d.eval_quantized, _depthwise),
    fully_connected.OpData: Reader(fully_connected.eval_quantized, _dense),
    transpose_conv.OpData: Reader(transpose_conv.eval_quantized, _transpose, x=2),
}


def _seen(at: Window) -> list[tuple[Ints, Ints]]:
    """Return the sets of taps that are inside the image somewhere, with their pixels.

    Subsets of another are left out.
    """
    rows = _largest([_inside(at, y, 0) for y in range(at.out_h)])
    columns = _largest([_inside(at, x, 1) for x in range(at.out_w)])
    return _grid(rows, columns, at.kernel_w, at.width)


def _grid(
    rows: Sequence[Mapping[int, int]], columns: Sequence[Mapping[int, int]], kernel_w: int, width: int
) -> list[tuple[Ints, Ints]]:
    """Return the taps and pixels of each pair of rows and columns."""
    return [
        (
            np.array([ky * kernel_w + kx for ky in row for kx in column], np.int64),
            np.array([y * width + x for y in row.values() for x in column.values()], np.int64),
        )
        for row, column in product(rows, columns)
    ]


def _largest(seen: Sequence[Mapping[int, int]]) -> list[Mapping[int, int]]:
    """Return one of each with the same taps, without those whose taps are part of another's."""
    distinct = {frozenset(taps): taps for taps in seen}
    return [taps for keys, taps in distinct.items() if not any(keys < other for other in distinct)]


def _inside(at: Window, position: int, axis: int) -> dict[int, int]:
    """Return the pixel of each kernel index inside the image along one axis, for one output position."""
    size, kernel, stride, dilation, before = (
        (at.height, at.kernel_h, at.stride_h, at.dilation_h, at.pad_top),
        (at.width, at.kernel_w, at.stride_w, at.dilation_w, at.pad_left),
    )[axis]
    taps = ((k, position * stride - before + k * dilation) for k in range(kernel))
    return {k: pixel for k, pixel in taps if 0 <= pixel < size}


def _spread_to(at: Window, position: int, axis: int) -> dict[int, int]:
    """Return the input pixel of each kernel index that adds to one output position, along one axis."""
    size, kernel, stride, before = (
        (at.out_h, at.kernel_h, at.stride_h, at.pad_top),
        (at.out_w, at.kernel_w, at.stride_w, at.pad_left),
    )[axis]
    places = ((k, divmod(position + before - k, stride)) for k in range(kernel))
    return {k: pixel for k, (pixel, rest) in places if rest == 0 and 0 <= pixel < size}
