"""Constants that are stored sparsely, in DENSIFY and FULLY_CONNECTED, held against LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support import contracting as c
from support.each import each
from support.single_op import Array, T, assert_same, build, tflq
from tflq.errors import ModelError, UnsupportedError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Buffer, Record


def _indices(values: Sequence[int]) -> Record:
    """Index vectors come in three widths; the narrowest that fits."""
    largest = max(values, default=0)
    for table, dtype in (("Uint8Vector", np.uint8), ("Uint16Vector", np.uint16), ("Int32Vector", np.int32)):
        if largest <= np.iinfo(dtype).max:
            return Record(table, {"values": np.array(values, dtype)})
    raise AssertionError(largest)


def stored(
    value: Array, order: Sequence[int], compressed: Sequence[bool], blocks: Sequence[tuple[int, int]] = ()
) -> tuple[Record, Array]:
    """How a file would store `value`: levels in `order`, `blocks` as (dimension, size); zeros are left out."""
    shape, whole = list(value.shape), value
    for number, (dimension, size) in enumerate(blocks):
        shape[dimension] //= size
        at = dimension + number  # the block's own dimension moves to the end
        whole = whole.reshape(*whole.shape[:at], shape[dimension], size, *whole.shape[at + 1 :])
        whole = np.moveaxis(whole, at + 1, -1) if number == 0 else whole
    tree = whole.transpose(order)
    levels: list[Record] = []
    nodes: list[Array] = [tree]
    for level, is_compressed in enumerate(compressed):
        if not is_compressed:
            levels.append(Record("DimensionMetadata", {"format": 0, "dense_size": tree.shape[level]}))
            nodes = [part for node in nodes for part in node]
            continue
        segments, indices, kept = [0], [], []
        for node in nodes:
            here = [i for i, part in enumerate(node) if np.any(part)]
            indices += here
            kept += [node[i] for i in here]
            segments.append(len(indices))
        fields = {
            "format": 1,
            "dense_size": 0,
            "array_segments": _indices(segments),
            "array_indices": _indices(indices),
        }
        levels.append(Record("DimensionMetadata", fields))
        nodes = kept
    record = Record(
        "SparsityParameters",
        {
            "traversal_order": np.array(order, np.int32),
            "block_map": np.array([d for d, _ in blocks], np.int32) if blocks else None,
            "dim_metadata": levels,
        },
    )
    return record, np.array([np.asarray(n).item() for n in nodes], value.dtype)


def sparse_model(model: bytes, tensor: int, sparsity: Record, elements: Array) -> bytes:
    """The model with one of its constants stored in that way."""
    whole = read(model)
    graph = whole.subgraphs[0]
    spec = replace(graph.tensors[tensor], sparsity=sparsity)
    buffers = list(whole.buffers)
    buffers[spec.buffer] = Buffer(np.ascontiguousarray(elements).view(np.uint8))
    tensors = (*graph.tensors[:tensor], spec, *graph.tensors[tensor + 1 :])
    return write(replace(whole, subgraphs=(replace(graph, tensors=tensors),), buffers=tuple(buffers)))


def _holes(rng: np.random.Generator, value: Array, block: int = 1) -> Array:
    """`value` with about half of its elements 0, in runs of `block` along the last dimension."""
    keep = rng.random((*value.shape[:-1], value.shape[-1] // block)) < 0.5
    keep[..., 0] = True  # a buffer without bytes would make it no constant
    return np.where(np.repeat(keep, block, -1), value, 0).astype(value.dtype)


FORMATS: tuple[tuple[tuple[int, ...], Any], ...] = (
    ((6, 8), ([0, 1], [False, True])),
    ((6, 8), ([1, 0], [False, True])),
    ((6, 8), ([0, 1], [True, True])),
    ((6, 8), ([0, 1, 2], [False, True, False], [(1, 4)])),
    ((6, 8), ([0, 1, 2], [False, True, False], [(0, 2)])),
    ((6, 8), ([1, 0, 2], [True, True, False], [(1, 2)])),
    ((5,), ([0], [True])),
    ((2, 3, 4), ([0, 1, 2], [False, True, True])),
    ((2, 3, 4), ([2, 0, 1], [True, False, True])),
    ((300, 3), ([0, 1], [False, True])),
    ((1, 3, 3, 8), ([0, 3, 1, 2], [False, True, False, True])),
)


@each("type_", ["float32", "float16", "int8"])
@each("number", range(len(FORMATS)))
def test_densify(type_: str, number: int) -> None:
    rng = np.random.default_rng(number)
    shape, (order, compressed, *blocks) = FORMATS[number]
    dtype = np.dtype(type_)
    value = _holes(rng, rng.integers(1, 100, shape).astype(dtype))
    x, y = T(type_, shape, value=0), T(type_, shape)
    sparsity, elements = stored(value, order, compressed, *blocks)
    assert_same(sparse_model(build("DENSIFY", [x], [y]), 0, sparsity, elements), [], FORMATS[number])


@each("seed", range(12))
def test_fully_connected_float(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    shape = (int(rng.integers(1, 7)), 4 * int(rng.integers(1, 7)))
    value = _holes(rng, c.codes(rng, "float32", shape), 4 if seed & 1 else 1)
    sparsity, elements = (
        stored(value, [0, 1, 2], [False, True, False], [(1, 4)]) if seed & 1 else stored(value, [0, 1], [False, True])
    )
    bias = T("float32", shape[:1], value=c.codes(rng, "float32", shape[:1]))
    inputs = [T("float32", (3, shape[1])), T("float32", shape, value=0), bias if seed & 2 else None]
    options = {"fused_activation_function": seed % 4}
    model = build("FULLY_CONNECTED", inputs, [T("float32", (3, shape[0]))], ("FullyConnectedOptions", options), 8)
    assert_same(sparse_model(model, 1, sparsity, elements), [c.codes(rng, "float32", (3, shape[1]))], shape)


def _blocks_of_sixteen(rng: np.random.Generator, extreme: bool) -> Array:
    shape = (int(rng.integers(1, 9)), 16 * int(rng.integers(1, 5)))
    value = rng.choice([-128, -128, 127], shape).astype(np.int8) if extreme else c.codes(rng, "int8", shape)
    return _holes(rng, value, 16)


@each("seed", range(24))
def test_fully_connected_int8(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    value = _blocks_of_sixteen(rng, seed % 3 == 0)
    units, length = value.shape
    x = c.activation(rng, "int8", (4, length))
    several = seed & 1 and units > 1
    w = T("int8", value.shape, [c.scale(rng) for _ in range(units)] if several else c.scale(rng), 0, 0, 0)
    y = c.result(rng, x, w, (4, units), length)
    bias = c.bias(rng, x, w, units, "int32") if seed & 2 else None
    options = {"fused_activation_function": int(rng.integers(0, 4))}
    model = build("FULLY_CONNECTED", [x, w, bias], [y], ("FullyConnectedOptions", options), 8)
    codes = rng.choice([-128, 127], (4, length)).astype(np.int8) if seed % 3 == 0 else c.codes(rng, "int8", (4, length))
    assert_same(sparse_model(model, 1, *stored(value, [0, 1, 2], [False, True, False], [(1, 16)])), [codes], seed)


@each("type_", ["int8", "uint8"])
@each("seed", range(16))
def test_fully_connected_hybrid(type_: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    value = _blocks_of_sixteen(rng, seed % 3 == 0)
    (units, length), batch = value.shape, int(rng.integers(1, 10))
    several = seed & 1 and units > 1
    w = T(type_, value.shape, [c.scale(rng) for _ in range(units)] if several else c.scale(rng), 0, 0, 0)
    bias = T("float32", (units,), value=c.codes(rng, "float32", (units,))) if seed & 2 else None
    options = {"asymmetric_quantize_inputs": bool(seed & 4), "fused_activation_function": int(rng.integers(0, 6))}
    inputs = [T("float32", (batch, length)), w, bias]
    model = build("FULLY_CONNECTED", inputs, [T("float32", (batch, units))], ("FullyConnectedOptions", options), 8)
    model = sparse_model(model, 1, *stored(value, [0, 1, 2], [False, True, False], [(1, 16)]))
    assert_same(model, [c.codes(rng, "float32", (batch, length))], options)


def test_refused() -> None:
    """Formats that the int8 form does not know, operators that would take stored elements for dense ones, damage."""
    value = np.arange(-16, 16, dtype=np.int8).reshape(2, 16)
    x, w, y = T("int8", (1, 16), 0.1, 0), T("int8", (2, 16), 0.1, 0, value=0), T("int8", (1, 2), 1.0, 0)
    model = build("FULLY_CONNECTED", [x, w, None], [y], ("FullyConnectedOptions", {}), 8)
    with pytest.raises(ModelError, match="sparse format"):
        tflq(sparse_model(model, 1, *stored(value, [0, 1], [False, True])), [np.zeros((1, 16), np.int8)])
    copy = build("RESHAPE", [w, T("int32", (1,), value=[32])], [T("int8", (32,), 0.1, 0)], ("ReshapeOptions", {}))
    with pytest.raises(UnsupportedError, match="sparsely"):
        tflq(sparse_model(copy, 0, *stored(value, [0, 1], [False, True])), [])
    densify = build("DENSIFY", [w], [T("int8", (2, 16), 0.1, 0)])
    sparsity, elements = stored(value, [0, 1], [False, True])
    for damaged, match in (
        ((sparsity, elements[:-1]), "too small"),
        ((stored(np.tile(value, 2), [0, 1], [False, True])[0], elements), "fit"),
    ):
        with pytest.raises(ModelError, match=match):
            tflq(sparse_model(densify, 0, *damaged), [])
    with pytest.raises(UnsupportedError):
        tflq(build("DENSIFY", [T("int8", (2, 16), value=value)], [T("int8", (2, 16))]), [])
