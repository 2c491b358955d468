"""Right elements in other places, padding that was not made, and faults of which only the place is known.

Orders along axes, of axes, neighbours, blocks of channels and rows in memory; shifts, strides, orders of bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.prepared import parts_of
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Defect, DefectKind, Mask, WrongResult, certainty_of
from tflq.diagnosis.faults.memory import block_of, block_text
from tflq.diagnosis.mistakes.device import read_as, stored_as
from tflq.diagnosis.mistakes.tensors import CHANNEL_AXIS
from tflq.engine.kernels.geometry.windows import Window
from tflq.errors import TflqError
from tflq.typing import Array, Ints

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
class ElementOrder:
    """Another order of an array's elements, by name.

    `away` is the distance of all of them from their right places, as in "2 rows too high", if there is one.
    """

    name: str
    source: Map
    away: str = ""


def orders(shape: Sequence[int]) -> Iterator[ElementOrder]:
    """Yield the orders along each axis, of blocks of channels, of neighbours and of axes."""
    size = math.prod(shape)
    places = np.arange(size, dtype=np.int64).reshape(tuple(shape))
    names = AXES.get(len(shape), tuple(f"axis {k}" for k in range(len(shape))))
    for axis, name in enumerate(names):
        if shape[axis] > 1:
            for text, picks, away in _along(name, shape[axis]):
                taken = places.take(np.maximum(picks, 0), axis)
                outside = np.moveaxis(np.broadcast_to(picks < 0, np.moveaxis(places, axis, -1).shape), -1, axis)
                yield ElementOrder(text, np.where(outside, -1, taken).reshape(-1), away)
    if len(shape) == 4 and min(shape[1:3]) > 1:
        yield ElementOrder("rotated by half a turn", places[:, ::-1, ::-1].reshape(-1))
    for count, text in ((2, "neighbours exchanged in pairs"), (4, "the order reversed in every four elements")):
        if size % count == 0:
            yield ElementOrder(f"{text} (endianness)", places.reshape(-1, count)[:, ::-1].reshape(-1))
    yield from _blocks(places)
    yield from _transpose(places)


def _transpose(places: Ints) -> Iterator[ElementOrder]:
    """Yield other orders of the axes, each different one once, without those that hypotheses about arithmetic try."""
    letters = {4: "NHWC", 3: "NHC", 2: "NC"}.get(places.ndim, "")
    orders = list(permutations(range(places.ndim))) if letters else []
    ways = {"stored": stored_as, "read": read_as}
    known = {way(places, order).tobytes() for order in orders if order in _ARITHMETIC for way in ways.values()}
    for order in orders:
        name = "".join(letters[i] for i in order)
        for verb, way in ways.items():
            source = way(places, order).reshape(-1)
            if source.tobytes() not in known:
                known.add(source.tobytes())
                yield ElementOrder(f"transposed, {verb} as {name} in place of {letters}", source)


#: Words for a shift towards the start and the end of an axis: where the elements went, and where they are then.
_WAYS = {
    "row": (("up", "too high"), ("down", "too low")),
    "column": (("left", "too far left"), ("right", "too far right")),
}
_ANY_WAY = (("towards the start", "too early"), ("towards the end", "too late"))


def _along(axis: str, size: int) -> Iterator[tuple[str, Ints, str]]:
    """Yield the indices of the slices in the places of an axis, -1 where they are not known; and how far they are."""
    places = np.arange(size)
    for step in [s for s in _SHIFTS if s < size]:
        for by in (step, -step):
            way, where = _WAYS.get(axis, _ANY_WAY)[by > 0]
            far = f"{step} {axis}{'s' if step > 1 else ''}"
            inside = (places - by >= 0) & (places - by < size)
            yield f"shifted {way} by {far}, with wrap-around", (places - by) % size, f"{far} {where}"
            yield f"shifted {way} by {far}", np.where(inside, places - by, -1), f"{far} {where}"
    yield from ((text, picks, "") for text, picks in _permuted(axis, places))


def _permuted(axis: str, places: Ints) -> Iterator[tuple[str, Ints]]:
    """Yield the indices of the slices of an axis in orders other than shifts."""
    size = len(places)
    yield f"{axis}s in reverse order", places[::-1]
    for kept, word in ((0, "first"), (size - 1, "last")):
        yield f"every {axis} is the {word} one", np.full(size, kept)
    if size % 2 == 0:
        yield f"halves of the {axis}s exchanged", np.roll(places, size // 2)
        yield f"{axis}s exchanged in pairs", places ^ 1
        yield f"the first half of the {axis}s twice", places % (size // 2)
        yield f"the second half of the {axis}s twice", places % (size // 2) + size // 2
        yield f"{axis}s interleaved", np.concatenate([places[::2], places[1::2]])
        yield f"{axis}s of two halves interleaved", places.reshape(2, -1).T.reshape(-1)
    yield f"every second {axis} repeats the one before", places // 2 * 2


def _blocks(places: Ints) -> Iterator[ElementOrder]:
    """Yield images stored in blocks of channels, and read from these."""
    if places.ndim != 4:
        return
    n, h, w, c = places.shape
    for block in _BLOCKS:
        if block < c and c % block == 0:
            inside = places.reshape(n, h * w, c // block, block).transpose(0, 2, 1, 3).reshape(-1)
            yield ElementOrder(f"stored in blocks of {block} channels (NC{block}HW{block})", inside)
            outside = places.reshape(n, c // block, h * w, block).transpose(0, 2, 1, 3).reshape(-1)
            yield ElementOrder(f"read from blocks of {block} channels (NC{block}HW{block})", outside)


def pitches(shape: Sequence[int]) -> Iterator[ElementOrder]:
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
            yield ElementOrder(f"rows of {width:,} elements lie {stride:,} apart, {text} (wrong stride)", source)


#: The smallest number of moved elements, of their distinct values, and the share of places that must be known.
_ENOUGH, _KNOWN = 6, 0.5
#: The largest results for which every order is tried, and the largest difference of a rounding, in LSB.
_LARGEST, _ROUNDED = 1 << 18, 2


def moved(case: WrongResult) -> Defect | None:
    """Return how the results' elements are misplaced; None if they are not."""
    return None if _is_rounding(case) else _of_results(case) or _of_bytes(case)


def _is_rounding(case: WrongResult) -> bool:
    """Return whether all codes lie as near the right ones as roundings put them: other places differ by more."""
    if case.observed[0].dtype.kind not in "iu":
        return False
    pairs = zip(case.expected, case.observed, strict=True)
    return max(int(np.abs(e.astype(np.int64) - o).max(initial=0)) for e, o in pairs) <= _ROUNDED


def _of_results(case: WrongResult) -> Defect | None:
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
    is_moved = order.name.startswith(("shifted", "rotated", "transposed"))
    name = f"the output is {'' if is_moved else 'in another order: '}{order.name}"
    return _defect(case, name + _like_padding(case, order), order, bits)


def _like_padding(case: WrongResult, order: ElementOrder) -> str:
    """Return that a shift is the one that missing padding makes; empty if it is not."""
    window = _window(case) if order.away else None
    if window is None:
        return ""
    sides = (
        ("top", "row", "high", window.pad_top, window.stride_h),
        ("left", "column", "left", window.pad_left, window.stride_w),
    )
    for side, axis, word, pad, stride in sides:
        step = pad // stride
        far = f"{step} {axis}{'s' if step > 1 else ''} too {'far ' if side == 'left' else ''}{word}"
        if pad and pad == step * stride and order.away == far and "wrap" not in order.name:
            return f", as if padding at the {side} were missing"
    return ""


def _defect(case: WrongResult, name: str, order: ElementOrder | None, bits: float) -> Defect:
    is_whole = order is None or bool((order.source >= 0).all())
    count = case.apart.size if order is None or is_whole else int(np.count_nonzero(order.source >= 0))
    far = "right but their bytes are not in order" if order is None else f"right but {order.away}"
    far = far if order is None or order.away else "those of other places"
    cleared = f"{count:,} of {case.apart.size:,} values are {far}, so the arithmetic is right"
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


def _find_shifts(case: WrongResult) -> Iterator[ElementOrder]:
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
            way, where = _ANY_WAY[by > 0]
            far = f"{abs(by):,} elements"
            name, away = f"shifted {way} in memory by {far}", f"{far} {where}"
            yield ElementOrder(name, np.where((places >= 0) & (places < size), places, -1), away)
            yield ElementOrder(f"{name}, with wrap-around", places % size, away)


def _find(right: Array, piece: Array) -> int | None:
    """Return the place of a piece in an array."""
    item = right.itemsize
    at = right.tobytes().find(np.ascontiguousarray(piece).tobytes())
    return at // item if at >= 0 and at % item == 0 else None


def _find_rows(case: WrongResult) -> Iterator[ElementOrder]:
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
        yield ElementOrder(f"rows of {width:,} elements lie {int(stride):,} apart (wrong stride)", source)


def _find_gaps(rows: Array, seen: Array) -> Iterator[ElementOrder]:
    """Yield strides by which whole rows were written with gaps between them, searched by the second and third row."""
    width = rows.shape[1]
    stride = _find(seen, rows[1]) if len(np.unique(rows[1])) > 2 else None
    if stride is None or not width < stride <= 2 * width or not np.array_equal(seen[:width], rows[0]):
        return
    row, column = np.divmod(np.arange(seen.size), stride)
    source = np.where(column < width, row * width + column, -1)
    yield ElementOrder(f"rows of {width:,} elements were written {stride:,} apart (wrong stride)", source)


def _of_bytes(case: WrongResult) -> Defect | None:
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


def misread(case: WrongResult) -> Defect | None:
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


def _defect_of_input(case: WrongResult, name: str, bits: float) -> Defect:
    cleared = "on that input, the right arithmetic reproduces every element that can be compared"
    return Defect(DefectKind.ADDRESSING, name, certainty_of(bits), case.tensor, "", cleared, is_told=False)


def _reads(case: WrongResult, sample: int, position: int, source: Map) -> bool:
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


#: Share of the results beyond a side that must differ.
_MOST = 0.3


def padding(case: WrongResult) -> Defect | None:
    """Return the sides of the image at which padding was not made.

    None if results inside differ, too, or all by no more than one code.
    """
    window = _window(case)
    if window is None or case.apart.ndim != 4 or _padding_is_rounding(case):
        return None
    sides = _sides(window, case.apart.shape)
    wrong = np.flatnonzero(case.apart.any(axis=(0, 3)).reshape(-1))
    hit: Mask = np.asarray(case.apart.any(axis=(0, 3)))
    chosen = _covering(sides, hit)
    if not chosen or len(wrong) < 2:
        return None
    reach = np.logical_or.reduce([sides[name] for name in chosen])
    if reach.all() or np.count_nonzero(hit & reach) < _MOST * np.count_nonzero(reach):
        return None
    name = f"padding at the {' and '.join(chosen)} was not made: only windows that reach beyond it differ"
    place = "; ".join(_rows(name, mask) for name, mask in sides.items() if name in chosen)
    cleared = f"{case.equal_text()}; so is every window inside the image"
    tell = "place known values in memory behind the image: the device reads them in place of padding"
    return Defect(DefectKind.PADDING, name, Certainty.LIKELY, case.tensor, place, cleared, tell)


def _padding_is_rounding(case: WrongResult) -> bool:
    """Return whether integers differ by one code alone, which other values than padding's would hardly do."""
    pairs = zip(case.expected, case.observed, strict=True)
    return all(
        np.issubdtype(e.dtype, np.integer) and np.abs(e.astype(np.int64) - o.astype(np.int64)).max(initial=0) <= 1
        for e, o in pairs
    )


def _window(case: WrongResult) -> Window | None:
    part = case.parts[0]
    try:
        prepared = part.plan(case.profile).steps[0].prepared
    except TflqError:
        return None
    return None if prepared is None else next((p.value for p in parts_of(prepared.data, Window)), None)


def _sides(window: Window, shape: tuple[int, ...]) -> dict[str, Mask]:
    """Return the places (out_h, out_w) whose windows reach beyond each side."""
    rows, columns = np.arange(shape[1]), np.arange(shape[2])
    top = rows * window.stride_h - window.pad_top
    left = columns * window.stride_w - window.pad_left
    bottom = top + (window.kernel_h - 1) * window.dilation_h >= window.height
    right = left + (window.kernel_w - 1) * window.dilation_w >= window.width
    every = (len(rows), len(columns))
    found = {
        "bottom": np.broadcast_to(bottom[:, None], every),
        "right": np.broadcast_to(right[None, :], every),
        "top": np.broadcast_to((top < 0)[:, None], every),
        "left": np.broadcast_to((left < 0)[None, :], every),
    }
    return {name: mask for name, mask in found.items() if mask.any()}


def _covering(sides: dict[str, Mask], hit: Mask) -> tuple[str, ...]:
    """Return the fewest sides, each of them wrong, that cover all wrong places."""
    names = [name for name, mask in sides.items() if (hit & mask).any()]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    for chosen in (*((name,) for name in names), *pairs):
        if not (hit & ~np.logical_or.reduce([sides[name] for name in chosen])).any():
            return chosen
    return ()


def _rows(side: str, mask: Mask) -> str:
    axis, word = (1, "row") if side in ("bottom", "top") else (0, "column")
    at = np.flatnonzero(mask.any(axis=axis))
    last = "last " if side in ("bottom", "right") else "first "
    names = f"{word} {at[0]}" if len(at) == 1 else f"{word}s {at[0]} to {at[-1]}"
    return f"only the {last}{word}{'s' if len(at) > 1 else ''} ({names} of {mask.shape[1 - axis]})"


_ORDINALS = {2: "second", 3: "third"}
#: The share of an axis that may be wrong, and of wrong elements there.
_PLACES_MOST, _DENSE = 0.5, 0.5
_LANES = (2, 3, 4, 8, 16)
_VECTORS = (64, 32, 16, 8, 4)


def filled(case: WrongResult) -> Defect | None:
    """Return the rows, columns or channels that hold one value in all samples, and are all that differs."""
    for k, axis in enumerate(AXES.get(case.apart.ndim, ())):
        others = tuple(i for i in range(case.apart.ndim) if i != k)
        hit, size = np.flatnonzero(case.apart.any(axis=others)), case.apart.shape[k]
        seen = np.unique(np.concatenate([o.take(hit, k).reshape(-1) for o in case.observed]))
        right = np.unique(np.concatenate([e.take(hit, k).reshape(-1) for e in case.expected]))
        bits = min(case.differing, 4 * (len(right) - 1))
        if len(hit) == size or len(seen) != 1 or certainty_of(bits) == Certainty.NONE:
            continue
        value, kind = seen[0].item(), seen.dtype
        ends = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else ()
        rival = ", or every result saturates" if value in ends else ""
        many = f" in all {len(case.observed)} samples" if len(case.observed) > 1 else ""
        holds = f"hold{'s' if len(hit) == 1 else ''} the constant {value:g}{many}"
        name = f"{_words(axis, hit, size)} {holds}: not computed, or not written{rival}"
        tell = "fill the output's memory with a pattern before each run and record again: what keeps it was not written"
        where = _list(axis, hit, size)
        return Defect(DefectKind.PLACE, name, Certainty.LIKELY, case.tensor, where, case.equal_text(), tell)
    return None


def place(case: WrongResult) -> Defect | None:
    """Return where all differences lie, if that is no chance."""
    return _slices(case) or _lanes(case) or _block(case)


def _slices(case: WrongResult) -> Defect | None:
    """Return the axis of which only some slices differ, the one with the most evidence."""
    found: list[tuple[float, str, Ints, int]] = []
    for k, name in enumerate(AXES.get(case.apart.ndim, ())):
        others = tuple(i for i in range(case.apart.ndim) if i != k)
        hit, size = np.flatnonzero(case.apart.any(axis=others)), case.apart.shape[k]
        is_constants = name == "channel" and case.op.builtin in CHANNEL_AXIS  # codes hide what a weight changes
        is_dense = is_constants or _share(case, len(hit) * case.apart.size // size) >= _DENSE
        if 0 < len(hit) <= size * _PLACES_MOST and is_dense:
            bits = (case.apart.sum() - len(hit)) * math.log2(size / len(hit))
            found.append((float(bits), name, hit, size))
    if not found:
        return None
    evidence, axis, hit, size = max(found, key=lambda one: one[0])
    if certainty_of(evidence) == Certainty.NONE:
        return None
    whose = f"{'its constants' if axis == 'channel' else 'geometry'}, memory, or the code for these alone"
    text = f"only {_words(axis, hit, size)} differ{'s' if len(hit) == 1 else ''}: a fault of {whose}"
    tell = "record all tensors and more samples: the same place each time shows an address"
    block = block_of(case)
    place = _list(axis, hit, size) + ("" if block is None else f": one block, {block_text(case, *block[:2])}")
    return Defect(DefectKind.PLACE, text, Certainty.LIKELY, case.tensor, place, case.equal_text(), tell)


def _lanes(case: WrongResult) -> Defect | None:
    """Return the lanes of a vector to which all differing elements belong, counted in memory."""
    at = np.flatnonzero(case.apart.reshape(-1))
    for count in _LANES:
        lanes = sorted(set((at % count).tolist()))
        evidence = (len(at) - len(lanes)) * math.log2(count / len(lanes))
        is_dense = _share(case, len(lanes) * case.apart.size // count) >= _DENSE
        if 2 * len(lanes) <= count and is_dense and certainty_of(evidence) != Certainty.NONE:
            every = f"every {_ORDINALS.get(count, f'{count}th')} element"
            name = f"only {every} in memory differs: {'a lane' if len(lanes) == 1 else 'lanes'} of a vector"
            place = f"elements {', '.join(map(str, lanes))} of every {count}"
            tell = "record more samples: a lane that is not written keeps its values"
            return Defect(DefectKind.PLACE, name, Certainty.LIKELY, case.tensor, place, case.equal_text(), tell)
    return None


def _share(case: WrongResult, places: int) -> float:
    """Return the share of wrong elements among some places, in samples that differ: memory is wrong throughout."""
    wrong = [int(np.count_nonzero(mask)) for mask in case.masks if mask.any()]
    return sum(wrong) / (len(wrong) * places)


def _words(axis: str, hit: Ints, size: int) -> str:
    """Return slices in words: the last rows, the tail of a vector, every n-th channel."""
    many = "s" if len(hit) > 1 else ""
    count = f"{len(hit)} " if len(hit) > 1 else ""
    if hit[-1] == size - 1 and len(hit) == size - hit[0]:
        tail = next((b for b in _VECTORS if hit[0] and hit[0] % b == 0 and size - hit[0] < b), None)
        beyond = f" (the tail beyond whole vectors of {tail})" if tail else ""
        return f"the last {count}{axis}{many} of {size}{beyond}"
    if hit[0] == 0 and len(hit) == hit[-1] + 1:
        return f"the first {count}{axis}{many} of {size}"
    steps = set(np.diff(hit).tolist())
    step = steps.pop() if len(steps) == 1 else 0
    if step > 1 and (len(hit) > 2 or step * len(hit) == size):
        return f"every {_ORDINALS.get(step, f'{step}th')} {axis} from {axis} {hit[0]} on"
    return f"{count}{axis}{many} of {size}" if many else f"{axis} {hit[0]} of {size}"


def _list(axis: str, hit: Ints, size: int) -> str:
    names = ", ".join(map(str, hit[:8])) + (f" and {len(hit) - 8} more" if len(hit) > 8 else "")
    return f"{axis}{'s' if len(hit) > 1 else ''} {names} of {size}"


def _block(case: WrongResult) -> Defect | None:
    block = block_of(case)
    if block is None:
        return None
    low, high, bits = block
    if high - low > _PLACES_MOST * case.apart.size or _share(case, high - low) < _DENSE:
        return None
    name = "only one block of memory differs: it was overwritten, or not written"
    tell = "record all tensors: whether later operators read the right values shows when it happened"
    certainty = Certainty.LIKELY if certainty_of(bits) != Certainty.NONE else Certainty.NONE
    return Defect(DefectKind.BLOCK, name, certainty, case.tensor, block_text(case, low, high), case.equal_text(), tell)
