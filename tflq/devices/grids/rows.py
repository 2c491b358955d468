"""Operators that move, repeat, choose or count codes, one row of data for each geometry.

Operators that move codes, where only geometry can be wrong; and operators that interpolate.

Models that a target must refuse: a runtime that checks its models rejects them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from tflq.devices.suites.draft import KINDS, Draft, Sample, T, kinds, samples_of, version_of, zero_point

SHAPE = (2, 3, 4, 5)


def drafts(seed: int) -> Iterator[Draft]:
    """Yield all of them, for every type."""
    rng = np.random.default_rng([seed, 4])
    for kind in KINDS:
        yield from _plain(rng, kind)
        yield from _resized(rng, kind)


def _image(rng: np.random.Generator, kind: str, shape: tuple[int, ...] = SHAPE) -> T:
    return T(kind, shape, float(np.float32(rng.uniform(0.01, 0.1))), zero_point(rng, kind))


def _list(values: Any) -> T:
    array = np.asarray(values, np.int32)
    return T("int32", array.shape, value=array)


def _plain(rng: np.random.Generator, kind: str) -> Iterator[Draft]:
    x = _image(rng, kind)

    def like(shape: tuple[int, ...]) -> T:
        return T(kind, shape, x.scale, x.zero_point)

    def made(op: str, aim: str, inputs: tuple[T, ...], shape: tuple[int, ...], options: Any = None) -> Draft:
        return Draft(op, aim, inputs, (like(shape),), samples_of(rng, inputs), options, 1)

    for axis in range(4):
        whole = tuple(n * 2 if i == axis else n for i, n in enumerate(SHAPE))
        options = ("ConcatenationOptions", {"axis": axis, "fused_activation_function": 0})
        yield made("CONCATENATION", f"axis {axis}", (x, like(SHAPE)), whole, options)
    for paddings in ([[0, 0], [1, 2], [3, 0], [0, 0]], [[0, 0], [0, 0], [0, 0], [2, 1]]):
        shape = tuple(n + sum(p) for n, p in zip(SHAPE, paddings, strict=True))
        yield made("PAD", "the zero point as padding", (x, _list(paddings)), shape, ("PadOptions", {}))
    for order in ((0, 2, 1, 3), (3, 0, 1, 2), (0, 3, 1, 2), (3, 2, 1, 0)):
        shape = tuple(SHAPE[i] for i in order)
        yield made("TRANSPOSE", f"order {order}", (x, _list(order)), shape, ("TransposeOptions", {}))
    for shape in ((6, 20), (120,), (1, 2, 60)):
        yield made(
            "RESHAPE", f"to rank {len(shape)}", (x, _list(shape)), shape, ("ReshapeOptions", {"new_shape": shape})
        )
    for begin, size in (((0, 1, 0, 2), (2, 2, 4, 3)), ((1, 0, 3, 0), (1, 3, 1, 5))):
        yield made("SLICE", f"from {begin}", (x, _list(begin), _list(size)), size, ("SliceOptions", {}))
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    for begin, end, steps in (((0, 0, 0, 0), SHAPE, (1, 2, 3, 1)), ((1, 2, 3, 4), (-3, -4, -5, -6), (-1, -1, -2, -1))):
        span = [range(*slice(b, e, s).indices(n)) for b, e, s, n in zip(begin, end, steps, SHAPE, strict=True)]
        inputs = (x, _list(begin), _list(end), _list(steps))
        yield made("STRIDED_SLICE", f"steps {steps}", inputs, tuple(map(len, span)), ("StridedSliceOptions", masks))


def _resized(rng: np.random.Generator, kind: str) -> Iterator[Draft]:
    for (h, w), mode in product(((2, 3), (6, 8), (5, 9), (1, 1)), range(3)):
        options = {"align_corners": mode == 1, "half_pixel_centers": mode == 2}
        aim = ("corners", "aligned corners", "half-pixel centers")[mode]
        x = _image(rng, kind)
        y = T(kind, (SHAPE[0], h, w, SHAPE[3]), x.scale, x.zero_point)
        inputs = (x, _list((h, w)))
        for op, table in (
            ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
            ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
        ):
            yield Draft(op, aim, inputs, (y,), samples_of(rng, inputs), (table, options), 3)


@dataclass(frozen=True, slots=True)
class FedValues:
    """An int32 input with these values, in both samples."""

    values: Any


@dataclass(frozen=True, slots=True)
class DrawnCodes:
    """A constant of the data's type and quantization."""

    values: Any


#: A shape (data), a list or number (an int32 constant), or one of the above.
Operand: TypeAlias = "tuple[int, ...] | list[Any] | int | FedValues | DrawnCodes | T"
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
    ("DYNAMIC_UPDATE_SLICE", "inside", [(4, 5), (2, 3), FedValues([1, 2])], [(4, 5)], _NOTHING),
    ("DYNAMIC_UPDATE_SLICE", "starts beyond the edges", [(4, 5), (2, 3), FedValues([9, -3])], [(4, 5)], _NOTHING),
    ("EMBEDDING_LOOKUP", "repeated rows", [FedValues([2, 0, 2, 3]), (4, 6)], [(4, 6)], _NOTHING),
    ("EXPAND_DIMS", "axis 1", [(2, 17), 1], [(2, 1, 17)], _NOTHING),
    ("EXPAND_DIMS", "axis -1", [(2, 3, 4), -1], [(2, 3, 4, 1)], _NOTHING),
    ("FILL", "one code", [[2, 3, 5], ()], [(2, 3, 5)], _NOTHING),
    ("GATHER", "axis 0", [(4, 3, 5), [3, 0, 0, 2, 1]], [(5, 3, 5)], {"axis": 0, "batch_dims": 0}),
    ("GATHER", "axis -1, positions as input", [(2, 3, 5), FedValues([[4, 0], [2, 2]])], [(2, 3, 2, 2)],
     {"axis": -1, "batch_dims": 0}),
    ("GATHER", "1 batch dimension", [(3, 4, 5), [[1, 0], [2, 2], [3, 1]]], [(3, 2, 5)], {"axis": 1, "batch_dims": 1}),
    ("GATHER_ND", "rows", [(3, 4, 5), [[0, 1], [2, 3], [2, 3]]], [(3, 5)], _NOTHING),
    ("GATHER_ND", "elements, positions as input", [(3, 4, 5), FedValues([[[0, 1, 2]], [[2, 3, 4]]])], [(2, 1)],
     _NOTHING),
    ("MATRIX_DIAG", "rows of 4", [(3, 4)], [(3, 4, 4)], _NOTHING),
    ("MATRIX_SET_DIAG", "wider than high", [(2, 3, 4), (2, 3)], [(2, 3, 4)], _NOTHING),
    ("MATRIX_SET_DIAG", "higher than wide", [(2, 4, 3), (2, 3)], [(2, 4, 3)], _NOTHING),
    ("MIRROR_PAD", "reflected", [(2, 4, 3), [[0, 0], [2, 3], [1, 2]]], [(2, 9, 6)], {"mode": 0}),
    ("MIRROR_PAD", "symmetric", [(2, 4, 3), [[1, 2], [4, 0], [0, 3]]], [(5, 8, 6)], {"mode": 1}),
    ("ONE_HOT", "last axis", [FedValues([[0, 3, -1], [5, 1, 4]]), 5, (), ()], [(2, 3, 5)], {"axis": -1}),
    ("ONE_HOT", "axis 0", [FedValues([2, 0, 7]), 3, (), ()], [(3, 3)], {"axis": 0}),
    ("PACK", "axis 0", [(3, 4), (3, 4)], [(2, 3, 4)], {"values_count": 2, "axis": 0}),
    ("PACK", "axis -1", [(3, 4), (3, 4), (3, 4)], [(3, 4, 3)], {"values_count": 3, "axis": -1}),
    ("PADV2", "another code than the zero point", [(2, 3, 4), [[0, 1], [2, 0], [1, 3]], DrawnCodes(17)], [(3, 5, 8)],
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


def rearranging_drafts(seed: int) -> Iterator[Draft]:
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
        if isinstance(one, DrawnCodes):
            return T(kind, np.shape(one.values), scale, zero, value=one.values)
        is_fed = isinstance(one, FedValues)
        value = np.asarray(one.values if isinstance(one, FedValues) else one, np.int32)
        return T("int32", value.shape, value=None if is_fed else value)

    inputs = tuple(map(tensor, operands))
    known = {
        id(t): np.asarray(o.values, np.int32) for t, o in zip(inputs, operands, strict=True) if isinstance(o, FedValues)
    }
    free = [t for t in inputs if t.value is None]
    samples: tuple[Sample, ...] = tuple(
        tuple(known.get(id(t), value) for t, value in zip(free, sample, strict=True))
        for sample in samples_of(rng, inputs)
    )
    table = _TABLES.get(op, f"{op.title().replace('_', '')}Options")
    made = tuple(map(tensor, outputs))
    return Draft(op, aim, inputs, made, samples, (table, options) if table else None, version_of(op, kind))


#: Prefix of the aim of every case that must be refused.
REFUSED = "must be refused: "


def refused_drafts(seed: int) -> Iterator[Draft]:
    """Yield shapes, types and quantization that do not match."""
    rng = np.random.default_rng([seed, 5])

    def case(op: str, why: str, inputs: tuple[T, ...], output: T, options: tuple[str, Mapping[str, object]]) -> Draft:
        return Draft(op, REFUSED + why, inputs, (output,), samples_of(rng, inputs), options, 1)

    def image(kind: str, *shape: int, zero_point: int = 0) -> T:
        return T(kind, shape, 0.05, zero_point)

    window = {"padding": 0, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    for kind in ("int8", "uint8"):
        weights = rng.integers(0, 100, (2, 1, 1, 3))
        bias = T("int32", (2,), 0.0025, 0, value=np.zeros(2))
        w = T(kind, (2, 1, 1, 3), 0.05, 0, value=weights)
        conv = ("Conv2DOptions", window)
        yield case("CONV_2D", "channels", (image(kind, 1, 4, 4, 4), w, bias), image(kind, 1, 4, 4, 2), conv)
        short = T("int32", (3,), 0.0025, 0, value=np.zeros(3))
        yield case("CONV_2D", "length of the bias", (image(kind, 1, 4, 4, 3), w, short), image(kind, 1, 4, 4, 2), conv)
        shapes = (image(kind, 2, 3), image(kind, 2, 4))
        yield case("ADD", "shapes that do not broadcast", shapes, image(kind, 2, 4), ("AddOptions", {}))
        yield case("MUL", "shapes that do not broadcast", shapes, image(kind, 2, 4), ("MulOptions", {}))
        joined = ("ConcatenationOptions", {"axis": 0, "fused_activation_function": 0})
        yield case("CONCATENATION", "shapes along another axis", shapes, image(kind, 4, 3), joined)
        to = T("int32", (2,), value=np.array([5, 5]))
        options = ("ReshapeOptions", {"new_shape": (5, 5)})
        yield case("RESHAPE", "number of elements", (image(kind, 2, 3), to), image(kind, 5, 5), options)
        order = T("int32", (3,), value=np.array([0, 1, 2]))
        yield case(
            "TRANSPOSE", "length of the order", (image(kind, 2, 3), order), image(kind, 3, 2), ("TransposeOptions", {})
        )
    for point in (1, -5):
        x = image("int16", 2, 3, zero_point=point)
        y = T("int16", (2, 3), 1 / 32768, 0)
        yield Draft("LOGISTIC", f"{REFUSED}zero point of int16", (x,), (y,), samples_of(rng, (x,)), None, 3)
