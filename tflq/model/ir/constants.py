"""Constant tensors: from a buffer's bytes to an array."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tflq.errors import ModelError, UnsupportedError
from tflq.model.ir.model import Model, Subgraph, TensorSpec
from tflq.model.ir.sparsity import dense
from tflq.model.ir.types import CARRIER, STORED_BITS, TensorType
from tflq.typing import Array


def stored(model: Model, spec: TensorSpec) -> NDArray[np.uint8] | None:
    """Return the bytes that the file stores for a tensor; None if it stores none, so that the tensor is no constant.

    Buffer 0 is no constant, even if it holds bytes, and neither is an empty buffer of a tensor with elements.
    Source: LiteRT 2.3 InterpreterBuilder::ParseTensors; tflite-micro micro_allocator.cc GetFlatbufferTensorBuffer.
    """
    data = model.buffers[spec.buffer].data if 0 < spec.buffer < len(model.buffers) else None
    return data if data is not None and (data.size or math.prod(spec.shape) == 0) else None


def surplus(model: Model, spec: TensorSpec) -> int:
    """Return by how many bytes a dense tensor's buffer is longer than its elements; negative if it is shorter.

    0 for buffers that LiteRT does not compare with the shape: absent ones, and those of sparse or other types.
    """
    data, type_ = model.buffers[spec.buffer].data if spec.buffer else None, spec.type
    if data is None or spec.sparsity is not None or not isinstance(type_, TensorType) or type_ not in STORED_BITS:
        return 0
    return data.size - (math.prod(spec.shape) * STORED_BITS[type_] + 7) // 8


def constant_of(model: Model, spec: TensorSpec) -> Array | None:
    """Return a tensor's value in the file, read-only; None if there is none."""
    if any(extent < 0 for extent in spec.shape):
        raise ModelError("a dimension is negative", tensor=spec.name or "", got=list(spec.shape))
    if not 0 <= spec.buffer < len(model.buffers):
        raise ModelError("buffer index out of range", tensor=spec.name or "", got=spec.buffer)
    data = stored(model, spec)
    if data is None:
        return None
    if not isinstance(spec.type, TensorType):
        raise UnsupportedError("constant", types=f"tensor type {spec.type}")
    if spec.sparsity is not None:
        if STORED_BITS.get(spec.type, 0) < 8:
            raise UnsupportedError("constant", types=spec.type.label, reason=f"tensor {spec.name!r} is sparse")
        return dense(spec.sparsity, numbers_from(data, spec.type, None, spec.name or ""), spec.shape, spec.name or "")
    if spec.type == TensorType.STRING:
        strings = strings_from(data)
        _check_size(spec.name or "", math.prod(spec.shape), len(strings), "strings")
        return strings.reshape(spec.shape)
    if spec.type not in STORED_BITS:
        return None
    return numbers_from(data, spec.type, spec.shape, spec.name or "")


def block_scales_of(model: Model, graph: Subgraph, spec: TensorSpec) -> Array | None:
    """Return the scales of a tensor's blocks, flat, if the file keeps them as a separate constant tensor."""
    details = None if spec.quantization is None else spec.quantization.details
    index = None if details is None else details.get("scales")
    if index is None or not 0 <= int(index) < len(graph.tensors):
        return None
    scales = constant_of(model, graph.tensors[int(index)])
    return None if scales is None else scales.reshape(-1)


def numbers_from(data: Array, type_: TensorType, shape: tuple[int, ...] | None, name: str = "") -> Array:
    """Return the elements of a plain buffer; sub-byte types are unpacked to one element per byte, low bits first.

    Without a shape, all elements of the buffer are returned, flat. What follows the last element is ignored.
    Source: LiteRT 2.3 Subgraph::SetTensorParametersReadOnly.
    """
    bits = STORED_BITS[type_]
    if shape is None:
        shape = (data.size * 8 // bits,)
    count = math.prod(shape)
    needed = (count * bits + 7) // 8
    if data.size < needed:
        _check_size(name, needed, data.size, "bytes")
    data = data[:needed]
    if bits < 8:
        return _unpack(data, bits, count, CARRIER[type_]).reshape(shape)
    if type_ == TensorType.BOOL:
        return np.not_equal(data, 0).reshape(shape)
    value: Array = data.view(CARRIER[type_]).reshape(shape)
    return value if value.flags.aligned else value.copy()


def _check_size(name: str, expected: int, got: int, unit: str) -> None:
    """Refuse a buffer of another size."""
    if expected != got:
        raise ModelError(
            "buffer does not fit the shape", tensor=name, expected=f"{expected} {unit}", got=f"{got} {unit}"
        )


def _unpack(data: Array, bits: int, count: int, dtype: np.dtype[np.generic]) -> Array:
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = (data[:, None] >> shifts).reshape(-1)[:count] & np.uint8((1 << bits) - 1)
    if dtype == np.int8:  # sign-extend: move the code's top bit to bit 7 and back
        return (codes << np.uint8(8 - bits)).view(np.int8) >> np.int8(8 - bits)
    return codes


def strings_from(data: Array) -> Array:
    """Return the strings of a STRING buffer: count, count + 1 offsets (int32, little endian), characters."""
    raw = data.tobytes()
    header = np.frombuffer(raw[: len(raw) // 4 * 4], "<i4")
    count = int(header[0]) if len(header) else 0
    if count < 0 or len(header) < count + 2:
        raise ModelError("string buffer is too small", expected=f"{count} strings", got=f"{len(raw)} bytes")
    offsets = header[1 : count + 2].astype(np.int64)
    if np.any(np.diff(offsets) < 0) or offsets[0] < 0 or offsets[-1] > len(raw):
        raise ModelError("string offsets out of range", got=offsets.tolist())
    values = np.empty(count, object)
    values[:] = [raw[a:b] for a, b in pairwise(offsets)]
    return values
