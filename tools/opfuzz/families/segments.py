"""Operators on groups of rows: segments, buckets, sums of several tensors, weighted lookups."""

from __future__ import annotations

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.draw import Draw
from opfuzz.one_operator import T


def segment_sum(draw: Draw, op: str) -> Case:
    """Draw SEGMENT_SUM: ids rise by 0 or 1."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 4)
    ids = np.cumsum(draw.rng.integers(0, 2, shape[0])) if shape[0] else np.zeros(0)
    listed, value = draw.listed(ids - ids[:1] if shape[0] else ids)
    y = T(kind, (int(value.max()) + 1 if shape[0] else 0, *shape[1:]))
    return draw.case(
        op, [T(kind, shape), listed], [y], ("SegmentSumOptions", {}), given=lambda t: value if t is listed else None
    )


def unsorted(draw: Draw, op: str) -> Case:
    """Draw UNSORTED_SEGMENT_*: ids in any order; rows of negative ids are dropped."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 4)
    lead = shape[: draw.int(1, len(shape))]
    count = draw.int(1, 6)
    listed, ids = draw.listed(draw.rng.integers(-1 if draw.chance(0.3) else 0, count, lead))
    number, most = draw.listed(count)
    words = {"PROD": "Prod", "MAX": "Max", "MIN": "Min", "SUM": "Sum"}
    name = f"UnsortedSegment{words[op.rsplit('_', 1)[1]]}Options"
    known = {id(listed): ids, id(number): most}

    def given(tensor: T) -> Array | None:
        if id(tensor) in known:
            return known[id(tensor)]
        return draw.rng.integers(-4, 5, shape).astype(kind) if kind == "int32" else None

    y = T(kind, (count, *shape[len(lead) :]))
    return draw.case(op, [T(kind, shape), listed, number], [y], (name, {}), given=given)


def bucketize(draw: Draw, op: str) -> Case:
    """Draw BUCKETIZE between sorted boundaries."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape()
    boundaries = np.sort(np.round(draw.rng.normal(0, 20, draw.int(1, 8)), draw.int(0, 2))).astype(np.float32)
    options = {"boundaries": boundaries}
    return draw.case(
        op,
        [T(kind, shape)],
        [T("int32", shape)],
        ("BucketizeOptions", options),
        given=lambda t: np.round(draw.rng.normal(0, 25, shape)).astype(kind),
    )


def add_many(draw: Draw, op: str) -> Case:
    """Draw ADD_N of equal shapes."""
    kind = draw.pick(["float32", "int32"])
    shape = draw.shape()
    return draw.case(op, [T(kind, shape) for _ in range(draw.int(2, 6))], [T(kind, shape)], ("AddNOptions", {}))


def sparse_lookup(draw: Draw, op: str) -> Case:
    """Draw EMBEDDING_LOOKUP_SPARSE of a matrix: sum, mean or root of weighted rows."""
    rows, width, buckets = draw.extent(1, 8), draw.extent(1, 12), draw.extent(1, 5)
    count = draw.extent(1, 8)
    ids = draw.rng.integers(0, rows, count)
    at = np.stack([np.sort(draw.rng.integers(0, buckets, count)), np.arange(count)], 1)
    lists = [draw.listed(ids), draw.listed(at), draw.listed([buckets, count], constant=0.9)]
    weight, table = T("float32", (count,)), T("float32", (rows, width))
    known = {id(t): v for t, v in lists}
    inputs = [*(t for t, _ in lists), weight, table]
    return draw.case(
        op,
        inputs,
        [T("float32", (buckets, width))],
        ("EmbeddingLookupSparseOptions", {"combiner": draw.int(0, 2)}),
        given=lambda t: known.get(id(t)),
    )


SPECS = {
    "SEGMENT_SUM": segment_sum,
    "UNSORTED_SEGMENT_SUM": unsorted,
    "UNSORTED_SEGMENT_PROD": unsorted,
    "UNSORTED_SEGMENT_MAX": unsorted,
    "UNSORTED_SEGMENT_MIN": unsorted,
    "BUCKETIZE": bucketize,
    "ADD_N": add_many,
    "EMBEDDING_LOOKUP_SPARSE": sparse_lookup,
}
