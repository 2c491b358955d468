"""One case before its expected outputs are known, and the random choices that build drafts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.devices.conformance.one_operator import T, build
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

Sample = tuple[Array, ...]
#: Levels of codes, from the lowest to the highest.
_LEVELS = 8

#: Smallest and largest code by type.
CODES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1)}


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A model of one operator and its inputs. `aim` names the rounding, limit or geometry that it tests."""

    op: str
    aim: str
    inputs: tuple[T | None, ...]
    outputs: tuple[T, ...]
    samples: tuple[Sample, ...]
    options: tuple[str, Mapping[str, Any]] | None = None
    version: int = 1
    intermediates: tuple[T, ...] = ()

    def model(self) -> bytes:
        """Return the `.tflite` file."""
        return build(self.op, self.inputs, self.outputs, self.options, self.version, self.intermediates)

    @property
    def types(self) -> str:
        """Operand types as kernel tables write them; `none` for an absent operand."""
        left = " ".join("none" if t is None else t.type for t in self.inputs)
        return f"{left} -> {' '.join(t.type for t in self.outputs)}"

    @property
    def constants(self) -> int:
        """The number of elements of all constants, which sums of many taps need."""
        return sum(int(np.size(t.value)) for t in self.inputs if t is not None and t.value is not None)


def feed(inputs: Sequence[T | None]) -> list[T]:
    """Return the operands that are inputs of the model."""
    return [t for t in inputs if t is not None and t.value is None and not t.variable]


def samples_of(rng: np.random.Generator, inputs: Sequence[T | None]) -> tuple[Sample, ...]:
    """Return uniformly distributed codes; then the lowest, the highest and the zero point only."""
    return tuple(tuple(_values(rng, t, ends) for t in feed(inputs)) for ends in (False, True))


def levels_of(rng: np.random.Generator, inputs: Sequence[T | None]) -> tuple[Sample, ...]:
    """Return codes near one level for each of eight, so that means and sums come near every code; others are random."""
    return tuple(tuple(_near(rng, t, k, place) for place, t in enumerate(feed(inputs))) for k in range(_LEVELS))


def _near(rng: np.random.Generator, tensor: T, level: int, place: int) -> Array:
    """Return codes near a level of an operand; operands beside it are near another one each time."""
    if tensor.type not in CODES:
        return _values(rng, tensor, ends=False)
    low, high = CODES[tensor.type]
    step, noise = (high - low) / (_LEVELS - 1), max(1, (high - low) // 80)
    centre = low + round(step * ((level * (1 + 2 * place)) % _LEVELS))
    codes = centre + rng.integers(-noise, noise + 1, tensor.shape)
    return np.clip(codes, low, high).astype(CARRIER[TensorType[tensor.type.upper()]])


def _values(rng: np.random.Generator, tensor: T, ends: bool) -> Array:
    dtype = CARRIER[TensorType[tensor.type.upper()]]
    if dtype.kind == "f":
        return np.asarray(rng.normal(0, 50 if ends else 1, tensor.shape), dtype)
    if dtype.kind == "b":
        return rng.random(tensor.shape) < 0.5
    low, high = CODES.get(tensor.type, (-1000, 1000))
    if ends:
        return np.asarray(rng.choice([low, int(np.max(tensor.zero_point)), high], tensor.shape), dtype)
    return np.asarray(rng.integers(low, high + 1, tensor.shape), dtype)


def zero_point(rng: np.random.Generator, kind: str) -> int:
    """Return a zero point: any code for 8 bits, 0 for 16."""
    low, high = CODES[kind]
    return 0 if kind == "int16" else int(rng.integers(low, high + 1))
