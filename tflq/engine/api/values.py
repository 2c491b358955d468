"""Conversion of arrays between callers and kernels."""

from __future__ import annotations

import numpy as np

from tflq.engine.interpreter.arrays import OUTSIDE, admit
from tflq.engine.kernels.kernel import Shape
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


def outside_type(type_: TensorType) -> type[np.generic]:
    """Return the NumPy scalar type that LiteRT names for a tensor type; raw bits if NumPy has none."""
    return OUTSIDE.get(type_, CARRIER[type_].type)


def blank(type_: TensorType, shape: Shape) -> Array:
    """Return a writable array for a tensor that has no value yet: zeros, or empty strings."""
    if type_ == TensorType.STRING:
        return np.full(shape, b"", CARRIER[type_])
    return np.zeros(shape, CARRIER[type_])


def store(buffer: Array, type_: TensorType, value: object, name: str) -> None:
    """Copy a caller's value into `buffer`, without conversion: type and shape must be the tensor's."""
    np.copyto(buffer, admit(value, type_, buffer.shape, name))


def give(value: Array, type_: TensorType) -> Array:
    """Return a copy that belongs to the caller; tensors without dimensions become NumPy scalars, as in LiteRT."""
    copy = np.array(value, order="C")
    if type_ in OUTSIDE and type_ != TensorType.STRING:
        copy = copy.view(OUTSIDE[type_])
    return copy if copy.ndim or type_ == TensorType.STRING else copy[()]
