"""Random shapes, scales, zero points and values: mostly ordinary, sometimes at an edge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np

from opfuzz.case import Array, Case, fed
from opfuzz.one_operator import T
from tflq.engine.kernels.kernel import Kernel, Slot
from tflq.engine.profiles import by_name
from tflq.model.ir import CARRIER, TensorType

X = TypeVar("X")
Shape = tuple[int, ...]

#: Types that Python can hand to LiteRT and read back.
FEEDABLE = frozenset(
    {
        "float32",
        "float16",
        "float64",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "bool",
        "complex64",
        "int4",
    }
)
#: type -> smallest and largest code
CODES = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "int16": (-(2**15), 2**15 - 1),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int2": (-2, 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
QUANTIZED = frozenset({"uint8", "int8", "int16", "int4", "uint4", "int2"})
SPECIAL = np.array([0, -0.0, np.nan, np.inf, -np.inf, 6, -1, 1, 0.5, -2.5, 1e-40, 3e38], np.float32)


class Draw:
    """A source of random choices for one case. `grow` is about how many times as much there is to compute."""

    def __init__(self, rng: np.random.Generator, grow: float = 1.0) -> None:
        self.rng, self.grow = rng, grow

    def chance(self, probability: float) -> bool:
        """Return True with that probability."""
        return bool(self.rng.random() < probability)

    def int(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, choices: Sequence[X]) -> X:
        """Return one of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def extent(self, low: int, high: int) -> int:
        """Return a size that nothing else limits: an integer from low to high, grown as one of three factors."""
        return self._grown(self.int(low, high), 1 / 3)

    def real(self, low: float, high: float) -> float:
        """Return a real number between low and high."""
        return float(self.rng.uniform(low, high))

    # shapes

    def size(self, limit: int = 7) -> int:
        """Return a dimension: 1 more often than others; rarely 0."""
        if self.chance(0.004):
            return 0
        return 1 if self.chance(0.1) else self.int(2, limit)

    def shape(self, low: int = 0, high: int = 5, elements: int = 600) -> Shape:
        """Return a shape of rank low to high with at most that many elements, times `grow`; sometimes one long row."""
        rank = self.int(low, high) or (0 if self.chance(0.3) else high)
        if rank and self.chance(0.06):
            return (*([1] * (rank - 1)), self._grown(self.int(30, 300), 1.0))
        shape = tuple(self.size() for _ in range(rank))
        while math.prod(shape) > elements:
            shape = tuple(max(1, n // 2) if n == max(shape) else n for n in shape)
        return tuple(n if n < 2 else self._grown(n, 1 / sum(m > 1 for m in shape)) for n in shape)

    def _grown(self, size: int, share: float) -> int:
        return size if self.grow == 1 else max(1, round(size * self.grow**share))

    def broadcasting(self, high: int = 4) -> tuple[Shape, Shape]:
        """Return two shapes that broadcast: equal in one of three cases."""
        whole = self.shape(0, high)
        if self.chance(0.35):
            return whole, whole
        thinned = [tuple(1 if self.chance(0.3) else n for n in whole) for _ in range(2)]
        side = self.int(0, 1)
        thinned[side] = thinned[side][self.int(0, len(whole)) :]
        return thinned[0], thinned[1]

    # quantization

    def scale(self, low: float = -9, high: float = -2) -> float:
        """Return a float32 scale: one in four is a power of two (which gives ties), one in forty extreme."""
        exponent = self.real(-24, 8) if self.chance(0.025) else self.real(low, high)
        return float(np.float32(2.0 ** (round(exponent) if self.chance(0.25) else exponent)))

    def near(self, real: float, spread: float = 1.5) -> float:
        """Return a float32 scale around `real`, within 2**spread either way; one in four a power of two."""
        exponent = math.log2(max(real, 1e-30)) + self.real(-spread, spread)
        if self.chance(0.02):
            exponent += self.real(-12, 12)
        return float(np.float32(2.0 ** (round(exponent) if self.chance(0.25) else exponent)))

    def zero_point(self, type_: str) -> int:
        """Return a zero point: 0 for 16 bits and more, else any code, the ends and the middle more often."""
        if type_ not in QUANTIZED or type_ == "int16":
            return 0
        low, high = CODES[type_]
        return int(self.pick([low, high, (low + high + 1) // 2, *(self.int(low, high) for _ in range(6))]))

    def tensor(self, type_: str, shape: Shape, scale: float | None = None, zero_point: int | None = None) -> T:
        """Return a tensor, quantized if its type is one of codes."""
        if type_ not in QUANTIZED:
            return T(type_, shape)
        zero = self.zero_point(type_) if zero_point is None else zero_point
        return T(type_, shape, self.scale() if scale is None else scale, zero)

    # values

    def values(self, type_: str, shape: Shape) -> Array:
        """Return values over a type's whole range, the ends more often; floats of one magnitude, rarely special."""
        dtype = CARRIER[TensorType[type_.upper()]]
        if dtype.kind == "b":
            return self.rng.random(shape) < self.pick([0.5, 0.5, 0.1, 0.9])
        if dtype.kind in "iu":
            return self._integers(type_, dtype, shape)
        if dtype.kind == "c":
            pairs = self.floats((*shape, 2))
            return np.ascontiguousarray(pairs).view(dtype).reshape(shape)
        with np.errstate(over="ignore"):
            return self.floats(shape).astype(dtype)

    def floats(self, shape: Shape, magnitude: float | None = None, special: float = 0.06) -> Array:
        """Return normal float32 values of one magnitude; with probability `special` some of them are special."""
        magnitude = float(self.pick([0.01, 1, 1, 3, 10, 100])) if magnitude is None else magnitude
        values = np.asarray(self.rng.standard_normal(shape) * magnitude, np.float32)
        if self.chance(special):
            values = np.where(self.rng.random(shape) < 0.2, self.rng.choice(SPECIAL, shape), values)
        elif self.chance(0.1):
            values = np.round(values * 2) / 2
        return np.asarray(values, np.float32)

    def _integers(self, type_: str, dtype: np.dtype[Any], shape: Shape) -> Array:
        info = np.iinfo(dtype)
        low, high = CODES[type_] if type_ in ("int4", "uint4", "int2") else (int(info.min), int(info.max))
        if type_ not in QUANTIZED and self.chance(0.7):  # numbers, not codes: mostly small
            low, high = max(low, -self.pick([3, 40, 2000])), min(high, self.pick([3, 40, 2000]))
        values = self.rng.integers(low, high, shape, dtype=dtype, endpoint=True)
        ends = self.rng.choice(np.array([low, high], dtype), shape)
        return np.asarray(np.where(self.rng.random(shape) < 0.06, ends, values), dtype)

    def constant(self, tensor: T, probability: float = 1.0) -> T:
        """Return the tensor, with that probability with a random value in the model file."""
        return (
            replace(tensor, value=self.values(tensor.type, tuple(tensor.shape))) if self.chance(probability) else tensor
        )

    def listed(self, values: Any, type_: str = "int32", constant: float = 0.7) -> tuple[T, Array]:
        """Return a list operand (axes, a shape, paddings), constant with some probability, and its value."""
        array = np.asarray(values, type_)
        return T(type_, array.shape, value=array if self.chance(constant) else None), array

    # whole cases

    def types(self, op: str, choose: Callable[[Kernel], bool] = lambda row: True) -> tuple[list[str | None], list[str]]:
        """Return operand types of one row of the kernel table: (inputs, None for an absent one; outputs)."""
        signature = self.pick([row for row in _rows(op) if choose(row) and not row.sparse]).signature
        chosen: dict[tuple[str, ...], str] = {}  # equal alternatives are one type

        def choice(slot: Slot) -> str | None:
            if slot.optional and self.chance(0.3):
                return None
            types = _feedable(slot)
            return chosen.setdefault(types, str(self.pick(types)))

        inputs = [choice(slot) for slot in signature.inputs]
        return inputs, [name for name in map(choice, signature.outputs) if name is not None]

    def version(self, op: str) -> int:
        """Return a version from the kernel table: the newest in half of the cases."""
        low, high = _rows(op)[0].versions
        high = low if high == 99 else high
        return high if self.chance(0.5) else self.int(low, high)

    def case(
        self,
        op: str,
        inputs: Sequence[T | None],
        outputs: Sequence[T],
        options: Any = None,
        *,
        given: Callable[[T], Array | None] = lambda tensor: None,
        version: int | None = None,
        samples: int = 2,
        intermediates: Sequence[T] = (),
    ) -> Case:
        """Return a case whose fed inputs get `given(tensor)`, or random values if that is None."""

        def value(tensor: T) -> Array:
            known = given(tensor)
            return self.values(tensor.type, tuple(tensor.shape)) if known is None else known

        drawn = tuple(tuple(value(t) for t in fed(inputs)) for _ in range(samples))
        version = self.version(op) if version is None else version
        return Case(op, tuple(inputs), tuple(outputs), drawn, options, version, tuple(intermediates))


@cache
def _rows(op: str) -> tuple[Kernel, ...]:
    """Return the rows of the kernel table whose operands can all be fed."""
    return tuple(row for row in by_name("litert-ref").kernels[op] if all(map(_feedable, row.signature.slots)))


def _feedable(slot: Slot) -> tuple[str, ...]:
    """Return the types of an operand that can be fed."""
    known = sorted(FEEDABLE - {"int4"}) if slot.types is None else [type_.label for type_ in slot.types]
    return tuple(name for name in known if name in FEEDABLE)
