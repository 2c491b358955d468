"""Right elements in other places: shifts, strides, images of a batch, orders of bytes, blocks and axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Array, Case
from tflq.diagnosis.faults.defect import Defect, DefectKind, certainty_of
from tflq.errors import TflqError

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
#: The smallest number of moved elements, of their distinct values, and the share of places that must be known.
_ENOUGH, _KNOWN = 6, 0.5


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """Another order of an array's elements, by name."""

    name: str
    source: Map


def moved(case: Case) -> Defect | None:
    """Return how the results' elements are misplaced; None if they are not."""
    return _of_results(case) or _of_bytes(case)


def _of_results(case: Case) -> Defect | None:
    shape = case.observed[0].shape
    fitting = []
    for order in (*_orders(shape), *_found_shifts(case), *_found_rows(case)):
        bits = _evidence(order.source, case.expected, case.observed)
        if certainty_of(bits) != Certainty.NONE:
            fitting.append((np.count_nonzero(order.source >= 0), order, bits))
    if not fitting:
        return None
    _, order, bits = max(fitting, key=lambda one: one[0])
    return _defect(case, f"results are misplaced: {order.name}", order, bits)


def _defect(case: Case, name: str, order: _Order | None, bits: float) -> Defect:
    known = (
        "every element"
        if order is None or (order.source >= 0).all()
        else f"each of {np.count_nonzero(order.source >= 0):,} elements"
    )
    cleared = f"{known} is the right value of another place, so the arithmetic is right"
    first = int(np.flatnonzero(case.apart.reshape(-1))[0])
    index = [int(i) for i in np.unravel_index(first, case.apart.shape)]
    place = f"first at {index}, byte offset {first * case.observed[0].itemsize:,}"
    return Defect(DefectKind.ADDRESSING, name, certainty_of(bits), case.tensor, place, cleared)


def _evidence(source: Map, expected: Sequence[Array], observed: Sequence[Array]) -> float:
    """Return the bits of evidence for an order: of moved elements with distinct values; 0 if it does not fit."""
    known = source >= 0
    if np.count_nonzero(known) < _KNOWN * source.size:
        return 0.0
    bits, values = 0.0, set[float]()
    for right, seen in zip(expected, observed, strict=True):
        flat, got = right.reshape(-1), seen.reshape(-1)
        if not _agree(flat[source[known]], got[known]):
            return 0.0
        changed = known.copy()
        changed[known] = ~_equal(flat[source[known]], flat[known])
        bits += int(np.count_nonzero(changed))
        values |= set(np.unique(got[changed])[:64].tolist())
    return min(bits, 4.0 * len(values)) if bits >= _ENOUGH and len(values) > 2 else 0.0


def _equal(one: Array, other: Array) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        same: NDArray[np.bool_] = (one == other) | ((one != one) & (other != other))
    return same


def _agree(one: Array, other: Array) -> bool:
    return bool(_equal(one, other).all())


# --- Orders that are tried -------------------------------------------------------------------------------------------


def _orders(shape: Sequence[int]) -> Iterator[_Order]:
    """Yield the orders along each axis, of blocks of channels, of neighbours and of axes."""
    size = math.prod(shape)
    places = np.arange(size, dtype=np.int64).reshape(tuple(shape))
    names = AXES.get(len(shape), tuple(f"axis {k}" for k in range(len(shape))))
    for axis, name in enumerate(names):
        if shape[axis] > 1:
            for text, picks in _along(name, shape[axis]):
                taken = places.take(np.maximum(picks, 0), axis)
                outside = np.moveaxis(np.broadcast_to(picks < 0, np.moveaxis(places, axis, -1).shape), -1, axis)
                yield _Order(text, np.where(outside, -1, taken).reshape(-1))
    if len(shape) == 4 and min(shape[1:3]) > 1:
        yield _Order("rotated by half a turn", places[:, ::-1, ::-1].reshape(-1))
    for count, text in ((2, "neighbours exchanged in pairs"), (4, "the order reversed in every four elements")):
        if size % count == 0:
            yield _Order(f"{text} (endianness)", places.reshape(-1, count)[:, ::-1].reshape(-1))
    yield from _blocks(places)
    yield from _transposed(places)


def _transposed(places: Ints) -> Iterator[_Order]:
    """Yield other orders of the axes, each different one once, without those that hypotheses about arithmetic try."""
    letters = {4: "NHWC", 3: "NHC", 2: "NC"}.get(places.ndim, "")
    orders = list(permutations(range(places.ndim))) if letters else []
    known = {source.tobytes() for order in orders if order in _ARITHMETIC for source in _both(places, order)}
    for order in orders:
        name = "".join(letters[i] for i in order)
        for verb, source in zip(("stored", "read"), _both(places, order), strict=True):
            if source.tobytes() not in known:
                known.add(source.tobytes())
                yield _Order(f"transposed, {verb} as {name} in place of {letters}", source)


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


def _blocks(places: Ints) -> Iterator[_Order]:
    """Yield images stored in blocks of channels, and read from these."""
    if places.ndim != 4:
        return
    n, h, w, c = places.shape
    for block in _BLOCKS:
        if block < c and c % block == 0:
            inside = places.reshape(n, h * w, c // block, block).transpose(0, 2, 1, 3).reshape(-1)
            yield _Order(f"stored in blocks of {block} channels (NC{block}HW{block})", inside)
            outside = places.reshape(n, c // block, h * w, block).transpose(0, 2, 1, 3).reshape(-1)
            yield _Order(f"read from blocks of {block} channels (NC{block}HW{block})", outside)


# --- Orders that are found -------------------------------------------------------------------------------------------


def _found_shifts(case: Case) -> Iterator[_Order]:
    """Yield shifts in memory, searched by a piece of the results."""
    k = next((k for k, mask in enumerate(case.masks) if mask.any()), 0)
    right, seen = case.expected[k].reshape(-1), case.observed[k].reshape(-1)
    size = len(seen)
    for start in (size // 4, size // 2, 0):
        length = min(32, size // 4)
        piece = seen[start : start + length]
        if length < 4 or len(np.unique(piece)) < min(4, length):
            continue
        at = _find(right, piece)
        if at is not None and at != start:
            by = start - at
            places = np.arange(size) - by
            way = f"{abs(by):,} elements {'late' if by > 0 else 'early'}"
            yield _Order(f"shifted in memory, {way}", np.where((places >= 0) & (places < size), places, -1))
            yield _Order(f"shifted in memory, {way}, with wrap-around", places % size)


def _find(right: Array, piece: Array) -> int | None:
    """Return the place of a piece in an array."""
    item = right.itemsize
    at = right.tobytes().find(np.ascontiguousarray(piece).tobytes())
    return at // item if at >= 0 and at % item == 0 else None


def _found_rows(case: Case) -> Iterator[_Order]:
    """Yield strides of rows, searched by the places of the second rows."""
    shape = case.observed[0].shape
    for axis in range(1, len(shape)):
        width = math.prod(shape[axis:])
        count = case.observed[0].size // width
        if count < 3 or width < 4:
            continue
        k = next((k for k, mask in enumerate(case.masks) if mask.any()), 0)
        right, rows = case.expected[k].reshape(-1), case.observed[k].reshape(count, width)
        starts = [_find(right, row) if len(np.unique(row)) > 2 else None for row in rows[: min(count, 8)]]
        found = [(r, at) for r, at in enumerate(starts) if at is not None]
        steps = {(b - a) / (s - r) for (r, a), (s, b) in pairwise(found)}
        if len(found) < 2 or len(steps) != 1:
            continue
        stride = steps.pop()
        if stride != int(stride) or stride == width:
            continue
        first = found[0][1] - found[0][0] * int(stride)
        source = first + np.arange(count)[:, None] * int(stride) + np.arange(width)[None, :]
        source = np.where((source >= 0) & (source < right.size), source, -1).reshape(-1)
        yield _Order(f"rows of {width:,} elements lie {int(stride):,} apart (wrong stride)", source)


def _of_bytes(case: Case) -> Defect | None:
    """Return that the bytes of elements are in the other order, or cut."""
    item = case.observed[0].itemsize
    changes: dict[str, Callable[[Array], Array]] = {}
    if item > 1:
        changes["bytes of each element in the other order (big-endian)"] = lambda e: e.byteswap()
    if item == 4:
        changes["halves of each element exchanged"] = lambda e: _halves(e)
    for name, change in changes.items():
        if all(_agree(change(e), o) for e, o in zip(case.expected, case.observed, strict=True)):
            bits = 8.0 * min(case.differing, len(np.unique(case.observed[0])))
            if certainty_of(bits) != Certainty.NONE:
                return _defect(case, name, None, bits)
    return None


def _halves(value: Array) -> Array:
    halves = np.ascontiguousarray(value).reshape(-1).view(np.uint16).reshape(-1, 2)[:, ::-1]
    return np.ascontiguousarray(halves).view(value.dtype).reshape(value.shape)


# --- Inputs ----------------------------------------------------------------------------------------------------------


def misread(case: Case) -> Defect | None:
    """Return how an input was read in another order, if the right operator on that gives the dumped results."""
    part = case.parts[0]
    tried = 0
    for position, x in part.inputs.items():
        if x.dtype.kind not in "iuf" or x.size < _ENOUGH or x.size > 1 << 18:
            continue
        operand = case.op.inputs.index(part.tensors[position])
        for order in (*_orders(x.shape), *_pitches(x.shape)):
            tried += 1
            if all(_reads(case, k, position, order.source) for k in range(len(case.parts))):
                values = len({v for o in case.observed for v in np.unique(o).tolist()})
                bits = min(case.differing, 4 * values) - math.log2(tried)
                if certainty_of(bits) != Certainty.NONE:
                    name = f"input {operand} is read from other places: {order.name}"
                    return _defect_of_input(case, name, bits)
    return None


def _defect_of_input(case: Case, name: str, bits: float) -> Defect:
    cleared = "on that input, the right arithmetic reproduces every element that can be compared"
    return Defect(DefectKind.ADDRESSING, name, certainty_of(bits), case.tensor, "", cleared)


def _pitches(shape: Sequence[int]) -> Iterator[_Order]:
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
            yield _Order(f"rows of {width:,} elements lie {stride:,} apart, {text} (wrong stride)", source)


def _reads(case: Case, sample: int, position: int, source: Map) -> bool:
    """Return whether the operator on a reordered input gives the dumped results; unknown elements do not count."""
    part = case.parts[sample]
    x = part.inputs[position]
    known = source >= 0
    made = []
    for fill in (0, 1) if not known.all() else (0,):
        ends = np.iinfo(x.dtype) if x.dtype.kind in "iu" else np.finfo(np.float32)
        moved = np.where(known, x.reshape(-1)[np.maximum(source, 0)], x.dtype.type(ends.max if fill else 0))
        other = replace(part, inputs={**part.inputs, position: moved.reshape(x.shape).astype(x.dtype)}, got={})
        try:
            with np.errstate(all="ignore"):
                made.append(other.run(other.plan(case.profile))[case.tensor])
        except TflqError:
            return False
    stable = _equal(made[0], made[-1])
    seen = case.observed[sample]
    if made[0].shape != seen.shape or np.count_nonzero(stable) < _KNOWN * seen.size:
        return False
    return _agree(made[0][stable], seen[stable])
