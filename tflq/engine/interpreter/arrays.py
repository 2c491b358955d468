"""Arrays from outside: from callers, files, recordings, dumps and runtimes.

Kernels are compiled without bounds checks and rely on the type and the shape of their inputs. So every array from
outside this package goes through `admit` before it reaches a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from tflq.engine.kernels.code_limits import NARROW
from tflq.errors import InputError, ShapeError, TypeMismatchError, UnsupportedError
from tflq.model.ir import CARRIER, TensorSpec, TensorType
from tflq.typing import Array

#: Types whose dtype for callers differs from the one inside kernels.
OUTSIDE = MappingProxyType(
    {TensorType.STRING: np.bytes_, TensorType.FLOAT8_E4M3FN: np.int8, TensorType.FLOAT8_E5M2: np.int8}
)


def admit(value: object, type_: TensorType | int, shape: Sequence[int] | None, name: str) -> Array:
    """Return `value` in the form that kernels use for a type: native byte order, C-contiguous, aligned.

    Strings become bytes. Numbers are not converted: their type must be the tensor's. A copy is made only if it is
    necessary.

    Args:
        value: An array, or a value that NumPy converts to one.
        type_: The tensor's type.
        shape: Its shape, with -1 for a dimension of any size; None for any shape.
        name: Its name in errors.

    Raises:
        TypeMismatchError: The elements have another type.
        ShapeError: The shape differs.
        InputError: It is not an array, has a code beyond the range of a 4-bit or 2-bit type, or text that is not UTF-8.
        UnsupportedError: The tensor's type is unknown.
    """
    if not isinstance(type_, TensorType):
        raise UnsupportedError("tensor", types=f"type {type_}", reason=name)
    array = _array(value, name)
    array = _strings(array, name) if type_ == TensorType.STRING else _numbers(array, type_, name)
    if shape is not None and not fits(shape, array.shape):
        raise ShapeError(name, shape, array.shape)
    if type_ in NARROW:
        _check_range(array, NARROW[type_], name)
    return np.require(array, requirements=("C", "A"))


def open_shape(spec: TensorSpec) -> tuple[int, ...] | None:
    """Return a tensor's shape in the file, with -1 for open dimensions; None if the rank is also open."""
    if not spec.shape and not spec.has_rank and not spec.shape_signature:
        return None
    return spec.shape_signature or spec.shape


def fits(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether a given shape is `shape`, in which -1 matches any size."""
    return len(shape) == len(other) and all(want in (-1, size) for want, size in zip(shape, other, strict=True))


def _array(value: object, name: str) -> Array:
    try:
        return np.asarray(value)
    except MemoryError:
        raise
    except Exception as error:  # a ragged list, or any error of an object's own conversion
        raise InputError(f"not an array: {error}", name=name) from error


def _numbers(array: Array, type_: TensorType, name: str) -> Array:
    want = CARRIER[type_]
    if array.dtype == want:
        return array
    if array.dtype.newbyteorder("=") == want:
        return array.astype(want)
    if type_ == TensorType.BFLOAT16 and array.dtype.name == "bfloat16":
        return array.view(want)
    if type_ in OUTSIDE and array.dtype == OUTSIDE[type_]:
        return array.view(want)
    raise TypeMismatchError(name, OUTSIDE.get(type_, want.type).__name__, array.dtype)


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
            raise InputError(f"not UTF-8 text: {error}", name=name) from error
    if isinstance(item, bytes):
        return bytes(item)
    raise TypeMismatchError(name, "str or bytes", type(item).__name__)


def _check_range(array: Array, limits: tuple[int, int], name: str) -> None:
    low, high = limits
    if array.size and not (low <= array.min() and array.max() <= high):
        raise InputError("code out of range", name=name, expected=f"{low} to {high}")
