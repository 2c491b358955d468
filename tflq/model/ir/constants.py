"""Constant tensors: dense, sparse, or in another file.

Sparse constants of a file: from the elements of stored blocks to the dense array.

A tensor of D dimensions is stored as a tree of levels: its D dimensions and B dimensions of blocks, in traversal order.
A dense level has every index, a compressed one (CSR) only those stored: node p above it has the indices from
segments[p] to segments[p + 1]. Stored elements are the leaves in order. Source: LiteRT 2.3
utils/sparsity_format_converter.cc FormatConverter.

External buffers: constants that a model's file leaves to another file, such as a section of a package.
The one scale of a tensor of 8-bit or 16-bit codes: which real values its codes represent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FormatError, ModelError, UnsupportedError
from tflq.model.ir.model import (
    CARRIER,
    STORED_BITS,
    Buffer,
    Model,
    Record,
    Subgraph,
    TensorSpec,
    TensorType,
    stored_bytes,
)
from tflq.typing import Array

_DENSE = 0


@dataclass(frozen=True, slots=True, eq=False)
class BlockLevel:
    """One level of the tree: `size` if it is dense, else segments and indices."""

    size: int
    segments: Array | None
    indices: Array | None


def dense(sparsity: Record, values: Array, shape: tuple[int, ...], name: str) -> Array:
    """Return the dense array of `shape`, read-only; elements that are not stored are 0."""
    try:
        order = [int(v) for v in _vector(sparsity["traversal_order"])]
        block_map = [int(v) for v in _vector(sparsity["block_map"], optional=True)]
        levels = [_level(record) for record in sparsity["dim_metadata"]]
        leaves = _leaves(levels[: len(order)], len(order), max(prod(shape), len(values)))
        at = _positions(leaves, order, block_map, levels, shape)
        flat = np.ravel_multi_index(at, shape) if shape else np.zeros(len(leaves[0]), np.int64)
    except (ValueError, IndexError, TypeError, ZeroDivisionError) as error:
        raise ModelError(f"sparsity does not fit the shape: {error}", tensor=name, got=shape) from error
    if len(flat) > len(values):
        raise ModelError("sparse buffer is too small", tensor=name, expected=len(flat), got=len(values))
    out = np.zeros(shape, values.dtype)
    out.reshape(-1)[flat] = values[: len(flat)]
    out.flags.writeable = False
    return out


def _vector(values: Array | None, optional: bool = False) -> Array:
    if values is None and not optional:
        raise ValueError("no traversal order")
    return np.zeros(0, np.int64) if values is None else np.asarray(values)


def _level(record: Record) -> BlockLevel:
    if int(record["format"]) == _DENSE:
        return BlockLevel(int(record["dense_size"]), None, None)
    vectors = [record[field] for field in ("array_segments", "array_indices")]
    if any(v is None or v["values"] is None for v in vectors):
        raise ValueError("a compressed dimension has no segments or indices")
    segments, indices = (np.asarray(v["values"]).astype(np.int64) for v in vectors)
    return BlockLevel(0, segments, indices)


def _leaves(levels: list[BlockLevel], depth: int, most: int) -> list[Array]:
    """Return indices of all leaves, level by level, in the order of storage.

    Raises:
        ValueError: A level has more than `most` indices.
    """
    if len(levels) < depth or depth == 0:
        raise ValueError(f"{len(levels)} levels for {depth} in traversal order")
    nodes = np.zeros(1, np.int64)  # numbers of the nodes of the level above
    coordinates: list[Array] = []
    for level in levels:
        if level.segments is None or level.indices is None:
            if len(nodes) * level.size > most:
                raise ValueError(f"{len(nodes)} times {level.size} indices for {most} elements")
            parents = np.repeat(np.arange(len(nodes)), level.size)
            index = np.tile(np.arange(level.size), len(nodes))
            numbers = nodes[parents] * level.size + index
        else:
            first, last = level.segments[nodes], level.segments[nodes + 1]
            counts = np.maximum(last - first, 0)
            if counts.sum() > len(level.indices):
                raise ValueError(f"segments of {counts.sum()} indices, of which there are {len(level.indices)}")
            parents = np.repeat(np.arange(len(nodes)), counts)
            numbers = first[parents] + np.arange(len(parents)) - np.repeat(np.cumsum(counts) - counts, counts)
            index = level.indices[numbers]
        coordinates = [*(values[parents] for values in coordinates), index]
        nodes = numbers
    return coordinates


def _positions(
    leaves: list[Array], order: list[int], block_map: list[int], levels: list[BlockLevel], shape: tuple[int, ...]
) -> tuple[Array, ...]:
    """Return the position of every leaf in the dense array, dimension by dimension."""
    rank = len(shape)
    at = [np.zeros_like(leaves[0])] * rank
    for level, dimension in enumerate(order[:rank]):
        at[dimension] = leaves[level]
    for level in range(rank, len(order)):
        block = order[level] - rank
        dimension = block_map[block]
        at[dimension] = at[dimension] * levels[order[rank + block]].size + leaves[level]
    return tuple(at)


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
    return data.size - stored_bytes(type_, spec.shape)


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
    needed = stored_bytes(type_, shape)
    if data.size < needed:
        _check_size(name, needed, data.size, "bytes")
    data = data[:needed]
    if bits < 8:
        return _unpack(data, bits, math.prod(shape), CARRIER[type_]).reshape(shape)
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


def with_external_buffers(model: Model, data: bytes | memoryview) -> Model:
    """Return the model with its external buffers as buffers of its own, views of `data`.

    Raises:
        FormatError: A tensor names a buffer that the model does not list, or that reaches beyond `data`; or buffers are
            packed, or belong to several groups, each with data of its own.
    """
    known = {record["id"]: record for record in model.external_buffers or ()}
    used = {tensor.external_buffer for graph in model.subgraphs for tensor in graph.tensors if tensor.external_buffer}
    groups = {known[number]["group"] for number in used if number in known}
    if len(groups) > 1:
        raise FormatError(f"external buffers in {len(groups)} groups, but data for only one", table="ExternalBuffer")
    places = {number: len(model.buffers) + k for k, number in enumerate(sorted(used))}
    added = tuple(_buffer(known, number, memoryview(data)) for number in places)
    graphs = tuple(_attach(graph, places) for graph in model.subgraphs)
    return replace(
        model, subgraphs=graphs, buffers=(*model.buffers, *added), external_buffers=None, external_buffer_groups=None
    )


def _buffer(known: Mapping[int, Record], number: int, data: memoryview) -> Buffer:
    record = known.get(number)
    if record is None:
        raise FormatError(f"a tensor names external buffer {number}, which the model does not list", table="Tensor")
    if record["packing"]:
        raise FormatError(f"external buffer {number} is packed as {record['packing']!r}", table="ExternalBuffer")
    begin, size = record["offset"], record["length"]
    if begin + size > len(data):
        reason = f"external buffer {number} has bytes {begin} to {begin + size} of {len(data)}"
        raise FormatError(reason, table="ExternalBuffer")
    return Buffer(np.frombuffer(data[begin : begin + size], np.uint8))


def _attach(graph: Subgraph, places: Mapping[int, int]) -> Subgraph:
    def attach(tensor: TensorSpec) -> TensorSpec:
        if not tensor.external_buffer:
            return tensor
        return replace(tensor, buffer=places[tensor.external_buffer], external_buffer=0)

    return replace(graph, tensors=tuple(attach(tensor) for tensor in graph.tensors))


#: Types of codes.
CODES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)


@dataclass(frozen=True, slots=True)
class Codec:
    """Codes `low` to `high` of one scale: real = scale * (code - zero). `scale` has the value of a float32."""

    type: TensorType
    scale: float
    zero: int
    low: int
    high: int

    def reals(self, codes: Array) -> Array:
        """Return the real values of codes, in float64."""
        return np.asarray(np.float64(self.scale) * (codes.astype(np.float64) - self.zero))

    @property
    def ends(self) -> tuple[float, float]:
        """The real values of the lowest and the highest code."""
        return (self.low - self.zero) * self.scale, (self.high - self.zero) * self.scale


def zero_point_of(spec: TensorSpec) -> int:
    """Return the first zero point of a tensor, 0 if it has none."""
    q = spec.quantization
    return int(q.zero_point[0]) if q is not None and q.zero_point.size else 0


def codec_of(spec: TensorSpec) -> Codec | None:
    """Return the codec of a tensor; None if it holds no 8-bit or 16-bit codes, or has no scale or several."""
    if spec.type not in CODES or spec.quantization is None or len(spec.quantization.scale) != 1:
        return None
    type_ = TensorType(spec.type)
    limits = np.iinfo(CARRIER[type_])  # type: ignore[type-var]
    return Codec(type_, float(spec.quantization.scale[0]), zero_point_of(spec), int(limits.min), int(limits.max))
