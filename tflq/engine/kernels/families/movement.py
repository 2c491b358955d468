"""Operators that only move elements: types, places, blocks, images.

Operators that only move elements: the evals that their kernel files share.

They copy bits, so they are the same for every element type, and nothing is rounded anywhere. Results are contiguous;
a mere change of shape is a view.

Signature alternatives by the width of an element: operators that only move elements are the same for all of them.

Source: LiteRT 2.3 kernel_util.cc TfLiteTypeGetSizeBits.

Positions that a run brings along: what the source checks before it reads or writes there.

Blocks of pixels that trade places with the batch dimension: what SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND share.

Images in another size: what the resize operators share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.kernels.checks import (
    integers,
    require_rank,
    require_same_quantization,
    require_same_type,
    require_zero_point_zero,
)
from tflq.engine.kernels.kernel import Call, Node, Prepared, Shape
from tflq.errors import LimitError
from tflq.model.ir import TensorType
from tflq.typing import Array

#: Most runs of neighbouring bytes, and most bytes, that are copied by compiled code: NumPy begins later.
_MOST_RUNS, MOST_BYTES = 256, 1 << 14


def contiguous(x: Array) -> Array:
    """Return `x`, copied unless its elements already lie in order."""
    return np.asarray(x, order="C")


@dataclass(frozen=True, slots=True, eq=False)
class Copying:
    """The call that copies `x`, which broadcasts to the shape of `out`, into `out`."""

    x: Array
    out: Array

    def __call__(self) -> None:
        """Copy by NumPy."""
        np.copyto(self.out, self.x)

    def bound(self) -> Call:
        """Return a call that begins sooner, for a short copy that is made repeatedly."""
        x, out = self.x, self.out
        plain = partial(np.copyto, out, x)
        if x.dtype != out.dtype or x.dtype.hasobject or not 0 < out.nbytes <= MOST_BYTES:
            return plain
        axes = _merged(np.broadcast_to(x, out.shape), out)
        run = x.itemsize
        if axes and axes[-1][1:] == (run, run):
            run *= axes.pop()[0]
        runs, is_forward = prod(size for size, *_ in axes), all(min(axis) >= 0 for axis in axes)
        if len(axes) > 3 or runs > _MOST_RUNS or not is_forward:
            return plain
        counts, steps, places = zip(*((1, 0, 0),) * (3 - len(axes)), *axes, strict=True)
        return _copy_runs.bound(_bytes(x), _bytes(out), run, counts, steps, places)


def _merged(x: Array, out: Array) -> list[tuple[int, int, int]]:
    """Return extents with the strides of two arrays of one shape, neighbours in both as one axis."""
    axes: list[tuple[int, int, int]] = []
    for size, step, place in zip(out.shape, x.strides, out.strides, strict=True):
        if axes and axes[-1][1:] == (step * size, place * size):
            axes[-1] = axes[-1][0] * size, step, place
        elif size != 1:
            axes.append((size, step, place))
    return axes


def _bytes(x: Array) -> Array:
    """Return the bytes from the first element of `x` to the last, whose strides are not negative."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.strides, strict=True)) // x.itemsize
    return np.lib.stride_tricks.as_strided(x, (span,), (x.itemsize,)).view(np.uint8)


@writes("out")
@compiled
def _copy_runs(x: Array, out: Array, run: Int, counts: Shape, steps: Shape, places: Shape) -> None:
    """Copy runs of bytes. The caller guarantees: three counts, and strides with which all runs lie inside."""
    for i in range(counts[0]):
        for j in range(counts[1]):
            for k in range(counts[2]):
                source = i * steps[0] + j * steps[1] + k * steps[2]
                place = i * places[0] + j * places[1] + k * places[2]
                row, copy = x[source : source + run], out[place : place + run]
                for byte in range(run):
                    copy[byte] = row[byte]


def prepare_view(shape: Shape) -> Prepared:
    """Return the operator whose output is its first input in another shape."""
    return Prepared((shape,), Pieces((shape,)), eval_view)


@dataclass(frozen=True, slots=True)
class Pieces:
    """An input cut into outputs, one after the other as they lie in memory."""

    shapes: tuple[Shape, ...]
    position: int = 0  # of the input


def eval_view(data: Pieces, *inputs: Array | None) -> tuple[Array, ...]:
    """Return the elements unchanged and in order. Source: a memcpy in all these kernels."""
    x = inputs[data.position]
    assert x is not None
    if len(data.shapes) == 1:
        return (x.reshape(data.shapes[0]),)
    flat, outputs, start = x.reshape(-1), [], 0
    for shape in data.shapes:
        size = prod(shape)
        outputs.append(flat[start : start + size].reshape(shape))
        start += size
    return tuple(outputs)


BITS_4 = "int4|uint4"
BITS_8 = "bool|int8|uint8|float8_e4m3fn|float8_e5m2"
BITS_16 = "int16|uint16|float16|bfloat16"
BITS_32 = "float32|int32|uint32"
BITS_64 = "int64|uint64|float64|complex64"

#: Every type whose elements fill one, two, four or eight bytes.
SIZED = f"{BITS_8}|{BITS_16}|{BITS_32}|{BITS_64}"

#: Types of shapes, axes and indices.
INDEX = "int32|int64"


def check_positions(name: str, positions: Array, size: int) -> None:
    """Require every position to lie in [0, size): otherwise the source stops the run."""
    if positions.size and (positions.min() < 0 or positions.max() >= size):
        wrong = positions[(positions < 0) | (positions >= size)].reshape(-1)[0]
        raise IndexError(f"{name} index {wrong} outside [0, {size})")


def coordinates(name: str, indices: Array, shape: Shape) -> tuple[Array, ...]:
    """Return the last dimension of `indices` as coordinates, one array each, checked against the sizes of `shape`."""
    parts = tuple(np.moveaxis(indices, -1, 0).astype(np.intp))
    for part, size in zip(parts, shape, strict=False):
        check_positions(name, part, size)
    return parts


@dataclass(frozen=True, slots=True)
class BatchBlocks:
    """The input as (N, H, W, C), with W = 1 if there is none; block sizes and margins of H and W."""

    image: tuple[int, int, int, int]
    block: tuple[int, int]
    margins: tuple[tuple[int, int], tuple[int, int]]

    @staticmethod
    def seen(full: tuple[int, int, int, int], rank: int) -> Shape:
        """Return a four-dimensional shape as the tensor has it: three dimensions lack the width."""
        n, h, w, c = full
        return (n, h, w, c) if rank == 4 else (n, h, c)


def blocks_of(node: Node) -> BatchBlocks:
    """Read blocks from input 1, margins (paddings or crops) from input 2."""
    x, block, margins = node.input(0), node.input(1), node.input(2)
    require_rank(node, x, 3, 4)
    spatial = len(x.shape) - 2
    node.check(block.shape == (spatial,), "shape of the block", block, expected=[spatial], got=list(block.shape))
    expected = (spatial, 2)
    node.check(margins.shape == expected, "shape", margins, expected=list(expected), got=list(margins.shape))
    sizes, amounts = integers(node, 1), integers(node, 2)
    node.check(min(sizes) > 0, "block", block, expected="more than 0", got=list(sizes))
    pairs = (amounts[0], amounts[1]), (amounts[2], amounts[3]) if spatial == 2 else (0, 0)
    n, h, c = x.shape[0], x.shape[1], x.shape[-1]
    return BatchBlocks((n, h, x.shape[2] if spatial == 2 else 1, c), (sizes[0], sizes[1] if spatial == 2 else 1), pairs)


def check_quantization(node: Node) -> None:
    """Require the same scale and zero point for 8- and 16-bit integers; 16-bit ones have zero point 0."""
    x, y = node.input(0), node.outputs[0]
    require_same_type(node, x, y)
    if x.type in (TensorType.UINT8, TensorType.INT8, TensorType.INT16):
        require_same_quantization(node, x, y)
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x, y)


#: Rows or columns of an image: beyond it float32 positions are not distinct, and the tables of positions get large.
LARGEST = 1 << 24


def resized_shape(node: Node, smallest: int) -> Shape:
    """Return (N, height, width, C), with height and width from input 1, at least `smallest`."""
    x, size = node.input(0), node.input(1)
    require_rank(node, x, 4)
    node.check(size.shape == (2,), "shape of the size", size, expected=[2], got=list(size.shape))
    height, width = integers(node, 1)
    for value in (height, width):
        node.check(value >= smallest, "size", size, expected=f"at least {smallest}", got=value)
        if value > LARGEST:
            raise LimitError(f"operator {node.index} {node.op}: size {value} is beyond the limit of {LARGEST}")
    return (x.shape[0], height, width, x.shape[3])


def ratio(size: int, new_size: int, align: bool) -> np.float32:
    """Return input steps per output step, one float32 division; `align` puts the last positions onto each other."""
    if align and new_size > 1:
        return np.float32(size - 1) / np.float32(new_size - 1)
    return np.float32(size) / np.float32(new_size)
