"""STRIDED_SLICE, SLICE, SPLIT, SPLIT_V, PACK, UNPACK, CONCATENATION, PAD, PADV2, MIRROR_PAD against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.each import each
from support.single_op import T, assert_same, build, draw, tflq
from tflq.errors import ModelError, UndefinedResultError

TYPES = ["float32", "uint8", "int8", "int16", "int32", "int64", "bool"]
SPLIT_TYPES = ["float32", "uint8", "int8", "int16", "int32", "int64"]
MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def int32s(*values: int) -> T:
    return T("int32", (len(values),), value=values)


def sizes(rng: np.random.Generator, rank: int, low: int = 1, high: int = 6) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(low, high, rank))


def strided(x: T, begin: Any, end: Any, strides: Any, masks: dict[str, int], offset: bool = False) -> bytes:
    options = ("StridedSliceOptions", {**dict.fromkeys(MASKS, 0), **masks, "offset": offset})
    entries = [int32s(*begin), int32s(*end), int32s(*strides)]
    return build("STRIDED_SLICE", [x, *entries], [T(x.type, ())], options, version=4)


def random_entries(rng: np.random.Generator, rank: int, size: int) -> tuple[Any, Any, Any, dict[str, int]]:
    """Entries and masks of a valid slice: at most one ellipsis, and shrunk dimensions that hold their position."""
    count = int(rng.integers(1, rank + 1))
    begin, end = rng.integers(-size - 2, size + 3, (2, count))
    strides = rng.choice([1, 1, 2, 3, -1, -2], count)
    masks = {"begin_mask": int(rng.integers(0, 1 << count)), "end_mask": int(rng.integers(0, 1 << count))}
    if rng.integers(0, 2):
        entry = int(rng.integers(0, count))
        masks["shrink_axis_mask"] = 1 << entry
        masks["begin_mask"] &= ~(1 << entry)
        begin[entry], strides[entry] = 0, 1
    elif rng.integers(0, 2):
        masks["ellipsis_mask"] = 1 << int(rng.integers(0, count))
    if rng.integers(0, 3) == 0:
        masks["new_axis_mask"] = int(rng.integers(0, 1 << count)) & ~masks.get("shrink_axis_mask", 0)
    return begin, end, strides, masks


@pytest.mark.slow
def test_strided_slice_with_every_mask() -> None:
    rng = np.random.default_rng(11)
    compared = empty = 0
    for case in range(900):
        rank = int(rng.integers(1, 5))
        x = T(TYPES[case % len(TYPES)], sizes(rng, rank))
        begin, end, strides, masks = random_entries(rng, rank, 5)
        model = strided(x, begin, end, strides, masks)
        values = draw(rng, x)
        if tflq(model, [values])[0].size == 0:
            empty += 1  # the runtime's Python interface cannot hand them out
            continue
        assert_same(model, [values], (x.shape, begin, end, strides, masks))
        compared += 1
    assert compared > 300
    assert empty > 50


@pytest.mark.parametrize(("begin", "end"), [((0, 1), (2, 3)), ((1, 0), (1, 2)), ((-2, 2), (2, 2))])
def test_strided_slice_with_offset(begin: tuple[int, ...], end: tuple[int, ...]) -> None:
    x = T("int16", (3, 5))
    assert_same(strided(x, begin, end, (1, 1), {}, offset=True), [draw(np.random.default_rng(12), x)])
    assert_same(strided(x, begin, end, (1, 2), {}, offset=True), [draw(np.random.default_rng(12), x)])


def test_strided_slice_of_computed_entries() -> None:
    x, entries = T("int8", (4, 5)), [T("int32", (2,))] * 3
    options = ("StridedSliceOptions", dict.fromkeys(MASKS, 0))
    model = build("STRIDED_SLICE", [x, *entries], [T("int8", ())], options)
    values = draw(np.random.default_rng(13), x)
    for begin, end, strides in (((0, 1), (4, 5), (2, 3)), ((3, 4), (-9, 0), (-1, -2)), ((1, 1), (2, 2), (1, 1))):
        assert_same(model, [values, *(np.array(v, np.int32) for v in (begin, end, strides))])


def test_strided_slice_refuses() -> None:
    x = T("int8", (3, 3))
    with pytest.raises(ModelError, match="stride"):
        tflq(strided(x, (0, 0), (3, 3), (1, 0), {}), [np.zeros((3, 3), np.int8)])
    with pytest.raises(UndefinedResultError):  # the position to keep lies outside: the source writes nothing
        tflq(strided(x, (3, 0), (4, 3), (1, 1), {"shrink_axis_mask": 1}), [np.zeros((3, 3), np.int8)])


@each("type_", TYPES)
@each("index", ["int32", "int64"])
def test_slice(type_: str, index: str) -> None:
    rng = np.random.default_rng(14)
    for rank in range(1, 7):
        x = T(type_, sizes(rng, rank))
        begin = np.array([rng.integers(0, n) for n in x.shape])
        size = np.array([rng.choice([-1, rng.integers(1, n - b + 1)]) for n, b in zip(x.shape, begin, strict=True)])
        y = T(type_, ())
        values = draw(rng, x)
        constant = [T(index, (rank,), value=begin), T(index, (rank,), value=size)]
        assert_same(build("SLICE", [x, *constant], [y]), [values], (x.shape, begin, size))
        computed = build("SLICE", [x, T(index, (rank,)), T(index, (rank,))], [y])
        assert_same(computed, [values, begin.astype(index), size.astype(index)], (x.shape, begin, size))


@pytest.mark.parametrize(("begin", "size"), [((0, 2), (1, 2)), ((0, 0), (-2, 1)), ((-1, 0), (1, 1)), ((0,), (1,))])
def test_slice_refuses(begin: tuple[int, ...], size: tuple[int, ...]) -> None:
    with pytest.raises(ModelError):
        tflq(
            build("SLICE", [T("int8", (2, 3)), int32s(*begin), int32s(*size)], [T("int8", ())]),
            [np.zeros((2, 3), np.int8)],
        )


@pytest.mark.parametrize("type_", SPLIT_TYPES)
def test_split(type_: str) -> None:
    rng = np.random.default_rng(15)
    for rank in range(1, 6):
        axis, count = int(rng.integers(-rank, rank)), int(rng.integers(1, 4))
        shape = list(sizes(rng, rank))
        shape[axis] = count * int(rng.integers(1, 4))
        x = T(type_, shape)
        options = ("SplitOptions", {"num_splits": count})
        values = draw(rng, x)
        constant = build("SPLIT", [int32s(axis), x], [T(type_, ())] * count, options, version=2)
        assert_same(constant, [values], (shape, axis, count))
        computed = build("SPLIT", [T("int32", ()), x], [T(type_, ())] * count, options, version=2)
        assert_same(computed, [np.array(axis, np.int32), values], (shape, axis, count))


@each("type_", SPLIT_TYPES)
@each("index", ["int32", "int64"])
def test_split_v(type_: str, index: str) -> None:
    rng = np.random.default_rng(16)
    for rank in range(1, 5):
        axis = int(rng.integers(-rank, rank))
        parts = rng.integers(1, 4, int(rng.integers(1, 4)))
        shape = list(sizes(rng, rank))
        shape[axis] = int(parts.sum())
        given = parts.copy()
        if rank % 2:
            given[int(rng.integers(0, len(parts)))] = -1
        x = T(type_, shape)
        inputs = [x, T(index, parts.shape, value=given), int32s(axis)]
        options = ("SplitVOptions", {"num_splits": len(parts)})
        model = build("SPLIT_V", inputs, [T(type_, ())] * len(parts), options, version=2)
        assert_same(model, [draw(rng, x)], (shape, axis, given))


def test_splits_refuse_what_does_not_add_up() -> None:
    x, options = T("int8", (5,)), ("SplitOptions", {"num_splits": 2})
    with pytest.raises(ModelError, match="multiple of 2"):
        tflq(build("SPLIT", [int32s(0), x], [T("int8", ())] * 2, options), [np.zeros(5, np.int8)])
    for given in ((2, 2), (-1, -1), (6, -1)):
        model = build(
            "SPLIT_V", [x, int32s(*given), int32s(0)], [T("int8", ())] * 2, ("SplitVOptions", {"num_splits": 2})
        )
        with pytest.raises(ModelError):
            tflq(model, [np.zeros(5, np.int8)])


@pytest.mark.parametrize("type_", SPLIT_TYPES)
def test_pack_and_unpack(type_: str) -> None:
    rng = np.random.default_rng(17)
    for rank in range(4):
        shape, count = sizes(rng, rank), int(rng.integers(1, 4))
        x = T(type_, shape)
        for axis in range(-rank - 1, rank + 1):
            options = ("PackOptions", {"values_count": count, "axis": axis})
            model = build("PACK", [x] * count, [T(type_, ())], options, version=2)
            assert_same(model, [draw(rng, x) for _ in range(count)], (shape, axis))
            if type_ == "int64":
                continue
            whole = list(shape)
            whole.insert(axis if axis >= 0 else rank + 1 + axis, count)
            options = ("UnpackOptions", {"num": count, "axis": axis})
            model = build("UNPACK", [T(type_, whole)], [T(type_, ())] * count, options, version=2)
            assert_same(model, [draw(rng, T(type_, whole))], (whole, axis))


def test_pack_refuses_another_zero_point() -> None:
    options = ("PackOptions", {"values_count": 1, "axis": 0})
    with pytest.raises(ModelError, match="zero point"):
        tflq(build("PACK", [T("int8", (2,), 0.5, 1)], [T("int8", (1, 2), 0.5, 2)], options), [np.zeros(2, np.int8)])


def concatenation(inputs: list[T], y: T, axis: int) -> bytes:
    return build("CONCATENATION", inputs, [y], ("ConcatenationOptions", {"axis": axis}), version=2)


@pytest.mark.parametrize("type_", TYPES)
def test_concatenation(type_: str) -> None:
    rng = np.random.default_rng(18)
    for rank in range(1, 6):
        axis, shape = int(rng.integers(-rank, rank)), list(sizes(rng, rank))
        inputs = []
        for _ in range(int(rng.integers(1, 4))):
            shape[axis] = int(rng.integers(1, 4))
            inputs.append(T(type_, tuple(shape)))
        assert_same(concatenation(inputs, T(type_, ()), axis), [draw(rng, x) for x in inputs], (shape, axis))


def test_concatenation_rescales_uint8() -> None:
    rng = np.random.default_rng(19)
    codes = np.arange(256, dtype=np.uint8)
    for case in range(60):
        scales = 2.0 ** rng.integers(-4, 3, 3) if case % 3 == 0 else np.exp(rng.uniform(-4, 1, 3))
        points = rng.integers(0, 256, 3)
        inputs = [T("uint8", (256,), s, int(z)) for s, z in zip(scales[:2], points[:2], strict=True)]
        model = concatenation(inputs, T("uint8", (), scales[2], int(points[2])), 0)
        assert_same(model, [codes, codes], (scales, points))


def test_concatenation_of_int16_looks_at_no_scale() -> None:
    inputs = [T("int16", (3,), 0.5), T("int16", (2,), 0.125)]
    rng = np.random.default_rng(20)
    assert_same(concatenation(inputs, T("int16", (), 0.25), 0), [draw(rng, x) for x in inputs])


def test_concatenation_refuses() -> None:
    zeros = np.zeros((2, 3), np.int8)
    for other in (
        T("int8", (2, 3), 0.5, 1),
        T("int8", (2, 3), 0.25, 0),
        T("int8", (3, 3), 0.5, 0),
        T("int8", (6,), 0.5, 0),
    ):
        model = concatenation([T("int8", (2, 3), 0.5, 0), other], T("int8", (), 0.5, 0), 1)
        with pytest.raises(ModelError):
            tflq(model, [zeros, np.zeros(other.shape, np.int8)])
    model = concatenation([T("uint8", (3,), 1.0, 5)], T("uint8", (3,), 1e-12, 0), 0)
    with pytest.raises(UndefinedResultError):
        tflq(model, [np.zeros(3, np.uint8)])


QUANTIZED = [("uint8", 0.5, 7), ("int8", 0.5, -3), ("int16", 0.5, 0), ("int8", None, 0), ("int16", None, 0)]


@each(("type_", "scale", "point"), QUANTIZED + [(t, None, 0) for t in ("float32", "int32", "int64", "bool")])
@each("index", ["int32", "int64"])
def test_pads(type_: str, scale: float | None, point: int, index: str) -> None:
    rng = np.random.default_rng(21)
    for rank in range(1, 6):
        x, amounts = T(type_, sizes(rng, rank, high=4), scale, point), rng.integers(0, 3, (rank, 2))
        y, values = T(type_, (), scale, point), draw(rng, x)
        paddings = T(index, (rank, 2), value=amounts)
        assert_same(build("PAD", [x, paddings], [y], version=2), [values], (x.shape, amounts))
        one = T(type_, (1,), scale, point)
        assert_same(build("PADV2", [x, paddings, one], [y], version=2), [values, draw(rng, one)], (x.shape, amounts))
        computed = build("PAD", [x, T(index, (rank, 2))], [y], version=2)
        assert_same(computed, [values, amounts.astype(index)], (x.shape, amounts))


@pytest.mark.parametrize("amounts", [((-1, 0), (0, 0)), ((0, 0),)])
def test_pad_refuses(amounts: Any) -> None:
    paddings = T("int32", np.shape(amounts), value=amounts)
    with pytest.raises(ModelError):
        tflq(build("PAD", [T("int8", (2, 2)), paddings], [T("int8", ())]), [np.zeros((2, 2), np.int8)])


def test_pad_refuses_a_value_of_another_scale() -> None:
    inputs = [T("int8", (2,), 0.5), T("int32", (1, 2), value=[[1, 1]]), T("int8", (1,), 0.25, value=[3])]
    with pytest.raises(ModelError, match="scale"):
        tflq(build("PADV2", inputs, [T("int8", (), 0.5)]), [np.zeros(2, np.int8)])


@each("type_", TYPES)
@each("mode", [0, 1])
def test_mirror_pad(type_: str, mode: int) -> None:
    rng = np.random.default_rng(22)
    for rank in range(1, 5):
        x = T(type_, sizes(rng, rank))
        amounts = np.array([rng.integers(0, n + mode, 2) for n in x.shape])
        inputs = [x, T("int64" if rank % 2 else "int32", (rank, 2), value=amounts)]
        model = build("MIRROR_PAD", inputs, [T(type_, ())], ("MirrorPadOptions", {"mode": mode}))
        assert_same(model, [draw(rng, x)], (x.shape, amounts))


@pytest.mark.parametrize(("mode", "amount"), [(0, 3), (1, 4), (0, -1), (7, 1)])
def test_mirror_pad_refuses(mode: int, amount: int) -> None:
    inputs = [T("int8", (3,)), T("int32", (1, 2), value=[[0, amount]])]
    with pytest.raises(ModelError):
        tflq(build("MIRROR_PAD", inputs, [T("int8", ())], ("MirrorPadOptions", {"mode": mode})), [np.zeros(3, np.int8)])
