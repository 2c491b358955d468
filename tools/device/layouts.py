"""Planted mistakes of layout: tails behind vectors, few channels, images after the first, operands behind each other.

A mistake changes what a right device reads or writes. So it is planted into the expected outputs, or into the inputs,
on which a profile then computes what the device gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.devices.suites.draft import kind_of, kinds
from tflq.engine.interpreter import Plan, run

Array = NDArray[Any]

WINDOWS = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "AVERAGE_POOL_2D", "MAX_POOL_2D")
PRODUCTS = ("CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
ROWS = ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "MEAN", "REDUCE_MAX")
MOVES = ("SLICE", "GATHER", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "PACK")
#: Operators that copy rows of an operand into longer ones.
JOINS = ("CONCATENATION", "PAD", "TILE")
PAIRS = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")
ELEMENTS = (*PAIRS, "ABS", "HARD_SWISH", "LEAKY_RELU", "LOGISTIC", "QUANTIZE", "RELU", "RELU6", "TANH")
#: Lanes of a vector and elements behind the last whole one; no lanes: no vector is whole.
TAILS = (
    *((lanes, rest) for lanes in (2, 4, 8, 16) for rest in sorted({1, lanes - 1})),
    *((0, n) for n in (1, 3, 7, 15)),
)


@dataclass(frozen=True)
class Mistake:
    """A mistake with its operators. `write` changes an output, `read` an input; None: the case does not show it."""

    name: str
    ops: tuple[str, ...]
    write: Callable[[Sequence[Array], Array], Array | None] | None = None
    read: Callable[[Sequence[Array], int], Array | None] | None = None


def has_tail(size: int, lanes: int, rest: int) -> bool:
    """Return whether a loop over vectors leaves that rest: behind a whole vector, or alone."""
    return size == rest if not lanes else size > lanes and size % lanes == rest


def _dropped(rest: int, axis: int) -> Callable[[Array], Array]:
    """Return a change after which the last elements along an axis are never written."""

    def change(out: Array) -> Array:
        changed = out.copy()
        np.moveaxis(changed, axis, -1)[..., -rest:] = 0
        return changed

    return change


def _masked(_rest: int, axis: int) -> Callable[[Array], Array]:
    """Return a change after which the last element along an axis has the value of its neighbour; alone, of nothing."""

    def change(out: Array) -> Array:
        moved = np.moveaxis(out.copy(), axis, -1)
        moved[..., -1] = moved[..., -2] if moved.shape[-1] > 1 else 0
        return np.moveaxis(moved, -1, axis)

    return change


def _writes(tail: tuple[int, int], axis: int, change: Callable[[Array], Array]) -> Callable[..., Array | None]:
    """Return a change of outputs with that tail along an axis."""

    def write(_given: Sequence[Array], out: Array) -> Array | None:
        shaped = out.reshape(-1) if axis == _FLAT else out
        along = -1 if axis == _FLAT else axis
        if shaped.ndim <= max(along, 0) or not has_tail(shaped.shape[along], *tail):
            return None
        return change(shaped).reshape(out.shape)

    return write


def _reads(tail: tuple[int, int]) -> Callable[..., Array | None]:
    """Return a change of a first input with that tail along its last axis: the tail is not read."""

    def read(given: Sequence[Array], zero: int) -> Array | None:
        if not has_tail(given[0].shape[-1], *tail):
            return None
        changed = given[0].copy()
        changed[..., -tail[1] :] = zero
        return changed

    return read


#: The axis of all elements in a row, and the others by name, with their operators.
_FLAT = -2
_AXES = (
    ("channels", -1, (*WINDOWS, "FULLY_CONNECTED", *ROWS, *MOVES)),
    ("columns", 2, WINDOWS),
    ("rows", 0, ("FULLY_CONNECTED",)),
    ("elements", _FLAT, ELEMENTS),
)


def _tails() -> Iterator[Mistake]:
    for lanes, rest in TAILS:
        where = f"{rest} behind {lanes}" if lanes else f"{rest} alone"
        for name, axis, ops in _AXES:
            for how, make in (("tail dropped", _dropped), ("wrong mask", _masked)):
                change = make(rest, -1 if axis == _FLAT else axis)
                yield Mistake(f"{name}: {how}, {where}", ops, write=_writes((lanes, rest), axis, change))
        yield Mistake(f"depth: tail not read, {where}", (*PRODUCTS, *JOINS), read=_reads((lanes, rest)))


def _read_wide(channels: int) -> Callable[[Sequence[Array], int], Array | None]:
    """Return a change that reads pixels of a few channels four apart."""

    def read(given: Sequence[Array], _zero: int) -> Array | None:
        x = given[0]
        if x.ndim != 4 or x.shape[-1] != channels:
            return None
        pixels = x.reshape(-1, channels)
        places = np.arange(len(pixels)) * 4 // channels % len(pixels)
        return np.ascontiguousarray(pixels[places].reshape(x.shape))

    return read


def _first_image(given: Sequence[Array], _zero: int) -> Array | None:
    x = given[0]
    return None if x.ndim != 4 or len(x) < 2 else np.ascontiguousarray(np.broadcast_to(x[:1], x.shape))


def _padded_images(given: Sequence[Array], _zero: int) -> Array | None:
    """Return an input whose later images are read as if channels were padded to a multiple of 4."""
    x = given[0]
    if x.ndim != 4 or len(x) < 2 or x.shape[-1] % 4 == 0:
        return None
    offset = x[0].size // x.shape[-1] * (-x.shape[-1] % 4)
    rest = np.roll(x[1:].reshape(-1), -offset)
    return np.concatenate([x[:1], rest.reshape(x[1:].shape)])


def _aligned(given: Sequence[Array], out: Array) -> Array | None:
    """Return an output whose second operand was written from the next address that is a multiple of 4."""
    first = given[0].shape[-1]
    if out.ndim != given[0].ndim or out.shape[-1] <= first or first % 4 == 0:
        return None
    changed = out.copy()
    changed[..., first:] = np.roll(out[..., first:], -first % 4, -1)
    return changed


MISTAKES = (
    *_tails(),
    Mistake("1 channel read as 4", (*WINDOWS, "MEAN", "RESIZE_BILINEAR"), read=_read_wide(1)),
    Mistake("2 channels read as 4", (*WINDOWS, "MEAN", "RESIZE_BILINEAR"), read=_read_wide(2)),
    Mistake("later images read from the first", (*WINDOWS, "MEAN", "RESIZE_BILINEAR", "TRANSPOSE"), read=_first_image),
    Mistake("later images read behind padded channels", (*WINDOWS, "MEAN", "RESIZE_BILINEAR"), read=_padded_images),
    Mistake("second operand written at a multiple of 4", ("CONCATENATION",), write=_aligned),
)


def plants() -> frozenset[tuple[str, str, str]]:
    """Return every operator, type and mistake, whether some suite asks for it or not."""
    return frozenset((op, kind, m.name) for m in MISTAKES for op in m.ops for kind in kinds(op))


def caught_in(op: str, types: str, plan: Plan, given: Sequence[Array], outputs: Sequence[Array]) -> Iterator[str]:
    """Yield the mistakes that a sample reveals."""
    data = [value for value in given if value.dtype.name == kind_of(types)]
    for mistake in MISTAKES:
        if op not in mistake.ops or not data:
            continue
        if mistake.write is not None:
            made = mistake.write(data, outputs[0])
        else:
            assert mistake.read is not None
            tensor = next(t for t, value in zip(plan.inputs, given, strict=True) if value is data[0])
            read = mistake.read(data, int(plan.operands[tensor].zero_point))
            fed = dict(zip(plan.inputs, given, strict=True))
            made = None if read is None else run(plan, {**fed, tensor: read}).values[plan.outputs[0]]
        if made is not None and not np.array_equal(made, outputs[0]):
            yield mistake.name
