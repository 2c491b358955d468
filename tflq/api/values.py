"""Arrays as callers hand them in and get them back, and as kernels carry them."""

from __future__ import annotations

import numpy as np

from tflq.errors import InputError, ShapeError, TypeMismatchError
from tflq.ir import CARRIER, TensorType
from tflq.kernels.kernel import Array, Shape

#: Types whose dtype outside differs from the one they are carried in.
_OUTSIDE: dict[TensorType, type[np.generic]] = {
    TensorType.STRING: np.bytes_,
    TensorType.FLOAT8_E4M3FN: np.int8,
    TensorType.FLOAT8_E5M2: np.int8,
}

#: Code ranges of the types that travel unpacked, one element a byte.
_RANGES = {TensorType.INT4: (-8, 7), TensorType.UINT4: (0, 15), TensorType.INT2: (-2, 1)}


def outside_type(type_: TensorType) -> type[np.generic]:
    """The NumPy scalar type that LiteRT names for a tensor type; raw bits where NumPy has none."""
    return _OUTSIDE.get(type_, CARRIER[type_].type)


def blank(type_: TensorType, shape: Shape) -> Array:
    """A writable array for a tensor that has no value yet: zeros, or empty strings."""
    if type_ == TensorType.STRING:
        return np.full(shape, b"", CARRIER[type_])
    return np.zeros(shape, CARRIER[type_])


def store(buffer: Array, type_: TensorType, value: object, name: str) -> None:
    """Copy what a caller hands in into `buffer`, without conversion: type and shape must be the tensor's."""
    array = _received(value, name)
    if type_ == TensorType.STRING:
        array = _strings(array, name)
    else:
        array = _numbers(array, type_, name)
    if array.shape != buffer.shape:
        raise ShapeError(name, buffer.shape, array.shape)
    if type_ in _RANGES:
        _check_range(array, _RANGES[type_], name)
    np.copyto(buffer, array)


def give(value: Array, type_: TensorType) -> Array:
    """A copy that belongs to the caller; tensors without dimensions become NumPy scalars, as LiteRT has it."""
    copy = np.array(value, order="C")
    if type_ in _OUTSIDE and type_ != TensorType.STRING:
        copy = copy.view(_OUTSIDE[type_])
    return copy if copy.ndim or type_ == TensorType.STRING else copy[()]


def _received(value: object, name: str) -> Array:
    try:
        return np.asarray(value)
    except MemoryError:
        raise
    except Exception as error:  # a ragged list, or whatever an object's own conversion raises
        raise InputError(f"no array: {error}", name=name) from error


def _numbers(array: Array, type_: TensorType, name: str) -> Array:
    want = CARRIER[type_]
    if array.dtype.newbyteorder("=") == want:
        return array
    if type_ == TensorType.BFLOAT16 and array.dtype.name == "bfloat16":
        return array.view(want)
    if type_ in _OUTSIDE and array.dtype == _OUTSIDE[type_]:
        return array.view(want)
    raise TypeMismatchError(name, outside_type(type_).__name__, array.dtype)


def _strings(array: Array, name: str) -> Array:
    if array.dtype.kind not in "OSU":
        raise TypeMismatchError(name, "strings", array.dtype)
    out = np.empty(array.shape, object)
    for position, item in enumerate(array.flat):
        out.flat[position] = _bytes_of(item, name)
    return out


def _bytes_of(item: object, name: str) -> bytes:
    if isinstance(item, str):
        try:
            return item.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"no UTF-8 text: {error}", name=name) from error
    if isinstance(item, bytes):
        return bytes(item)
    raise TypeMismatchError(name, "str or bytes", type(item).__name__)


def _check_range(array: Array, limits: tuple[int, int], name: str) -> None:
    low, high = limits
    if array.size and not (low <= array.min() and array.max() <= high):
        raise InputError("code out of range", name=name, expected=f"{low} to {high}")
