"""Right elements in other places: shifts, strides, images of a batch, orders of bytes, blocks and axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case
from tflq.diagnosis.faults.defect import Defect, DefectKind, certainty_of
from tflq.diagnosis.faults.orders import Map, Order, orders, pitches
from tflq.errors import TflqError
from tflq.typing import Array

#: The smallest number of moved elements, of their distinct values, and the share of places that must be known.
_ENOUGH, _KNOWN = 6, 0.5
#: The largest results for which every order is tried, and the largest difference of a rounding, in LSB.
_LARGEST, _ROUNDED = 1 << 18, 2


def moved(case: Case) -> Defect | None:
    """Return how the results' elements are misplaced; None if they are not."""
    return None if _is_rounding(case) else _of_results(case) or _of_bytes(case)


def _is_rounding(case: Case) -> bool:
    """Return whether all codes lie as near the right ones as roundings put them: other places differ by more."""
    if case.observed[0].dtype.kind not in "iu":
        return False
    pairs = zip(case.expected, case.observed, strict=True)
    return max(int(np.abs(e.astype(np.int64) - o).max(initial=0)) for e, o in pairs) <= _ROUNDED


def _of_results(case: Case) -> Defect | None:
    shape = case.observed[0].shape
    fitting = []
    tried = orders(shape) if case.observed[0].size <= _LARGEST else ()
    for order in (*tried, *_find_shifts(case), *_find_rows(case)):
        bits = _evidence(order.source, case.expected, case.observed)
        if certainty_of(bits) != Certainty.NONE:
            fitting.append((np.count_nonzero(order.source >= 0), order, bits))
    if not fitting:
        return None
    _, order, bits = max(fitting, key=lambda one: one[0])
    return _defect(case, f"results are misplaced: {order.name}", order, bits)


def _defect(case: Case, name: str, order: Order | None, bits: float) -> Defect:
    is_whole = order is None or bool((order.source >= 0).all())
    known = (
        "every element" if order is None or is_whole else f"each of {np.count_nonzero(order.source >= 0):,} elements"
    )
    cleared = f"{known} is the right value of another place, so the arithmetic is right"
    first = int(np.flatnonzero(case.apart.reshape(-1))[0])
    index = [int(i) for i in np.unravel_index(first, case.apart.shape)]
    place = f"first at {index}, byte offset {first * case.observed[0].itemsize:,}"
    return Defect(DefectKind.ADDRESSING, name, certainty_of(bits), case.tensor, place, cleared, is_told=is_whole)


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


# --- Orders that are found -------------------------------------------------------------------------------------------


def _find_shifts(case: Case) -> Iterator[Order]:
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
            yield Order(f"shifted in memory, {way}", np.where((places >= 0) & (places < size), places, -1))
            yield Order(f"shifted in memory, {way}, with wrap-around", places % size)


def _find(right: Array, piece: Array) -> int | None:
    """Return the place of a piece in an array."""
    item = right.itemsize
    at = right.tobytes().find(np.ascontiguousarray(piece).tobytes())
    return at // item if at >= 0 and at % item == 0 else None


def _find_rows(case: Case) -> Iterator[Order]:
    """Yield strides of rows, searched by the places of the second rows."""
    shape = case.observed[0].shape
    for axis in range(1, len(shape)):
        width = math.prod(shape[axis:])
        count = case.observed[0].size // width
        if count < 3 or width < 4:
            continue
        k = next((k for k, mask in enumerate(case.masks) if mask.any()), 0)
        right, rows = case.expected[k].reshape(-1), case.observed[k].reshape(count, width)
        yield from _find_gaps(right.reshape(count, width), rows.reshape(-1))
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
        yield Order(f"rows of {width:,} elements lie {int(stride):,} apart (wrong stride)", source)


def _find_gaps(rows: Array, seen: Array) -> Iterator[Order]:
    """Yield strides by which whole rows were written with gaps between them, searched by the second and third row."""
    width = rows.shape[1]
    stride = _find(seen, rows[1]) if len(np.unique(rows[1])) > 2 else None
    if stride is None or not width < stride <= 2 * width or not np.array_equal(seen[:width], rows[0]):
        return
    row, column = np.divmod(np.arange(seen.size), stride)
    source = np.where(column < width, row * width + column, -1)
    yield Order(f"rows of {width:,} elements were written {stride:,} apart (wrong stride)", source)


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
        for order in (*orders(x.shape), *pitches(x.shape)):
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
    return Defect(DefectKind.ADDRESSING, name, certainty_of(bits), case.tensor, "", cleared, is_told=False)


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
