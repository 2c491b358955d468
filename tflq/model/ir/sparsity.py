"""Sparse constants of a file: from the elements of stored blocks to the dense array.

A tensor of D dimensions is stored as a tree of levels: its D dimensions and B dimensions of blocks, in traversal order.
A dense level has every index, a compressed one (CSR) only those stored: node p above it has the indices from
segments[p] to segments[p + 1]. Stored elements are the leaves in order. Source: LiteRT 2.3
utils/sparsity_format_converter.cc FormatConverter.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import ModelError
from tflq.model.ir.model import Record
from tflq.typing import Array

_DENSE = 0


@dataclass(frozen=True, slots=True, eq=False)
class Level:
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


def _level(record: Record) -> Level:
    if int(record["format"]) == _DENSE:
        return Level(int(record["dense_size"]), None, None)
    vectors = [record[field] for field in ("array_segments", "array_indices")]
    if any(v is None or v["values"] is None for v in vectors):
        raise ValueError("a compressed dimension has no segments or indices")
    segments, indices = (np.asarray(v["values"]).astype(np.int64) for v in vectors)
    return Level(0, segments, indices)


def _leaves(levels: list[Level], depth: int, most: int) -> list[Array]:
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
    leaves: list[Array], order: list[int], block_map: list[int], levels: list[Level], shape: tuple[int, ...]
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
