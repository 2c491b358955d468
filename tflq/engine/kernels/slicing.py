"""SLICE, STRIDED_SLICE, DYNAMIC_UPDATE_SLICE: blocks of a tensor.

SLICE: a block of a tensor.

| operand | shape       | types                                | quantization |
|---------|-------------|--------------------------------------|--------------|
| x       | any         | every 8 to 64 bit type, int4, string | passed by    |
| begin   | (rank of x) | int32, int64                         |              |
| size    | (rank of x) | as begin                             |              |
| y       | size        | as x                                 | passed by    |

A size of -1 reaches to the end. From TensorFlow 2.10 on, an output is not resized if its declared shape is whole;
LiteRT 2.3 refuses one that is another shape.
Source: LiteRT 2.3, slice.cc CalculateOutputShapeVector.

STRIDED_SLICE: begin, end and stride per dimension, with masks.

| operand | shape           | types                          | quantization |
|---------|-----------------|--------------------------------|--------------|
| x       | any             | every 8 to 64 bit type, string | passed by    |
| begin   | (n), n up to 31 | int32                          |              |
| end     | (n)             | int32                          |              |
| strides | (n)             | int32                          |              |
| y       |                 | as x                           | passed by    |

Options, bit i for entry i: begin_mask, end_mask (from, to the border), ellipsis_mask (as many whole dimensions as are
left over), new_axis_mask (a new dimension of size 1), shrink_axis_mask (one position, the dimension disappears);
offset (end counts from begin).
Refused: slices without elements in 2.3, which leaves one element.
Source: LiteRT 2.3, strided_slice.cc BuildStridedSliceParams, ResizeOutputTensor; reference/strided_slice.h.

DYNAMIC_UPDATE_SLICE: a tensor with one block replaced.

| operand | shape                 | types                         | quantization |
|---------|-----------------------|-------------------------------|--------------|
| x       | up to 8 dimensions    | every 8 to 64 bit type, int4  | passed by    |
| update  | same rank, no larger  | as x                          | passed by    |
| start   | (rank)                | int32, int64                  |              |
| y       | as x                  | as x                          | passed by    |

Starts are moved so that the block lies inside. A block as large as the tensor replaces it whole.
Source: LiteRT 2.3, dynamic_update_slice.cc ClampStartIndices, DynamicUpdateSlice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.engine.kernels.checks import integers, require_rank, require_same_type
from tflq.engine.kernels.families.movement import INDEX, SIZED, Copying
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, Shape, filling, valid
from tflq.engine.kernels.validity import opt, tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.rounding import INT32_MIN
from tflq.errors import UndefinedResultError
from tflq.typing import Array

Block = tuple[slice, ...]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require a block inside the input."""
    x, begin, size = node.input(0), node.input(1), node.input(2)
    require_same_type(node, x, node.outputs[0])
    require_same_type(node, begin, size)
    rank = len(x.shape)
    for operand in (begin, size):
        node.check(operand.shape == (rank,), "shape", operand, expected=[rank], got=list(operand.shape))
    starts = integers(node, 1)
    sizes = [
        requested if requested != -1 else extent - start
        for extent, start, requested in zip(x.shape, starts, integers(node, 2), strict=True)
    ]
    for axis, (extent, start, count) in enumerate(zip(x.shape, starts, sizes, strict=True)):
        inside = start >= 0 and count >= 0 and start + count <= extent
        node.check(inside, f"begin {start}, size {count} of dimension {axis}", expected=f"inside {extent}")
    block: Block = tuple(slice(start, start + count) for start, count in zip(starts, sizes, strict=True))
    return Prepared((tuple(sizes),), block, eval_slice)


def prepare_declared(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse an output whose declared shape is whole and another one: it is not resized."""
    prepared, declared = prepare(node, arithmetic), _declare(node)
    if declared is not None and declared != prepared.shapes[0]:
        node.reject("declared shape", node.outputs[0], expected=list(prepared.shapes[0] or ()), got=list(declared))
    return prepared


def prepare_unchecked(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Raise for an output whose declared shape is whole and another one: it is written as if it were resized."""
    prepared, declared = prepare(node, arithmetic), _declare(node)
    if declared is not None and declared != prepared.shapes[0]:
        raise UndefinedResultError(node.op, "the output keeps a declared shape that is another one")
    return prepared


def _declare(node: Node) -> tuple[int, ...] | None:
    """Return the output's declared shape; None if it has no dimension, or one that is open."""
    y = node.outputs[0]
    return y.shape if y.shape and not y.is_open else None


@filling(lambda block, x, *_: (tuple(part.stop - part.start for part in block), x.dtype))
def eval_slice(block: Block, out: Array, x: Array, begin: Array, size: Array) -> Call:
    """Source: reference_ops::Slice."""
    return Copying(x[block] if block else x, out)


_X = f"{SIZED}|int4|string"

_ROW = Kernel("SLICE", f"{_X} int32|int64 int32|int64 -> {_X}", prepare, (1, 8), shape_operands=(1, 2))

_SLICE = (
    _ROW,
    *valid(tflite("tflite-2.11", "litert-2.2"), replace(_ROW, prepare=prepare_unchecked)),
    *valid(tflite("litert-2.3"), replace(_ROW, prepare=prepare_declared)),
)


MAX_ENTRIES = 31


@dataclass(frozen=True, slots=True)
class SlicedAxis:
    """One dimension of the input as the slice sees it, after the masks are applied."""

    size: int
    begin: int = 0
    end: int = 0
    stride: int = 1
    from_border: bool = False
    to_border: bool = False
    shrinks: bool = False

    def start(self) -> int:
        """Return the first position: inside the dimension, or one step beyond it if nothing is taken."""
        forward = self.stride > 0
        if self.from_border:
            return 0 if forward else self.size - 1
        start = self.begin + self.size if self.begin < 0 else self.begin
        return min(max(start, 0), self.size) if forward else min(max(start, -1), self.size - 1)

    def stop(self, start: int, offset: bool) -> int:
        """Return the position before which it ends."""
        forward = self.stride > 0
        if self.shrinks:
            return start if start >= self.size else start + 1
        if self.to_border:
            return self.size if forward else -1
        stop = self.end + start if offset else self.end
        stop = stop + self.size if stop < 0 else stop
        return min(max(stop, 0), self.size) if forward else min(max(stop, -1), self.size - 1)


@dataclass(frozen=True, slots=True)
class OpData:
    """The shape of the input with its new dimensions, what is taken of each, and the output's shape."""

    expanded: Shape
    taken: tuple[slice, ...]
    shape: Shape


def prepare_strided_slice(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse an output shape, which `offset` takes from `end` alone, that is not the one written."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    axes = effective_axes(node, x.shape)
    offset = bool(node.options["offset"])
    starts = [axis.start() for axis in axes]
    stops = [axis.stop(start, offset) for axis, start in zip(axes, starts, strict=True)]
    counts = [count(start, stop, axis.stride) for start, stop, axis in zip(starts, stops, axes, strict=True)]
    for index, (axis, written) in enumerate(zip(axes, counts, strict=True)):
        promised = 1 if axis.shrinks else declared_count(node, axis, index) if offset else written
        if written != promised:
            raise UndefinedResultError("StridedSlice", f"writes {written} positions of a dimension of {promised}")
    taken = tuple(places(start, n, axis.stride) for start, n, axis in zip(starts, counts, axes, strict=True))
    shape = tuple(n for n, axis in zip(counts, axes, strict=True) if not axis.shrinks)
    return Prepared((shape,), OpData(tuple(axis.size for axis in axes), taken, shape), eval_strided_slice)


def count(start: int, stop: int, stride: int) -> int:
    """Return the number of positions from `start` up to `stop`, exclusive."""
    span, step = (stop - start, stride) if stride > 0 else (start - stop, -stride)
    return max(0, -(-span // step))


def places(start: int, number: int, stride: int) -> slice:
    """Return the slice of `number` positions from `start` on."""
    stop = start + number * stride
    return slice(start, stop if stop >= 0 else None, stride) if number else slice(0, 0)


def declared_count(node: Node, axis: SlicedAxis, index: int) -> int:
    """Return the output's size with `offset`: entry `index` of `end`, regardless of the masks."""
    ends = integers(node, 2)
    node.check(index < len(ends), "entries of end with offset", expected=f"more than {index}", got=len(ends))
    span = ends[index]
    return 0 if (span < 0) != (axis.stride < 0) else count(0, span, axis.stride)


def effective_axes(node: Node, shape: Shape) -> list[SlicedAxis]:
    """Return the input's dimensions and new ones, with begin, end and stride; the rest are taken whole."""
    begins, ends, strides = integers(node, 1), integers(node, 2), integers(node, 3)
    check_entries(node, begins, ends, strides)

    def has(name: str, entry: int) -> bool:
        return bool(int(node.options[f"{name}_mask"]) >> entry & 1)

    added = sum(has("new_axis", entry) and not has("ellipsis", entry) for entry in range(len(begins)))
    rank = len(shape) + added
    whole, new = ellipsis_and_new_axes(node, len(shape), added, len(begins))
    axes: list[SlicedAxis] = []
    sizes = iter(shape)
    inside_ellipsis = 0  # dimensions that the ellipsis covers beyond its own entry, so far
    first = min(whole, default=rank)
    expanded = max(0, len(whole) - 1)
    for index in range(rank):
        if index in whole:
            inside_ellipsis = max(0, index - first)
            axes.append(SlicedAxis(next(sizes), from_border=True, to_border=True))
        elif index in new:
            axes.append(SlicedAxis(1, end=1))
        elif index >= len(begins) + expanded:
            axes.append(SlicedAxis(next(sizes), from_border=True, to_border=True))
        else:
            entry = index - inside_ellipsis
            axes.append(
                SlicedAxis(
                    next(sizes),
                    begins[entry],
                    ends[entry],
                    strides[entry],
                    from_border=has("begin", entry),
                    to_border=has("end", entry),
                    shrinks=has("shrink_axis", entry),
                )
            )
    for axis in axes:
        node.check(axis.stride not in (0, INT32_MIN), "stride", node.input(3), expected="not 0", got=axis.stride)
    return axes


def ellipsis_and_new_axes(node: Node, rank: int, added: int, entries: int) -> tuple[set[int], set[int]]:
    """Return the effective dimensions that the ellipsis covers, and the new ones."""
    ellipsis, new_axis = int(node.options["ellipsis_mask"]), int(node.options["new_axis_mask"])
    total = rank + added
    whole: set[int] = set()
    new: set[int] = set()
    expanded = index = 0
    while index < total:
        if ellipsis >> index & 1:
            end = max(index + 1, min(index + 1 + added + rank - entries, total))
            node.check(not whole, "more than one ellipsis", got=bin(ellipsis))
            whole.update(range(index, end))
            expanded = end - index - 1
            index = end
            continue
        if new_axis >> (index - expanded) & 1:
            new.add(index)
        index += 1
    return whole, new


def check_entries(node: Node, begins: tuple[int, ...], ends: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Require begin, end and strides to be vectors of one length."""
    for position in (1, 2, 3):
        operand = node.input(position)
        require_rank(node, operand, 1)
    node.check(
        len(begins) == len(ends) == len(strides),
        "entries of begin, end and strides",
        expected=len(begins),
        got=[len(ends), len(strides)],
    )
    node.check(len(begins) <= MAX_ENTRIES, "entries of begin", expected=f"up to {MAX_ENTRIES}", got=len(begins))


@filling(lambda data, x, *_: (data.shape, x.dtype))
def eval_strided_slice(data: OpData, out: Array, x: Array, *_: Array) -> Call:
    """Source: reference_ops::StridedSlice."""
    taken = x.reshape(data.expanded)[data.taken]
    return Copying(taken, out.reshape(taken.shape))


_STRIDED_SLICE_X = f"{SIZED}|string"
ROWS = (
    Kernel(
        "STRIDED_SLICE",
        f"{_STRIDED_SLICE_X} int32 int32 int32 -> {_STRIDED_SLICE_X}",
        prepare_strided_slice,
        (1, 8),
        shape_operands=(1, 2, 3),
    ),
)


def _not_empty(row: Kernel) -> Kernel:
    """Return the row, which refuses slices without elements."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = row.prepare(node, arithmetic)
        if any(shape is not None and prod(shape) == 0 for shape in prepared.shapes):
            raise UndefinedResultError(node.op, "slices without elements have other shapes in 2.3")
        return prepared

    return replace(row, prepare=prepare)


_STRIDED_SLICE = (*ROWS, *valid(opt(until="tf-2.3"), *map(_not_empty, ROWS)))


def prepare_dynamic_update_slice(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require an update that fits into the tensor."""
    x, update, start = (node.input(position) for position in range(3))
    require_same_type(node, x, update, node.outputs[0])
    require_rank(node, x, 0, 8)
    rank = len(x.shape)
    node.check(start.shape == (rank,), "shape", start, expected=[rank], got=list(start.shape))
    fits = len(update.shape) == rank and all(a <= b for a, b in zip(update.shape, x.shape, strict=True))
    node.check(fits, "shape", update, expected=f"inside {list(x.shape)}", got=list(update.shape))
    furthest = np.subtract(x.shape, update.shape).astype(np.int64)
    return Prepared((x.shape,), furthest, eval_dynamic_update_slice)


def eval_dynamic_update_slice(furthest: Array, x: Array, update: Array, start: Array) -> Array:
    """Source: DynamicUpdateSlice. `furthest` is the last start that keeps the block inside."""
    out = x.copy()
    begins = np.clip(start.astype(np.int64), 0, furthest).tolist()
    block = tuple(slice(begin, begin + size) for begin, size in zip(begins, update.shape, strict=True))
    out[block] = update
    return out


_DYNAMIC_UPDATE_SLICE_X = f"{SIZED}|int4"

_DYNAMIC_UPDATE_SLICE = (
    Kernel(
        "DYNAMIC_UPDATE_SLICE",
        f"{_DYNAMIC_UPDATE_SLICE_X} {_DYNAMIC_UPDATE_SLICE_X} {INDEX} -> {_DYNAMIC_UPDATE_SLICE_X}",
        prepare_dynamic_update_slice,
        (1, 6),
    ),
)

#: The rows of all operators above.
KERNELS = (*_SLICE, *_STRIDED_SLICE, *_DYNAMIC_UPDATE_SLICE)
