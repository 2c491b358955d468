"""Other axes, orders of operands and blocks, equal elements, modes of padding and broadcasts, planted in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.devices import T, dump, explained, names_of, one
from support.each import each

Array = NDArray[Any]
_IMAGE = (1, 4, 4, 4)


def codes(*shape: int, seed: int = 5, low: int = -128, high: int = 128) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int8)


def reals(*shape: int, seed: int = 6) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def t(*shape: int, of: str = "int8") -> T:
    return T(of, shape, 0.5, 0) if of == "int8" else T(of, shape)


def constant(value: Any) -> T:
    array = np.array(value, np.int32)
    return T("int32", array.shape, value=array)


def squares(x: Array, axis: int) -> Array:
    """Exact in float32: elements along the axis have one magnitude, and are four."""
    return np.asarray(x / np.sqrt((x * x).sum(axis, keepdims=True)), np.float32)


def to_space(x: Array, order: Sequence[int]) -> Array:
    n, h, w, c = x.shape
    parts = (2, 2, c // 4)
    split = x.reshape(n, h, w, *(parts[i] for i in order)).transpose(0, 1, 2, *(3 + int(i) for i in np.argsort(order)))
    return split.transpose(0, 1, 3, 2, 4, 5).reshape(n, 2 * h, 2 * w, c // 4)


def last_of_equal(x: Array, pick: Callable[..., Array]) -> Array:
    return (x.shape[-1] - 1 - pick(x[..., ::-1], -1)).astype(np.int32)


SIGNS = np.where(codes(*_IMAGE, seed=8) > 0, np.float32(1), np.float32(-1))
POWERS = np.float32(2) ** np.arange(4, dtype=np.float32)
AXIS = ("GatherOptions", {"axis": 3, "batch_dims": 0})
PICKS = [3, 0, 0, 2]
SPLIT = codes(1, 4, 4, 8)
EQUAL = codes(1, 12, 4, low=0, high=3)
ROW = reals(4)
#: Operator, inputs, output, options, what is fed, what the device gives, and a part of the cause's name.
PLANTED: dict[str, tuple[str, list[T], T, tuple[str, Mapping[str, Any]] | None, list[Array], Array, str]] = {
    "gather": (
        *("GATHER", [t(*_IMAGE), constant(PICKS)], t(*_IMAGE), AXIS),
        *([codes(*_IMAGE)], codes(*_IMAGE).take(PICKS, 2), "along axis 2 in place of axis 3"),
    ),
    "pack": (
        *("PACK", [t(3, 4), t(3, 4)], t(3, 2, 4), ("PackOptions", {"values_count": 2, "axis": 1})),
        [codes(3, 4), codes(3, 4, seed=7)],
        np.stack([codes(3, 4), codes(3, 4, seed=7)], 0).reshape(3, 2, 4),
        "along axis 0 in place of axis 1",
    ),
    "concatenation": (
        *("CONCATENATION", [t(4, 4), t(4, 4)], t(4, 8), ("ConcatenationOptions", {"axis": 1})),
        [codes(4, 4), codes(4, 4, seed=7)],
        np.concatenate([codes(4, 4, seed=7), codes(4, 4)], 1),
        "inputs 0 and 1 exchanged",
    ),
    "reduction": (
        *("REDUCE_MAX", [t(*_IMAGE), constant([1, 2])], t(1, 4), ("ReducerOptions", {"keep_dims": False})),
        *([codes(*_IMAGE)], codes(*_IMAGE).max((2, 3)), "along axes 2, 3 in place of axes 1, 2"),
    ),
    "normalization": (
        *("L2_NORMALIZATION", [t(*_IMAGE, of="float32")], t(*_IMAGE, of="float32"), ("L2NormOptions", {})),
        *([SIGNS * POWERS],),
        squares(SIGNS * POWERS, 1),
        "computed along axis 1 in place of axis 3",
    ),
    "difference": (
        *("SUB", [t(4, 8, of="float32"), t(4, 8, of="float32")], t(4, 8, of="float32"), ("SubOptions", {})),
        *([reals(4, 8), reals(4, 8, seed=7)], reals(4, 8, seed=7) - reals(4, 8), "inputs 0 and 1 exchanged"),
    ),
    "quotient": (
        *("DIV", [t(4, 8, of="float32"), t(4, 8, of="float32")], t(4, 8, of="float32"), ("DivOptions", {})),
        *([reals(4, 8), reals(4, 8, seed=7)], reals(4, 8, seed=7) / reals(4, 8), "inputs 0 and 1 exchanged"),
    ),
    "largest": (
        *("ARG_MAX", [t(1, 12, 4), constant(2)], T("int32", (1, 12)), ("ArgMaxOptions", {"output_type": 2})),
        *([EQUAL], last_of_equal(EQUAL, np.argmax), "the last of equal maxima"),
    ),
    "smallest": (
        *("ARG_MIN", [t(1, 12, 4), constant(2)], T("int32", (1, 12)), ("ArgMinOptions", {"output_type": 2})),
        *([EQUAL], last_of_equal(EQUAL, np.argmin), "the last of equal minima"),
    ),
    "shuffle": (
        *("DEPTH_TO_SPACE", [t(1, 4, 4, 8)], t(1, 8, 8, 2), ("DepthToSpaceOptions", {"block_size": 2})),
        *([SPLIT], to_space(SPLIT, (2, 0, 1)), "channels in the order channels, rows, columns"),
    ),
    "unshuffle": (
        *("SPACE_TO_DEPTH", [t(1, 8, 8, 2)], t(1, 4, 4, 8), ("SpaceToDepthOptions", {"block_size": 2})),
        *([to_space(SPLIT, (2, 0, 1))], SPLIT, "channels in the order channels, rows, columns"),
    ),
    "mirror": (
        *("MIRROR_PAD", [t(4, 4), constant([[2, 1], [1, 2]])], t(7, 7), ("MirrorPadOptions", {"mode": 1})),
        *([codes(4, 4)], np.pad(codes(4, 4), ((2, 1), (1, 2)), mode="reflect"), "mode REFLECT"),
    ),
    "padding": (
        *("PAD", [t(4, 4), constant([[2, 1], [1, 2]])], t(7, 7), ("PadOptions", {})),
        *([codes(4, 4)], np.pad(codes(4, 4), ((1, 2), (2, 1))), "padding before and after exchanged"),
    ),
    "transpose": (
        *("TRANSPOSE", [t(4, 4, 4), constant([1, 2, 0])], t(4, 4, 4), ("TransposeOptions", {})),
        *([codes(4, 4, 4)], codes(4, 4, 4).transpose(2, 0, 1), "axes in the order [2, 0, 1], the inverse"),
    ),
    "broadcast": (
        *(
            "ADD",
            [t(*_IMAGE, of="float32"), T("float32", (4,), value=ROW)],
            t(*_IMAGE, of="float32"),
            ("AddOptions", {}),
        ),
        *([reals(*_IMAGE)], reals(*_IMAGE) + ROW[:, None], "operand 1 broadcast along another axis: 2 in place of 3"),
    ),
    "slope": (
        "PRELU",
        [t(*_IMAGE, of="float32"), T("float32", (1, 1, 1), value=np.full((1, 1, 1), 0.25, np.float32))],
        *(t(*_IMAGE, of="float32"), None, [reals(*_IMAGE)]),
        np.where(reals(*_IMAGE) < 0, reals(*_IMAGE) * np.array([0.25, 0, 0, 0], np.float32), reals(*_IMAGE)),
        "it serves channel 0 only",
    ),
}


@each("name", PLANTED)
def test_a_planted_structure_is_named(name: str) -> None:
    op, inputs, output, options, fed, made, said = PLANTED[name]
    model = one(op, inputs, output, options)
    found = explained(model, dump(model, fed, [np.ascontiguousarray(made)]))
    assert found.explanation is not None
    names = names_of(found)
    assert any(said in one for one in names), names[:4]
    assert found.explanation.faults == ()


def test_positive_values_that_are_copied() -> None:
    """PRELU with an input scale of 0.5, an output scale of 1 and a slope of 1/2: -8 becomes -2, and 8 stays 8."""
    slope = T("int8", (1, 1, 1), 0.5, 0, value=np.ones((1, 1, 1), np.int8))
    model = one("PRELU", [T("int8", (1, 4, 4, 4), 0.5, 0), slope], T("int8", (1, 4, 4, 4), 1.0, 0))
    x = codes(1, 4, 4, 4) // 8 * 8
    made = np.where(x < 0, x // 4, x).astype(np.int8)
    names = names_of(explained(model, dump(model, [x], [made])))
    assert names[:1] == ["positive values copied, not rescaled to the output"], names
