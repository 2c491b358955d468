"""Operators that spread elements, put borders around them, and fold windows of them."""

from __future__ import annotations

import numpy as np

from opfuzz.case import Case
from opfuzz.draw import Draw, Shape
from opfuzz.families.moving import like
from opfuzz.one_operator import T


def bordered(draw: Draw, op: str) -> Case:
    """Draw STABLEHLO_PAD; borders may cut."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 5, 200)
    between = [draw.pick([0, 0, 1, 2]) for _ in shape]
    sides = [[draw.int(-2, 3) for _ in shape] for _ in range(2)]
    for i, n in enumerate(shape):  # at least one element must be left
        size = n + max(0, n - 1) * between[i] + sides[0][i] + sides[1][i]
        sides[1][i] += max(0, 1 - size)
    options = {"edge_padding_low": sides[0], "edge_padding_high": sides[1], "interior_padding": between}
    x = T(kind, shape)
    return draw.case(op, [x, T(kind, ())], [like(x, shape)], ("StablehloPadOptions", options))


def dilate(draw: Draw, op: str) -> Case:
    """Draw DILATE."""
    kind = str(draw.types(op)[0][0])
    shape = draw.shape(1, 5, 100)
    steps, value = draw.listed([draw.int(1, 3) for _ in shape])
    x = T(kind, shape)
    return draw.case(
        op,
        [x, steps, T(kind, ())],
        [like(x, shape)],
        ("DilateOptions", {}),
        given=lambda t: value if t is steps else None,
    )


def fold(draw: Draw, op: str) -> Case:
    """Draw REDUCE_WINDOW."""
    kind = str(draw.types(op)[0][0])
    shape: Shape = tuple(max(1, n) for n in draw.shape(1, 4, 200))
    dilations = [draw.int(1, 2) for _ in shape]
    window = [draw.int(1, max(1, (n - 1) // d + 1)) for n, d in zip(shape, dilations, strict=True)]
    strides = [draw.int(1, 3) for _ in shape]
    lists = [T("int64", (len(shape),), value=np.array(v)) for v in (window, strides, dilations)]
    options = {"reduce_function": draw.int(5, 6) if kind == "bool" else draw.int(1, 4)}
    x = T(kind, shape)
    return draw.case(op, [x, T(kind, ()), *lists], [like(x, shape)], ("ReduceWindowOptions", options))


def bits(draw: Draw, op: str) -> Case:
    """Draw STABLEHLO_RNG_BIT_GENERATOR from a given state."""
    kind = draw.types(op)[1][1]
    shape = draw.shape(1, 4)
    algorithm = draw.int(1, 2)
    words = draw.int(2, 3) if algorithm == 1 else 2
    state = T("uint64", (words,))
    wanted = draw.rng.integers(0, 2**63, words).astype(np.uint64)
    return draw.case(
        op,
        [state],
        [T("uint64", (words,)), T(kind, shape)],
        ("StablehloRngBitGeneratorOptions", {"algorithm": algorithm}),
        given=lambda _: wanted,
    )


SPECS = {"STABLEHLO_PAD": bordered, "DILATE": dilate, "REDUCE_WINDOW": fold, "STABLEHLO_RNG_BIT_GENERATOR": bits}
