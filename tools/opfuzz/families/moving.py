"""Operators that move elements and compute nothing: joining, cutting, padding, turning, repeating, reshaping."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from opfuzz.case import Case
from opfuzz.draw import QUANTIZED, Draw, Shape
from opfuzz.one_operator import T


def like(x: T, shape: Shape) -> T:
    """Return a tensor of x's type and quantization."""
    return T(x.type, shape, x.scale, x.zero_point)


def wide(tensor: T, draw: Draw) -> T:
    """Return the tensor, or a constant if its four-bit type cannot be fed."""
    return replace(tensor, value=draw.values(tensor.type, tuple(tensor.shape))) if tensor.type == "int4" else tensor


def from_either_end(draw: Draw, axis: int, rank: int) -> int:
    """Return the axis, sometimes counted from the end."""
    return axis - rank if draw.chance(0.3) else axis


def concatenation(draw: Draw, op: str) -> Case:
    """Draw CONCATENATION; codes of other scales are requantized."""
    kind = str(draw.types(op)[1][0])
    rank, count = draw.int(1, 5), draw.int(1, 5)
    axis = draw.int(0, rank - 1)
    base = draw.shape(rank, rank, 200)
    parts = [(*base[:axis], draw.size(), *base[axis + 1 :]) for _ in range(count)]
    first = draw.tensor(kind, parts[0])
    same = kind not in ("uint8", "int8") or draw.chance(0.4)
    inputs = [like(first, s) if same else draw.tensor(kind, s, draw.near(float(first.scale), 1)) for s in parts]
    if draw.chance(0.2):
        inputs[0] = draw.constant(inputs[0])
    y = like(first, (*base[:axis], sum(s[axis] for s in parts), *base[axis + 1 :]))
    options = {"axis": from_either_end(draw, axis, rank), "fused_activation_function": 0}
    return draw.case(op, inputs, [y], ("ConcatenationOptions", options))


def pack(draw: Draw, op: str) -> Case:
    """Draw PACK."""
    kind = str(draw.types(op)[1][0])
    shape, count = draw.shape(0, 4, 100), draw.int(1, 5)
    axis = draw.int(0, len(shape))
    x = draw.tensor(kind, shape)
    y = like(x, (*shape[:axis], count, *shape[axis:]))
    options = {"values_count": count, "axis": from_either_end(draw, axis, len(shape) + 1)}
    return draw.case(op, [like(x, shape) for _ in range(count)], [y], ("PackOptions", options))


def unpack(draw: Draw, op: str) -> Case:
    """Draw UNPACK."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 5)
    axis = draw.int(0, len(shape) - 1)
    x = draw.tensor(kind, shape)
    outputs = [like(x, (*shape[:axis], *shape[axis + 1 :])) for _ in range(shape[axis])]
    options = {"num": shape[axis], "axis": from_either_end(draw, axis, len(shape))}
    return draw.case(op, [x], outputs, ("UnpackOptions", options))


def split(draw: Draw, op: str) -> Case:
    """Draw SPLIT into equal parts, SPLIT_V into given ones, one of which may be -1."""
    kind = str(draw.types(op)[1][0])
    shape = list(draw.shape(1, 5, 200))
    axis, parts = draw.int(0, len(shape) - 1), draw.int(1, 4)
    sizes = (
        [draw.int(1, 4)] * parts if op == "SPLIT" else [draw.int(0 if draw.chance(0.1) else 1, 5) for _ in range(parts)]
    )
    shape[axis] = sum(sizes)
    x = draw.tensor(kind, tuple(shape))
    at, place = draw.listed(from_either_end(draw, axis, len(shape)))
    outputs = [like(x, (*shape[:axis], n, *shape[axis + 1 :])) for n in sizes]
    if op == "SPLIT":
        return draw.case(
            op, [at, x], outputs, ("SplitOptions", {"num_splits": parts}), given=lambda t: place if t is at else None
        )
    if draw.chance(0.3):
        sizes[draw.int(0, parts - 1)] = -1
    cuts, value = draw.listed(sizes, draw.pick(["int32", "int64"]))
    return draw.case(
        op,
        [x, cuts, at],
        outputs,
        ("SplitVOptions", {"num_splits": parts}),
        given=lambda t: place if t is at else value if t is cuts else None,
    )


def pad(draw: Draw, op: str) -> Case:
    """Draw PAD, PADV2 with a value, or MIRROR_PAD."""
    row, _ = draw.types(op)
    kind = str(row[0])
    mirror = op == "MIRROR_PAD"
    shape = draw.shape(1, 5, 300)
    mode = draw.int(0, 1)  # REFLECT, SYMMETRIC
    most = [n - (1 - mode) if mirror else 4 for n in shape]
    some = [[draw.int(0, max(0, min(4, m))) if draw.chance(0.7) else 0 for _ in range(2)] for m in most]
    out = tuple(n + a + b for n, (a, b) in zip(shape, some, strict=True))
    x = wide(draw.tensor(kind, shape), draw)
    listed, value = draw.listed(some, "int64" if row[1] == "int64" else "int32")
    inputs: list[T | None] = [x, listed]
    if op == "PADV2":
        inputs.append(draw.constant(T(kind, () if draw.chance(0.5) else (1,), x.scale, x.zero_point), 0.6))
    options = ("MirrorPadOptions", {"mode": mode}) if mirror else ("PadOptions" if op == "PAD" else "PadV2Options", {})
    return draw.case(op, inputs, [like(x, out)], options, given=lambda t: value if t is listed else None)


def transpose(draw: Draw, op: str) -> Case:
    """Draw TRANSPOSE."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 6)  # a scalar makes LiteRT abort
    order = [int(i) for i in draw.rng.permutation(len(shape))]
    named = [from_either_end(draw, i, len(shape)) for i in order]
    x = draw.tensor(kind, shape)
    listed, value = draw.listed(named)
    y = like(x, tuple(shape[i] for i in order))
    return draw.case(op, [x, listed], [y], ("TransposeOptions", {}), given=lambda t: value if t is listed else None)


def reshape(draw: Draw, op: str) -> Case:
    """Draw RESHAPE by an operand or by the option; one dimension may be -1."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape()
    new = _factors(draw, math.prod(shape))
    named = list(new)
    if named and math.prod(shape) and draw.chance(0.4):
        named[draw.int(0, len(named) - 1)] = -1
    x = draw.tensor(kind, shape)
    if draw.chance(0.25) and named:
        return draw.case(op, [x], [like(x, new)], ("ReshapeOptions", {"new_shape": np.array(named, np.int32)}))
    listed, value = draw.listed(named)
    return draw.case(
        op, [x, listed], [like(x, new)], ("ReshapeOptions", {}), given=lambda t: value if t is listed else None
    )


def _factors(draw: Draw, count: int) -> Shape:
    sizes = []
    while count > 1 and len(sizes) < 5:
        divisor = draw.pick([d for d in range(1, min(count, 40) + 1) if count % d == 0])
        sizes.append(divisor)
        count //= divisor
    if count != 1 or draw.chance(0.2):
        sizes.append(count)
    return tuple(sizes)


def squeeze(draw: Draw, op: str) -> Case:
    """Draw SQUEEZE of some dimensions of 1, or of all."""
    kind = str(draw.types(op)[0][0])
    shape = tuple(1 if draw.chance(0.4) else n for n in draw.shape(1, 5))
    ones = [i for i, n in enumerate(shape) if n == 1]
    some = [i for i in ones if draw.chance(0.5)]
    gone = some or ones
    x = draw.tensor(kind, shape)
    y = like(x, tuple(n for i, n in enumerate(shape) if i not in gone))
    dims = np.array([from_either_end(draw, i, len(shape)) for i in some], np.int32)
    return draw.case(op, [x], [y], ("SqueezeOptions", {"squeeze_dims": dims}))


def expand_dims(draw: Draw, op: str) -> Case:
    """Draw EXPAND_DIMS."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(0, 4)
    axis = draw.int(0, len(shape))
    x = draw.tensor(kind, shape)
    at = from_either_end(draw, axis, len(shape) + 1)
    listed, value = draw.listed(at if draw.chance(0.5) else [at], draw.pick(["int32", "int64"]))
    y = like(x, (*shape[:axis], 1, *shape[axis:]))
    return draw.case(op, [x, listed], [y], ("ExpandDimsOptions", {}), given=lambda t: value if t is listed else None)


def tile(draw: Draw, op: str) -> Case:
    """Draw TILE or BROADCAST_TO."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(0, 5, 100)
    if op == "TILE":
        times = [draw.pick([0, 1, 1, 1, 2, 3] if draw.chance(0.05) else [1, 1, 2, 3]) for _ in shape]
        out = tuple(n * t for n, t in zip(shape, times, strict=True))
        named = times
    else:
        out = (*draw.shape(0, 2, 6), *shape)
        shape = tuple(1 if draw.chance(0.4) else n for n in shape)
        named = list(out)
    x = wide(draw.tensor(kind, shape), draw)
    listed, value = draw.listed(named, draw.pick(["int32", "int64"]))
    options = ("TileOptions" if op == "TILE" else "BroadcastToOptions", {})
    return draw.case(op, [x, listed], [like(x, out)], options, given=lambda t: value if t is listed else None)


def broadcast_args(draw: Draw, op: str) -> Case:
    """Draw BROADCAST_ARGS."""
    kind = str(draw.types(op)[0][0])
    shapes = draw.broadcasting(5)
    (a, first), (b, second) = (draw.listed(list(s), kind, 0.4) for s in shapes)
    y = T(kind, (max(map(len, shapes)),))
    return draw.case(op, [a, b], [y], given=lambda t: first if t is a else second)


def slice_(draw: Draw, op: str) -> Case:
    """Draw SLICE; a size of -1 means the rest."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 5)
    begin = [draw.int(0, max(0, n - 1)) for n in shape]
    size = [draw.int(1 if n > b else 0, n - b) for n, b in zip(shape, begin, strict=True)]
    named = [-1 if draw.chance(0.2) else s for s in size]
    out = tuple(n - b if s == -1 else s for n, b, s in zip(shape, begin, named, strict=True))
    x = wide(draw.tensor(kind, shape), draw)
    of = draw.pick(["int32", "int64"])
    (a, first), (b_, second) = draw.listed(begin, of), draw.listed(named, of)
    return draw.case(
        op,
        [x, a, b_],
        [like(x, out)],
        ("SliceOptions", {}),
        given=lambda t: first if t is a else second if t is b_ else None,
    )


def strided_slice(draw: Draw, op: str) -> Case:
    """Draw STRIDED_SLICE with all its masks."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 5)
    rank = len(shape)
    short = draw.int(1, rank) if draw.chance(0.2) else rank
    strides = [draw.pick([1, 1, 2, 3, -1, -2]) for _ in range(short)]
    begin, end = _bounds(draw, shape, strides)
    masks = {"begin_mask": 0.3, "end_mask": 0.4, "shrink_axis_mask": 0.08, "new_axis_mask": 0.04}
    options: dict[str, object] = {m: sum(1 << i for i in range(short) if draw.chance(p)) for m, p in masks.items()}
    options["ellipsis_mask"] = 1 << draw.int(0, short - 1) if draw.chance(0.1) else 0
    options["offset"] = len(shape) > 1 and draw.chance(0.03)
    for i in range(short):
        if int(str(options["shrink_axis_mask"])) >> i & 1:
            strides[i], begin[i] = 1, draw.int(-shape[i], max(0, shape[i] - 1))
    x = draw.tensor(kind, shape)
    lists = [draw.listed(v, constant=0.8) for v in (begin, end, strides)]
    known = {id(tensor): value for tensor, value in lists}
    return draw.case(
        op,
        [x, *(tensor for tensor, _ in lists)],
        [like(x, ())],
        ("StridedSliceOptions", options),
        given=lambda t: known.get(id(t)),
    )


def _bounds(draw: Draw, shape: Shape, strides: list[int]) -> tuple[list[int], list[int]]:
    """Return begins and ends: mostly with elements between them, rarely any values."""
    begin, end = [], []
    for n, step in zip(shape, strides, strict=False):
        if draw.chance(0.04):
            first, last = draw.int(-n - 2, n + 2), draw.int(-n - 2, n + 2)
        else:
            first, last = sorted((draw.int(0, max(0, n - 1)), draw.int(1, n + 1)))
            last += first == last
            if step < 0:
                first, last = last - 1, first - 1 if first else -n - 1
            first -= n if first < n and draw.chance(0.3) else 0
            last -= n if 0 <= last < n and draw.chance(0.3) else 0
        begin.append(first)
        end.append(last)
    return begin, end


def blocks(draw: Draw, op: str) -> Case:
    """Draw SPACE_TO_DEPTH or DEPTH_TO_SPACE."""
    kind = str(draw.types(op)[0][0])
    block, (n, h, w, c) = draw.int(1, 4), (draw.int(1, 2), draw.extent(1, 4), draw.extent(1, 4), draw.extent(1, 5))
    deep, flat = (n, h, w, c * block * block), (n, h * block, w * block, c)
    given, made = (flat, deep) if op == "SPACE_TO_DEPTH" else (deep, flat)
    x = draw.tensor(kind, given)
    name = "SpaceToDepthOptions" if op == "SPACE_TO_DEPTH" else "DepthToSpaceOptions"
    return draw.case(op, [x], [like(x, made)], (name, {"block_size": block}))


def batches(draw: Draw, op: str) -> Case:
    """Draw SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND over one or two spatial dimensions."""
    kind = str(draw.types(op)[0][0])
    spatial = draw.int(1, 2)
    block = [draw.int(1, 3) for _ in range(spatial)]
    small = [draw.extent(1, 4) for _ in range(spatial)]
    batch, depth = draw.int(1, 3), draw.extent(1, 4)
    edges = [[draw.int(0, 2), 0] for _ in range(spatial)]
    packed = (batch * math.prod(block), *small, depth)
    if op == "SPACE_TO_BATCH_ND":
        sizes = []
        for i in range(spatial):
            total = small[i] * block[i]
            edges[i][0] = min(edges[i][0], total - 1)
            edges[i][1] = draw.int(0, min(2, total - 1 - edges[i][0]))
            sizes.append(total - sum(edges[i]))
        given, made = (batch, *sizes, depth), packed
    else:
        for i in range(spatial):
            total = small[i] * block[i]
            edges[i][0] = min(edges[i][0], total - 1)
            edges[i][1] = draw.int(0, min(2, total - 1 - edges[i][0]))
        given = packed
        made = (batch, *(small[i] * block[i] - sum(edges[i]) for i in range(spatial)), depth)
    x = draw.tensor(kind, given)
    y = like(x, made) if kind not in QUANTIZED or draw.chance(0.9) else draw.tensor(kind, made)
    (b, first), (e, second) = draw.listed(block), draw.listed(edges)
    name = "SpaceToBatchNDOptions" if op == "SPACE_TO_BATCH_ND" else "BatchToSpaceNDOptions"
    return draw.case(op, [x, b, e], [y], (name, {}), given=lambda t: first if t is b else second if t is e else None)


def reverse(draw: Draw, op: str) -> Case:
    """Draw REVERSE_V2 of neighbouring axes."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 5)
    start = draw.int(0, len(shape) - 1)
    axes = list(range(start, draw.int(start, len(shape) - 1) + 1)) if draw.chance(0.4) else [start]
    x = draw.tensor(kind, shape)
    listed, value = draw.listed([from_either_end(draw, a, len(shape)) for a in axes])
    return draw.case(op, [x, listed], [x], ("ReverseV2Options", {}), given=lambda t: value if t is listed else None)


def reverse_sequence(draw: Draw, op: str) -> Case:
    """Draw REVERSE_SEQUENCE."""
    (kind, of), _ = draw.types(op)
    shape = draw.shape(2, 4)
    batch, sequence = (int(i) for i in draw.rng.permutation(len(shape))[:2])
    x = T(str(kind), shape)
    lengths = draw.rng.integers(min(1, shape[sequence]), shape[sequence] + 1, shape[batch])
    listed, value = draw.listed(lengths, str(of))
    options = {"seq_dim": sequence, "batch_dim": batch}
    return draw.case(
        op, [x, listed], [x], ("ReverseSequenceOptions", options), given=lambda t: value if t is listed else None
    )


def bitcast(draw: Draw, op: str) -> Case:
    """Draw BITCAST between types of equal or of different widths."""
    kind = draw.pick(["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "int64", "float16"])
    made = draw.pick(["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "int64", "float16"])
    shape = draw.shape(0, 4, 200)
    given, wanted = np.dtype(kind).itemsize, np.dtype(made).itemsize
    out: Shape = shape
    if given > wanted:
        out = (*shape, given // wanted)
    elif given < wanted:
        shape = (*shape, wanted // given)
    return draw.case(op, [T(kind, shape)], [T(made, out)], ("BitcastOptions", {}))


SPECS = {
    "CONCATENATION": concatenation,
    "PACK": pack,
    "UNPACK": unpack,
    "SPLIT": split,
    "SPLIT_V": split,
    "PAD": pad,
    "PADV2": pad,
    "MIRROR_PAD": pad,
    "TRANSPOSE": transpose,
    "RESHAPE": reshape,
    "SQUEEZE": squeeze,
    "EXPAND_DIMS": expand_dims,
    "TILE": tile,
    "BROADCAST_TO": tile,
    "BROADCAST_ARGS": broadcast_args,
    "SLICE": slice_,
    "STRIDED_SLICE": strided_slice,
    "SPACE_TO_DEPTH": blocks,
    "DEPTH_TO_SPACE": blocks,
    "SPACE_TO_BATCH_ND": batches,
    "BATCH_TO_SPACE_ND": batches,
    "REVERSE_V2": reverse,
    "REVERSE_SEQUENCE": reverse_sequence,
    "BITCAST": bitcast,
}
