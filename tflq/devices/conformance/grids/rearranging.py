"""Operators that move, repeat, choose or count codes, one row of data for each geometry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tflq.devices.conformance.draft import Draft, Sample, samples_of, zero_point
from tflq.devices.conformance.grids.kinds import kinds, version_of
from tflq.devices.conformance.one_operator import T


@dataclass(frozen=True, slots=True)
class Fed:
    """An int32 input with these values, in both samples."""

    values: Any


@dataclass(frozen=True, slots=True)
class Codes:
    """A constant of the data's type and quantization."""

    values: Any


#: A shape (data), a list or number (an int32 constant), or one of the above.
Operand: TypeAlias = "tuple[int, ...] | list[Any] | int | Fed | Codes | T"
#: An operator, its aim, operands, outputs and options.
Row: TypeAlias = "tuple[str, str, Sequence[Operand], Sequence[tuple[int, ...] | T], dict[str, Any]]"

_NOTHING: dict[str, Any] = {}


def _places(*shape: int) -> T:
    return T("int32", shape)


def _truth(*shape: int) -> T:
    return T("bool", shape)


#: Operator, aim, operands, outputs (shapes of data), options.
# fmt: off
ROWS: tuple[Row, ...] = (
    ("ARG_MAX", "axis 1", [(2, 6, 4), 1], [_places(2, 4)], {"output_type": 2}),
    ("ARG_MAX", "axis -1", [(2, 3, 17), -1], [_places(2, 3)], {"output_type": 2}),
    ("ARG_MIN", "axis 0", [(6, 3, 4), 0], [_places(3, 4)], {"output_type": 2}),
    ("ARG_MIN", "axis -1", [(2, 3, 17), -1], [_places(2, 3)], {"output_type": 2}),
    ("BATCH_TO_SPACE_ND", "blocks 2 x 3", [(6, 2, 2, 3), [2, 3], [[0, 0], [0, 0]]], [(1, 4, 6, 3)], _NOTHING),
    ("BATCH_TO_SPACE_ND", "crops, 2 images", [(8, 2, 3, 2), [2, 2], [[1, 0], [0, 2]]], [(2, 3, 4, 2)], _NOTHING),
    ("BROADCAST_TO", "new and middle axes", [(3, 1, 5), [2, 3, 4, 5]], [(2, 3, 4, 5)], _NOTHING),
    ("BROADCAST_TO", "one code", [(1,), [3, 7]], [(3, 7)], _NOTHING),
    ("DEPTH_TO_SPACE", "blocks of 2", [(2, 2, 3, 12)], [(2, 4, 6, 3)], {"block_size": 2}),
    ("DEPTH_TO_SPACE", "blocks of 3, 1 channel", [(1, 2, 3, 9)], [(1, 6, 9, 1)], {"block_size": 3}),
    ("DYNAMIC_UPDATE_SLICE", "inside", [(4, 5), (2, 3), Fed([1, 2])], [(4, 5)], _NOTHING),
    ("DYNAMIC_UPDATE_SLICE", "starts beyond the edges", [(4, 5), (2, 3), Fed([9, -3])], [(4, 5)], _NOTHING),
    ("EMBEDDING_LOOKUP", "repeated rows", [Fed([2, 0, 2, 3]), (4, 6)], [(4, 6)], _NOTHING),
    ("EXPAND_DIMS", "axis 1", [(2, 17), 1], [(2, 1, 17)], _NOTHING),
    ("EXPAND_DIMS", "axis -1", [(2, 3, 4), -1], [(2, 3, 4, 1)], _NOTHING),
    ("FILL", "one code", [[2, 3, 5], ()], [(2, 3, 5)], _NOTHING),
    ("GATHER", "axis 0", [(4, 3, 5), [3, 0, 0, 2, 1]], [(5, 3, 5)], {"axis": 0, "batch_dims": 0}),
    ("GATHER", "axis -1, positions as input", [(2, 3, 5), Fed([[4, 0], [2, 2]])], [(2, 3, 2, 2)],
     {"axis": -1, "batch_dims": 0}),
    ("GATHER", "1 batch dimension", [(3, 4, 5), [[1, 0], [2, 2], [3, 1]]], [(3, 2, 5)], {"axis": 1, "batch_dims": 1}),
    ("GATHER_ND", "rows", [(3, 4, 5), [[0, 1], [2, 3], [2, 3]]], [(3, 5)], _NOTHING),
    ("GATHER_ND", "elements, positions as input", [(3, 4, 5), Fed([[[0, 1, 2]], [[2, 3, 4]]])], [(2, 1)], _NOTHING),
    ("MATRIX_DIAG", "rows of 4", [(3, 4)], [(3, 4, 4)], _NOTHING),
    ("MATRIX_SET_DIAG", "wider than high", [(2, 3, 4), (2, 3)], [(2, 3, 4)], _NOTHING),
    ("MATRIX_SET_DIAG", "higher than wide", [(2, 4, 3), (2, 3)], [(2, 4, 3)], _NOTHING),
    ("MIRROR_PAD", "reflected", [(2, 4, 3), [[0, 0], [2, 3], [1, 2]]], [(2, 9, 6)], {"mode": 0}),
    ("MIRROR_PAD", "symmetric", [(2, 4, 3), [[1, 2], [4, 0], [0, 3]]], [(5, 8, 6)], {"mode": 1}),
    ("ONE_HOT", "last axis", [Fed([[0, 3, -1], [5, 1, 4]]), 5, (), ()], [(2, 3, 5)], {"axis": -1}),
    ("ONE_HOT", "axis 0", [Fed([2, 0, 7]), 3, (), ()], [(3, 3)], {"axis": 0}),
    ("PACK", "axis 0", [(3, 4), (3, 4)], [(2, 3, 4)], {"values_count": 2, "axis": 0}),
    ("PACK", "axis -1", [(3, 4), (3, 4), (3, 4)], [(3, 4, 3)], {"values_count": 3, "axis": -1}),
    ("PADV2", "another code than the zero point", [(2, 3, 4), [[0, 1], [2, 0], [1, 3]], Codes(17)], [(3, 5, 8)],
     _NOTHING),
    ("PADV2", "the code as input", [(1, 3, 4, 5), [[0, 0], [1, 1], [2, 1], [0, 0]], ()], [(1, 5, 7, 5)], _NOTHING),
    ("REVERSE_SEQUENCE", "lengths up to the axis", [(3, 4, 5), [1, 4, 3]], [(3, 4, 5)], {"seq_dim": 1, "batch_dim": 0}),
    ("REVERSE_SEQUENCE", "the batch behind", [(3, 5, 2, 2), [3, 2]], [(3, 5, 2, 2)], {"seq_dim": 0, "batch_dim": 2}),
    ("REVERSE_V2", "axis 1", [(2, 3, 4, 5), [1]], [(2, 3, 4, 5)], _NOTHING),
    ("REVERSE_V2", "axis -1", [(2, 3, 17), [-1]], [(2, 3, 17)], _NOTHING),
    ("SCATTER_ND", "rows", [[[4], [1], [0]], (3, 2), [6, 2]], [(6, 2)], _NOTHING),
    ("SCATTER_ND", "a place twice, sums wrap", [[[2, 1], [0, 0], [2, 1]], (3,), [3, 2]], [(3, 2)], _NOTHING),
    ("SELECT", "elements", [_truth(3, 17), (3, 17), (3, 17)], [(3, 17)], _NOTHING),
    ("SELECT", "rows", [_truth(4), (4, 5), (4, 5)], [(4, 5)], _NOTHING),
    ("SELECT_V2", "broadcast condition", [_truth(3, 1), (2, 3, 4), (2, 3, 4)], [(2, 3, 4)], _NOTHING),
    ("SELECT_V2", "broadcast choices", [_truth(2, 3, 4), (4,), (3, 1)], [(2, 3, 4)], _NOTHING),
    ("SPACE_TO_BATCH_ND", "blocks 2 x 3", [(1, 4, 6, 3), [2, 3], [[0, 0], [0, 0]]], [(6, 2, 2, 3)], _NOTHING),
    ("SPACE_TO_BATCH_ND", "the zero point as padding", [(2, 3, 4, 2), [2, 2], [[1, 0], [0, 2]]], [(8, 2, 3, 2)],
     _NOTHING),
    ("SPACE_TO_DEPTH", "blocks of 2", [(2, 4, 6, 3)], [(2, 2, 3, 12)], {"block_size": 2}),
    ("SPACE_TO_DEPTH", "blocks of 3, 1 channel", [(1, 6, 9, 1)], [(1, 2, 3, 9)], {"block_size": 3}),
    ("SPARSE_TO_DENSE", "a value for each place", [[[0, 1], [2, 0]], [3, 4], (2,), ()], [(3, 4)], _NOTHING),
    ("SPLIT", "axis 3", [3, (2, 3, 4, 6)], [(2, 3, 4, 3)] * 2, {"num_splits": 2}),
    ("SPLIT", "axis -3", [-3, (2, 3, 4, 5)], [(2, 1, 4, 5)] * 3, {"num_splits": 3}),
    ("SPLIT_V", "axis 2", [(2, 3, 6), [1, 3, 2], 2], [(2, 3, 1), (2, 3, 3), (2, 3, 2)], {"num_splits": 3}),
    ("SPLIT_V", "axis -2, the rest as -1", [(2, 5, 3), [2, -1], -2], [(2, 2, 3), (2, 3, 3)], {"num_splits": 2}),
    ("SQUEEZE", "some", [(1, 3, 1, 4)], [(1, 3, 4)], {"squeeze_dims": [2]}),
    ("SQUEEZE", "all", [(1, 3, 1, 4)], [(3, 4)], {"squeeze_dims": []}),
    ("TILE", "two axes", [(2, 3, 4), [1, 2, 3]], [(2, 6, 12)], _NOTHING),
    ("TILE", "one row", [(5,), [4]], [(20,)], _NOTHING),
    ("TOPK_V2", "3 of 17", [(3, 17), 3], [(3, 3), _places(3, 3)], _NOTHING),
    ("TOPK_V2", "all, in order", [(2, 8), 8], [(2, 8), _places(2, 8)], _NOTHING),
    ("UNPACK", "axis 1", [(2, 3, 4)], [(2, 4)] * 3, {"num": 3, "axis": 1}),
    ("UNPACK", "axis -1", [(2, 3, 2)], [(2, 3)] * 2, {"num": 2, "axis": -1}),
)
#: Options tables that are not named after their operator, and operators without one.
_TABLES = {
    "EMBEDDING_LOOKUP": "", "PADV2": "PadV2Options", "SELECT_V2": "SelectV2Options", "REVERSE_V2": "ReverseV2Options",
    "TOPK_V2": "TopKV2Options", "SPACE_TO_BATCH_ND": "SpaceToBatchNDOptions",
    "BATCH_TO_SPACE_ND": "BatchToSpaceNDOptions",
}
# fmt: on


def drafts(seed: int) -> Iterator[Draft]:
    """Yield every row for every type of its operator."""
    rng = np.random.default_rng([seed, 9])
    for row in ROWS:
        for kind in kinds(row[0]):
            yield draft_of(rng, kind, row)


def draft_of(rng: np.random.Generator, kind: str, row: Row) -> Draft:
    """Return the case of a row, with scale and zero point at random."""
    op, aim, operands, outputs, options = row
    scale, zero = float(np.float32(rng.uniform(0.01, 0.1))), zero_point(rng, kind)

    def tensor(one: Operand) -> T:
        if isinstance(one, T):
            return one
        if isinstance(one, tuple):
            return T(kind, one, scale, zero)
        if isinstance(one, Codes):
            return T(kind, np.shape(one.values), scale, zero, value=one.values)
        is_fed = isinstance(one, Fed)
        value = np.asarray(one.values if isinstance(one, Fed) else one, np.int32)
        return T("int32", value.shape, value=None if is_fed else value)

    inputs = tuple(map(tensor, operands))
    known = {id(t): np.asarray(o.values, np.int32) for t, o in zip(inputs, operands, strict=True) if isinstance(o, Fed)}
    free = [t for t in inputs if t.value is None]
    samples: tuple[Sample, ...] = tuple(
        tuple(known.get(id(t), value) for t, value in zip(free, sample, strict=True))
        for sample in samples_of(rng, inputs)
    )
    table = _TABLES.get(op, f"{op.title().replace('_', '')}Options")
    made = tuple(map(tensor, outputs))
    return Draft(op, aim, inputs, made, samples, (table, options) if table else None, version_of(op, kind))
