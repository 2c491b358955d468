"""Operators whose operands are places: gathering, scattering, choosing, filling, counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.draw import Draw, Shape
from opfuzz.families.moving import from_either_end, like, wide
from opfuzz.one_operator import T
from tflq.model.ir import TensorType


def gather(draw: Draw, op: str) -> Case:
    """Draw GATHER along one axis, after common batch dimensions."""
    (kind, of), _ = draw.types(op)
    shape = draw.shape(1, 4)
    axis = draw.int(0, len(shape) - 1)
    batch = draw.int(0, axis) if draw.chance(0.3) else 0
    places = (*shape[:batch], *draw.shape(0, 2, 12))
    x = wide(draw.tensor(str(kind), shape), draw)
    value = draw.rng.integers(0, max(1, shape[axis]), places)
    listed, value = draw.listed(value, str(of), 0.5)
    out = (*shape[:axis], *places[batch:], *shape[axis + 1 :])
    options = {"axis": from_either_end(draw, axis, len(shape)), "batch_dims": batch}
    return draw.case(
        op, [x, listed], [like(x, out)], ("GatherOptions", options), given=lambda t: value if t is listed else None
    )


def gather_nd(draw: Draw, op: str) -> Case:
    """Draw GATHER_ND."""
    (kind, of), _ = draw.types(op)
    shape = draw.shape(1, 4)
    depth = draw.int(1, len(shape))
    lead = draw.shape(0, 3, 12)
    x = draw.tensor(str(kind), shape)
    listed, value = draw.listed(_places(draw, lead, shape[:depth]), str(of), 0.5)
    y = like(x, (*lead, *shape[depth:]))
    return draw.case(op, [x, listed], [y], ("GatherNdOptions", {}), given=lambda t: value if t is listed else None)


def _places(draw: Draw, lead: Shape, within: Shape) -> Array:
    columns = [draw.rng.integers(0, max(1, n), lead) for n in within]
    return np.stack(columns, axis=-1)


def scatter_nd(draw: Draw, op: str) -> Case:
    """Draw SCATTER_ND; duplicate places are added."""
    kind = str(draw.types(op)[1][0])
    shape = draw.shape(1, 4, 200)
    depth = draw.int(1, len(shape))
    lead = draw.shape(1, 2, 12)
    listed, value = draw.listed(_places(draw, lead, shape[:depth]), "int32", 0.5)
    size, sizes = draw.listed(shape)
    updates = T(kind, (*lead, *shape[depth:]))
    known = {id(listed): value, id(size): sizes}
    return draw.case(
        op, [listed, updates, size], [T(kind, shape)], ("ScatterNdOptions", {}), given=lambda t: known.get(id(t))
    )


def update_slice(draw: Draw, op: str) -> Case:
    """Draw DYNAMIC_UPDATE_SLICE; starts beyond the edge are moved inwards."""
    (kind, *_), _ = draw.types(op, lambda row: not row.signature.makes(TensorType.STRING))
    shape = draw.shape(1, 4)
    part = tuple(draw.int(min(1, n), n) for n in shape)
    x = draw.tensor(str(kind), shape)
    start, value = draw.listed([draw.int(-2, n + 1) for n in shape], draw.pick(["int32", "int64"]), 0.5)
    inputs = [wide(x, draw), wide(like(x, part), draw), start]
    return draw.case(op, inputs, [x], ("DynamicUpdateSliceOptions", {}), given=lambda t: value if t is start else None)


def one_hot(draw: Draw, op: str) -> Case:
    """Draw ONE_HOT; places outside the depth give rows of the other value."""
    (of, _, _, _), (made,) = draw.types(op)
    shape, depth = draw.shape(0, 3, 40), draw.int(1, 6)
    axis = draw.int(0, len(shape))
    x = T(str(of), shape)
    size, value = draw.listed(depth)
    on, off = (draw.constant(T(made, ()), 0.5) for _ in range(2))
    options = {"axis": -1 if axis == len(shape) and draw.chance(0.7) else axis}

    def given(tensor: T) -> Array | None:
        if tensor is x:
            return draw.rng.integers(-1, depth + 1, shape).astype(str(of))
        return value if tensor is size else None

    y = T(made, (*shape[:axis], depth, *shape[axis:]))
    return draw.case(op, [x, size, on, off], [y], ("OneHotOptions", options), given=given)


def select(draw: Draw, op: str) -> Case:
    """Draw SELECT of equal shapes or by rows, SELECT_V2 with broadcasting."""
    kind = str(draw.types(op)[1][0])
    shape = draw.shape(0, 5)
    if op == "SELECT_V2":
        shapes = [tuple(1 if draw.chance(0.2) else n for n in shape) for _ in range(3)]
        shapes = [s[draw.int(0, len(s)) :] if draw.chance(0.2) else s for s in shapes]
        shape = np.broadcast_shapes(*shapes)
    else:
        rows = shape[:1] if shape and draw.chance(0.4) else () if draw.chance(0.05) else shape
        shapes = [rows, shape, shape]
    a = draw.tensor(kind, shapes[1])
    name = "SelectOptions" if op == "SELECT" else "SelectV2Options"
    return draw.case(op, [T("bool", shapes[0]), a, like(a, shapes[2])], [like(a, shape)], (name, {}))


def where(draw: Draw, op: str) -> Case:
    """Draw WHERE: the places of elements other than zero."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 4)
    x = T(kind, shape)

    def given(_: T) -> Array:
        return draw.rng.integers(0, 2, shape).astype(kind)

    return draw.case(op, [x], [T("int64", (0, len(shape)))], ("WhereOptions", {}), given=given)


def unique(draw: Draw, op: str) -> Case:
    """Draw UNIQUE."""
    kind = str(draw.types(op)[0][0])
    of = draw.pick(["int32", "int64"])
    count = draw.extent(1, 40)
    x = T(kind, (count,))
    options = {"idx_out_type": {"int32": 2, "int64": 4}[of]}

    def given(_: T) -> Array:
        return draw.rng.integers(0, 9, count).astype(kind)

    return draw.case(op, [x], [T(kind, (0,)), T(of, (count,))], ("UniqueOptions", options), given=given)


def fill(draw: Draw, op: str) -> Case:
    """Draw FILL."""
    kind = str(draw.types(op)[1][0])
    if kind == "string":
        kind = "float32"
    shape = draw.shape(0, 5)
    x = wide(draw.tensor(kind, ()), draw)
    listed, value = draw.listed(shape, draw.pick(["int32", "int64"]))
    return draw.case(
        op, [listed, x], [like(x, shape)], ("FillOptions", {}), given=lambda t: value if t is listed else None
    )


def range_(draw: Draw, op: str) -> Case:
    """Draw RANGE."""
    kind = str(draw.types(op)[1][0])
    step = draw.pick([1, 2, 3, -1, -4]) * (draw.pick([1, 0.1, 0.37]) if kind == "float32" else 1)
    start = draw.int(-20, 20) * (0.7 if kind == "float32" else 1)
    stop = start + step * draw.int(0 if draw.chance(0.05) else 2, 30) + (draw.int(0, 1) if step > 0 else 0)
    lists = [draw.listed(v, kind, 0.5) for v in (start, stop, step)]
    known = {id(tensor): value for tensor, value in lists}
    return draw.case(
        op, [tensor for tensor, _ in lists], [T(kind, (0,))], ("RangeOptions", {}), given=lambda t: known.get(id(t))
    )


def sparse_to_dense(draw: Draw, op: str) -> Case:
    """Draw SPARSE_TO_DENSE with one value or one for each place."""
    (of, _, _, _), (made,) = draw.types(op)
    shape = draw.shape(1, 4, 200)
    count = draw.extent(1, 8)
    if len(shape) == 1 and draw.chance(0.5):
        places: Any = draw.rng.integers(0, max(1, shape[0]), count)
    else:
        places = _places(draw, (count,), shape)
    listed, value = draw.listed(places, str(of), 0.4)
    size, sizes = draw.listed(shape, str(of))
    values = T(made, () if draw.chance(0.3) else (count,))
    known = {id(listed): value, id(size): sizes}
    return draw.case(
        op,
        [listed, size, values, T(made, ())],
        [T(made, shape)],
        ("SparseToDenseOptions", {}),
        given=lambda t: known.get(id(t)),
    )


def diagonal(draw: Draw, op: str) -> Case:
    """Draw MATRIX_DIAG or MATRIX_SET_DIAG."""
    kind = str(draw.types(op)[0][0])
    if op == "MATRIX_DIAG":
        shape = draw.shape(1, 3, 60)
        x = draw.tensor(kind, shape)
        return draw.case(op, [x], [like(x, (*shape, shape[-1]))], ("MatrixDiagOptions", {}))
    shape = draw.shape(2, 4, 300)
    x = draw.tensor(kind, shape)
    d = like(x, (*shape[:-2], min(shape[-2:])))
    return draw.case(op, [x, d], [x], ("MatrixSetDiagOptions", {}))


def embedding(draw: Draw, op: str) -> Case:
    """Draw EMBEDDING_LOOKUP."""
    (_, kind), (made,) = draw.types(op)
    shape = draw.shape(2, 4, 200)
    count = draw.extent(1, 9)
    value = draw.rng.integers(0, max(1, shape[0]), count).astype(np.int32)
    listed, value = draw.listed(value, "int32", 0.3)
    table = draw.tensor(str(kind), shape)
    if made in ("float32", "float16") and kind in ("int8", "uint8", "int4", "int2"):
        table = T(table.type, shape, draw.scale(), 0)
        if kind in ("int4", "int2") or draw.chance(0.7):
            table = draw.constant(table)
    y = T(made, (count, *shape[1:]), *((table.scale, table.zero_point) if made == kind else ()))
    return draw.case(op, [listed, table], [y], given=lambda t: value if t is listed else None)


def hashtable_lookup(draw: Draw, op: str) -> Case:
    """Draw HASHTABLE_LOOKUP with sorted keys, some of which are looked up."""
    kind = draw.pick(["float32", "int32", "uint8", "int8", "int64"])
    keys = np.unique(draw.rng.integers(-50, 50, draw.int(1, 12))).astype(np.int32)
    row = draw.shape(0, 3, 20)
    asked = draw.rng.choice([*keys.tolist(), 99], draw.extent(1, 9)).astype(np.int32)
    lookup, key, values = T("int32", asked.shape), T("int32", keys.shape), T(kind, (len(keys), *row))
    known = {id(lookup): asked, id(key): keys}
    return draw.case(
        op,
        [lookup, key, values],
        [T(kind, (len(asked), *row)), T("uint8", asked.shape)],
        given=lambda t: known.get(id(t)),
    )


def prelu(draw: Draw, op: str) -> Case:
    """Draw PRELU with slopes that broadcast."""
    (kind, slopes), (made,) = draw.types(op)
    shape = draw.shape(1, 4)
    x = draw.tensor(str(kind), shape)
    alpha_shape = tuple(1 if draw.chance(0.5) else n for n in shape)[draw.int(0, 1) if len(shape) > 1 else 0 :]
    alpha = draw.constant(draw.tensor(str(slopes), alpha_shape, zero_point=0 if kind == "int16" else None), 0.7)
    y = T(made, shape) if x.scale is None else draw.tensor(made, shape, draw.near(float(x.scale), 1))
    return draw.case(op, [x, alpha], [y])


SPECS = {
    "GATHER": gather,
    "GATHER_ND": gather_nd,
    "SCATTER_ND": scatter_nd,
    "DYNAMIC_UPDATE_SLICE": update_slice,
    "ONE_HOT": one_hot,
    "SELECT": select,
    "SELECT_V2": select,
    "WHERE": where,
    "UNIQUE": unique,
    "FILL": fill,
    "RANGE": range_,
    "SPARSE_TO_DENSE": sparse_to_dense,
    "MATRIX_DIAG": diagonal,
    "MATRIX_SET_DIAG": diagonal,
    "EMBEDDING_LOOKUP": embedding,
    "HASHTABLE_LOOKUP": hashtable_lookup,
    "PRELU": prelu,
}
