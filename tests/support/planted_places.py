"""Devices with a profile's arithmetic except in one place: a tail of channels, wide rows, one channel, some codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.ir import Model, view

Array = np.ndarray[Any, Any]
CONTRACTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
POOLS = ("MAX_POOL_2D", "AVERAGE_POOL_2D")
REDUCTIONS = ("MEAN", "REDUCE_MAX")
UNARY = ("LOGISTIC", "LEAKY_RELU", "TANH", "SOFTMAX")
BINARY = ("ADD", "MUL")


def _last_axis(y: Array, first: int, stop: int | None = None) -> Array:
    mask = np.zeros(y.shape, bool)
    mask[..., first:stop] = True
    return mask


def _columns(y: Array, first: int) -> Array:
    mask = np.zeros(y.shape, bool)
    if y.ndim == 4:
        mask[:, :, first:] = True
    return mask


#: Where a device is wrong, by name: the operators, and the elements of a result, given the first input.
PLACES: Mapping[str, tuple[tuple[str, ...], Callable[[Array, Array], Array]]] = {
    "channels after the last 8": (CONTRACTIONS + POOLS, lambda x, y: _last_axis(y, y.shape[-1] // 8 * 8)),
    "channels after the last 16": (CONTRACTIONS + POOLS, lambda x, y: _last_axis(y, y.shape[-1] // 16 * 16)),
    "channels after the last 4": (CONTRACTIONS + POOLS, lambda x, y: _last_axis(y, y.shape[-1] // 4 * 4)),
    "columns from 16": (("CONV_2D", "DEPTHWISE_CONV_2D", *POOLS), lambda x, y: _columns(y, 16)),
    "columns from 32": (("CONV_2D", "DEPTHWISE_CONV_2D", *POOLS), lambda x, y: _columns(y, 32)),
    "channel 3": (CONTRACTIONS, lambda x, y: _last_axis(y, 3, 4)),
    "channel 20": (CONTRACTIONS, lambda x, y: _last_axis(y, 20, 21)),
    "codes above 60": (REDUCTIONS + POOLS + BINARY, lambda x, y: y > 60),
    "codes below -110": (REDUCTIONS + POOLS + BINARY, lambda x, y: y < -110),
    "multiples of 7 elements": (REDUCTIONS, lambda x, y: np.full(y.shape, x.size // max(1, y.size) % 7 == 0)),
    "multiples of 5 elements, codes above 40": (
        REDUCTIONS,
        lambda x, y: (y > 40) & (x.size // max(1, y.size) % 5 == 0),
    ),
    "input code 37": (UNARY[:3], lambda x, y: (x == 37) if x.shape == y.shape else np.zeros(y.shape, bool)),
    "the lowest input": (UNARY[:3], lambda x, y: (x == -128) if x.shape == y.shape else np.zeros(y.shape, bool)),
    "the last of an odd number": (UNARY + BINARY, lambda x, y: _flat_from(y, y.size - y.size % 2)),
    "after the last 16 elements": (UNARY + BINARY, lambda x, y: _flat_from(y, y.size // 16 * 16)),
    "the second image": (
        ("CONV_2D", *POOLS),
        lambda x, y: np.arange(y.shape[0]).reshape(-1, *[1] * (y.ndim - 1)) + 0 * y > 0,
    ),
}


def _flat_from(y: Array, first: int) -> Array:
    return (np.arange(y.size) >= first).reshape(y.shape)


def _other(y: Array, other: Array) -> Array:
    return other


#: What a device gives there: one more, one less, the code before it, or another profile's result.
CHANGES: Mapping[str, Callable[[Array, Array], Array]] = {
    "one more": lambda y, other: np.minimum(y.astype(int) + 1, 127).astype(y.dtype),
    "one less": lambda y, other: np.maximum(y.astype(int) - 1, -128).astype(y.dtype),
    "the one before": lambda y, other: np.roll(y, 1),
    "another rounding": _other,
}


@dataclass
class Places:
    """A device that is wrong in one place, or in two; `shown` counts elements in which it was."""

    op: str
    faults: tuple[tuple[str, str], ...]
    shown: int = 0

    def run(self, model: Model, inputs: Sequence[Array]) -> Array:
        """Return the codes of the only output."""
        try:
            y, other = (_output(model, name, inputs) for name in ("litert-ref", "litert-xnnpack"))
        except TflqError as error:
            raise NotImplementedError(str(error)) from error
        given = self._wrong(view(model).op(0).name, inputs[0], y, other)
        self.shown += int(np.count_nonzero(given != y))
        return given

    def _wrong(self, op: str, x: Array, y: Array, other: Array) -> Array:
        made = y
        for where, change in self.faults if op == self.op and y.dtype == np.int8 and y.ndim else ():
            made = np.where(PLACES[where][1](x, y), CHANGES[change](made, other), made)
        return made


def _output(model: Model, profile: str, inputs: Sequence[Array]) -> Array:
    plan = make_plan(model, by_name(profile))
    return run(plan, dict(zip(plan.inputs, inputs, strict=True))).values[plan.outputs[0]]


def planted(seed: int) -> Places:
    """Return the device of a seed: an operator, and one fault, or two for odd seeds."""
    rng = np.random.default_rng([seed, 43])
    first = tuple(PLACES)[seed // 2 % len(PLACES)]
    op = PLACES[first][0][int(rng.integers(len(PLACES[first][0])))]
    others = [name for name, (operators, _) in PLACES.items() if op in operators and name != first]
    places = [first, *([others[int(rng.integers(len(others)))]] if seed % 2 and others else [])]
    changes = [change for change in CHANGES if change != "another rounding" or op in CONTRACTIONS]
    return Places(op, tuple((place, changes[int(rng.integers(len(changes)))]) for place in places))
