"""RESIZE_*, SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.single_op import T, assert_same, build, draw, tflq
from tflq.errors import ModelError, UndefinedResultError

MODES = [(False, False), (True, False), (False, True), (True, True)]
BLOCK_TYPES = ["float32", "uint8", "int8", "int32", "int64"]


def image(rng: np.random.Generator, type_: str, high: int = 9) -> T:
    return T(type_, tuple(int(n) for n in rng.integers(1, (3, high, high, 6))), 0.25, 0)


def resize(op: str, x: T, height: int, width: int, align: bool, half: bool, constant: bool = True) -> bytes:
    size = T("int32", (2,), value=(height, width) if constant else None)
    name = "ResizeBilinearOptions" if op == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    options = (name, {"align_corners": align, "half_pixel_centers": half})
    return build(op, [x, size], [T(x.type, (), x.scale, 0)], options, version=4)


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["float32", "uint8", "int8", "int16"])
@pytest.mark.parametrize(("align", "half"), MODES[:3])
def test_resize_bilinear(type_: str, align: bool, half: bool) -> None:
    rng = np.random.default_rng(61)
    for _ in range(25):
        x, (height, width) = image(rng, type_), (int(n) for n in rng.integers(1, 30, 2))
        values = draw(rng, x)
        assert_same(resize("RESIZE_BILINEAR", x, height, width, align, half), [values], (x.shape, height, width))
    computed = resize("RESIZE_BILINEAR", x, 1, 1, align, half, constant=False)
    assert_same(computed, [values, np.array([5, 3], np.int32)])


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["float32", "uint8", "int8", "int16", "int32", "bool"])
@pytest.mark.parametrize(("align", "half"), MODES)
def test_resize_nearest_neighbor(type_: str, align: bool, half: bool) -> None:
    rng = np.random.default_rng(62)
    for _ in range(25):
        x, (height, width) = image(rng, type_, 40), (int(n) for n in rng.integers(1, 60, 2))
        model = resize("RESIZE_NEAREST_NEIGHBOR", x, height, width, align, half)
        assert_same(model, [draw(rng, x)], (x.shape, height, width))


def test_resizes_refuse() -> None:
    zeros = np.zeros((1, 2, 2, 1), np.int8)
    x = T("int8", zeros.shape)
    with pytest.raises(ModelError, match="not both"):
        tflq(resize("RESIZE_BILINEAR", x, 3, 3, True, True), [zeros])
    with pytest.raises(ModelError, match="size"):
        tflq(resize("RESIZE_BILINEAR", x, 0, 3, False, False), [zeros])
    with pytest.raises(UndefinedResultError):  # steps of 1/1024 pixel, rounded up 5,000 times
        tflq(
            resize("RESIZE_BILINEAR", T("int8", (1, 3, 3, 1)), 5000, 3, False, False), [np.zeros((1, 3, 3, 1), np.int8)]
        )
    with pytest.raises(ModelError, match="dimensions"):
        tflq(resize("RESIZE_NEAREST_NEIGHBOR", T("int8", (2, 2)), 3, 3, False, False), [zeros[0, ..., 0]])


@each("type_", BLOCK_TYPES)
@each("block", [1, 2, 3])
def test_space_and_depth(type_: str, block: int) -> None:
    rng = np.random.default_rng(63)
    for n, h, w, c in rng.integers(1, 4, (5, 4)):
        x = T(type_, (n, h * block, w * block, c))
        model = build("SPACE_TO_DEPTH", [x], [T(type_, ())], ("SpaceToDepthOptions", {"block_size": block}))
        assert_same(model, [draw(rng, x)], x.shape)
        x = T(type_, (n, h, w, c * block * block))
        model = build("DEPTH_TO_SPACE", [x], [T(type_, ())], ("DepthToSpaceOptions", {"block_size": block}))
        assert_same(model, [draw(rng, x)], x.shape)


@pytest.mark.parametrize("block", [0, 2])
def test_space_and_depth_refuse(block: int) -> None:
    zeros = np.zeros((1, 3, 3, 3), np.int8)
    for op, name in (("SPACE_TO_DEPTH", "SpaceToDepthOptions"), ("DEPTH_TO_SPACE", "DepthToSpaceOptions")):
        with pytest.raises(ModelError):
            tflq(build(op, [T("int8", zeros.shape)], [T("int8", ())], (name, {"block_size": block})), [zeros])


QUANTIZED = [
    ("uint8", 0.5, 130),
    ("int8", 0.5, -7),
    ("int16", 0.5, 0),
    ("float32", None, 0),
    ("int32", None, 0),
    ("int64", None, 0),
]


@each(("type_", "scale", "point"), QUANTIZED)
@each("spatial", [1, 2])
def test_space_and_batch(type_: str, scale: float | None, point: int, spatial: int) -> None:
    rng = np.random.default_rng(64)
    for _ in range(12):
        block, margins = rng.integers(1, 4, spatial), rng.integers(0, 3, (spatial, 2))
        n, c, counts = *(int(v) for v in rng.integers(1, 4, 2)), rng.integers(1, 4, spatial)
        margins[:, 1] += -margins.sum(1) % block
        inner = np.maximum(counts * block - margins.sum(1), 0)
        operands = [T("int32", (spatial,), value=block), T("int32", (spatial, 2), value=margins)]
        y = T(type_, (), scale, point)
        if inner.all():
            x = T(type_, (n, *inner, c), scale, point)
            model = build("SPACE_TO_BATCH_ND", [x, *operands], [y], ("SpaceToBatchNDOptions", {}))
            assert_same(model, [draw(rng, x)], (x.shape, block, margins))
            x = T(type_, (n * int(block.prod()), *counts, c), scale, point)
            model = build("BATCH_TO_SPACE_ND", [x, *operands], [y], ("BatchToSpaceNDOptions", {}))
            assert_same(model, [draw(rng, x)], (x.shape, block, margins))


def test_space_and_batch_refuse() -> None:
    zeros = np.zeros((3, 3, 3, 1), np.int8)
    operands = [T("int32", (2,), value=[2, 2]), T("int32", (2, 2), value=[[0, 0], [0, 0]])]
    for op, name in (("SPACE_TO_BATCH_ND", "SpaceToBatchNDOptions"), ("BATCH_TO_SPACE_ND", "BatchToSpaceNDOptions")):
        with pytest.raises(ModelError, match="multiple of 2"):
            tflq(build(op, [T("int8", zeros.shape), *operands], [T("int8", ())], (name, {})), [zeros])
