"""Other orders of an array's elements: along axes, of axes, of neighbours, of blocks of channels, of rows in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
#: Indices of the elements that are in each place, -1 where that is not known.
Map = Ints
#: Names of axes by rank.
AXES = {
    4: ("image", "row", "column", "channel"),
    3: ("image", "row", "channel"),
    2: ("row", "channel"),
    1: ("element",),
}
#: Sizes of blocks of channels, alignments of rows in elements, and distances of shifts along an axis.
_BLOCKS, _ALIGNED, _SHIFTS = (4, 8, 16, 32), (2, 4, 8, 16, 32, 64), (1, 2, 3, 4)
#: Orders that hypotheses about arithmetic try together with other mistakes (tflq/diagnosis/mistakes/layouts.py).
_ARITHMETIC = ((0, 3, 1, 2), (0, 2, 1, 3))


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Another order of an array's elements, by name."""

    name: str
    source: Map


def orders(shape: Sequence[int]) -> Iterator[Order]:
    """Yield the orders along each axis, of blocks of channels, of neighbours and of axes."""
    size = math.prod(shape)
    places = np.arange(size, dtype=np.int64).reshape(tuple(shape))
    names = AXES.get(len(shape), tuple(f"axis {k}" for k in range(len(shape))))
    for axis, name in enumerate(names):
        if shape[axis] > 1:
            for text, picks in _along(name, shape[axis]):
                taken = places.take(np.maximum(picks, 0), axis)
                outside = np.moveaxis(np.broadcast_to(picks < 0, np.moveaxis(places, axis, -1).shape), -1, axis)
                yield Order(text, np.where(outside, -1, taken).reshape(-1))
    if len(shape) == 4 and min(shape[1:3]) > 1:
        yield Order("rotated by half a turn", places[:, ::-1, ::-1].reshape(-1))
    for count, text in ((2, "neighbours exchanged in pairs"), (4, "the order reversed in every four elements")):
        if size % count == 0:
            yield Order(f"{text} (endianness)", places.reshape(-1, count)[:, ::-1].reshape(-1))
    yield from _blocks(places)
    yield from _transpose(places)


def _transpose(places: Ints) -> Iterator[Order]:
    """Yield other orders of the axes, each different one once, without those that hypotheses about arithmetic try."""
    letters = {4: "NHWC", 3: "NHC", 2: "NC"}.get(places.ndim, "")
    orders = list(permutations(range(places.ndim))) if letters else []
    known = {source.tobytes() for order in orders if order in _ARITHMETIC for source in _both(places, order)}
    for order in orders:
        name = "".join(letters[i] for i in order)
        for verb, source in zip(("stored", "read"), _both(places, order), strict=True):
            if source.tobytes() not in known:
                known.add(source.tobytes())
                yield Order(f"transposed, {verb} as {name} in place of {letters}", source)


def _both(places: Ints, order: tuple[int, ...]) -> tuple[Map, Map]:
    """Return the elements in memory of an array stored in an order of axes, and read in it."""
    back: Any = np.argsort(order)
    read = places.reshape([places.shape[i] for i in order]).transpose(back)
    return np.ascontiguousarray(places.transpose(order)).reshape(-1), np.ascontiguousarray(read).reshape(-1)


def _along(axis: str, size: int) -> Iterator[tuple[str, Ints]]:
    """Yield the indices of the slices in the places of an axis, -1 where they are not known."""
    places = np.arange(size)
    yield f"{axis}s in reverse order", places[::-1]
    for kept, word in ((0, "first"), (size - 1, "last")):
        yield f"every {axis} is the {word} one", np.full(size, kept)
    for step in [s for s in _SHIFTS if s < size]:
        for by in (step, -step):
            way = f"{step} {axis}{'s' if step > 1 else ''} {'late' if by > 0 else 'early'}"
            inside = (places - by >= 0) & (places - by < size)
            yield f"shifted, {way}, with wrap-around", (places - by) % size
            yield f"shifted, {way}", np.where(inside, places - by, -1)
    if size % 2 == 0:
        yield f"halves of the {axis}s exchanged", np.roll(places, size // 2)
        yield f"{axis}s exchanged in pairs", places ^ 1
        yield f"the first half of the {axis}s twice", places % (size // 2)
        yield f"the second half of the {axis}s twice", places % (size // 2) + size // 2
        yield f"{axis}s interleaved", np.concatenate([places[::2], places[1::2]])
        yield f"{axis}s of two halves interleaved", places.reshape(2, -1).T.reshape(-1)
    yield f"every second {axis} repeats the one before", places // 2 * 2


def _blocks(places: Ints) -> Iterator[Order]:
    """Yield images stored in blocks of channels, and read from these."""
    if places.ndim != 4:
        return
    n, h, w, c = places.shape
    for block in _BLOCKS:
        if block < c and c % block == 0:
            inside = places.reshape(n, h * w, c // block, block).transpose(0, 2, 1, 3).reshape(-1)
            yield Order(f"stored in blocks of {block} channels (NC{block}HW{block})", inside)
            outside = places.reshape(n, c // block, h * w, block).transpose(0, 2, 1, 3).reshape(-1)
            yield Order(f"read from blocks of {block} channels (NC{block}HW{block})", outside)


def pitches(shape: Sequence[int]) -> Iterator[Order]:
    """Yield rows that are read at aligned distances, or at distances off by one column."""
    if len(shape) != 4 or shape[1] < 2:
        return
    n, h, w, c = shape
    width, size = w * c, math.prod(shape)
    strides = {-(-width // a) * a: f"aligned to {a}" for a in _ALIGNED}
    strides |= {width + c: "one column too long", width - c: "one column too short", width + 1: "one too long"}
    for stride, text in strides.items():
        if stride != width:
            source = np.arange(n * h)[:, None] * stride + np.arange(width)[None, :]
            source = np.where(source < size, source, -1).reshape(-1)
            yield Order(f"rows of {width:,} elements lie {stride:,} apart, {text} (wrong stride)", source)
