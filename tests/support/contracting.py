"""Random tensors for operators that contract with weights: scales that leave most outputs unsaturated."""

from __future__ import annotations

import numpy as np

from support.single_op import Array, T

#: element type -> smallest and largest code
CODES = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-(2**15), 2**15 - 1), "int4": (-8, 7), "int2": (-2, 1)}


def codes(rng: np.random.Generator, type_: str, shape: tuple[int, ...]) -> Array:
    """Random codes over the full range, one in eight at an end; standard normal values for float32."""
    if type_ == "float32":
        return rng.standard_normal(shape).astype(np.float32)
    low, high = CODES[type_]
    carrier = "int8" if type_ in ("int4", "int2") else type_
    values = rng.integers(low, high + 1, shape)
    ends = rng.choice([low, high], shape)
    return np.where(rng.random(shape) < 0.125, ends, values).astype(carrier)


def scale(rng: np.random.Generator) -> np.float32:
    """A scale between 2**-9 and 2**-3, a power of two one time in three: ties live there."""
    exponent = rng.uniform(-9, -3)
    return np.float32(2.0 ** (round(exponent) if rng.random() < 0.33 else exponent))


def zero_point(rng: np.random.Generator, type_: str) -> int:
    """A zero point for an activation; 0 for 16 bits."""
    if type_ in ("float32", "int16"):
        return 0
    low, high = CODES[type_]
    return int(rng.choice([low, high, rng.integers(low, high + 1)]))


def activation(rng: np.random.Generator, type_: str, shape: tuple[int, ...]) -> T:
    """An activation tensor."""
    if type_ == "float32":
        return T(type_, shape)
    return T(type_, shape, scale(rng), zero_point(rng, type_))


def weights(
    rng: np.random.Generator, activations: str, shape: tuple[int, ...], axis: int, types: tuple[str, ...] = ("int8",)
) -> T:
    """Constant weights that go with those activations; half of the signed ones have a scale per channel."""
    if activations == "float32":
        return T("float32", shape, value=codes(rng, "float32", shape))
    if activations == "uint8":
        return T("uint8", shape, scale(rng), zero_point(rng, "uint8"), value=codes(rng, "uint8", shape))
    type_ = str(rng.choice(types))
    value = codes(rng, type_, shape)
    if rng.random() < 0.5 and shape[axis] > 1 and type_ in ("int8", "int4"):
        return T(type_, shape, [scale(rng) for _ in range(shape[axis])], 0, axis, value)
    return T(type_, shape, scale(rng), 0, value=value)


def bias(rng: np.random.Generator, x: T, w: T, channels: int, type_: str) -> T:
    """A constant bias of the scale that goes with `x` and `w`."""
    if type_ == "float32":
        return T(type_, (channels,), value=codes(rng, "float32", (channels,)))
    scales = np.atleast_1d(np.asarray(w.scale, np.float32)) * np.float32(x.scale)
    return T(type_, (channels,), scales, 0, 0, rng.integers(-20000, 20000, channels))


def result(rng: np.random.Generator, x: T, w: T, shape: tuple[int, ...], length: int, type_: str | None = None) -> T:
    """An output tensor whose scale fits sums of `length` products."""
    type_ = type_ or x.type
    if type_ == "float32":
        return T(type_, shape)
    spread = np.float32(np.mean(np.asarray(w.scale))) * np.float32(x.scale) * np.sqrt(length)
    reach = {"uint8": 60.0, "int8": 60.0, "int16": 60.0 if x.type == "int16" else 0.25}[type_]
    out = np.float32(spread * reach * rng.uniform(0.5, 2))
    return T(
        type_,
        shape,
        np.float32(2.0 ** round(float(np.log2(out)))) if rng.random() < 0.33 else out,
        zero_point(rng, type_),
    )
