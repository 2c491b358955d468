"""MediaPipe's custom operators by XNNPACK, compared with LiteRT's default resolver bit by bit."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from support.each import each
from support.graphs import Graph, Op, build
from support.processors import XNNPACK, has_xnnpack_profile
from support.running import assert_same, run
from support.single_op import T, litert
from tflq.comparison.results import Verdict
from tflq.comparison.verification.verifying import verify
from tflq.engine.profiles import PROFILES
from tflq.errors import TflqError

Array = np.ndarray[Any, Any]
STRANGE = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38], np.float32)
SAME, VALID = 1, 2

pytestmark = has_xnnpack_profile


def floats(*shape: int) -> T:
    return T("float32", shape)


def constant(value: Array) -> T:
    return T(str(value.dtype), value.shape, value=value)


def normal(rng: np.random.Generator, *shape: int, strange: float = 0.0) -> Array:
    x = rng.standard_normal(shape).astype(np.float32)
    return np.where(rng.random(shape) < strange, rng.choice(STRANGE, shape), x)


def pool_options(padding: int, height: int, width: int, **changed: int) -> bytes:
    members = {"padding": padding, "sw": width, "sh": height, "w": width, "h": height, "activation": 0, **changed}
    return struct.pack("<6i", *members.values())


def check(model: bytes, inputs: list[Array], note: object) -> list[Array]:
    got = run(model, inputs, XNNPACK or "")
    assert_same(got, litert(model, inputs, "BUILTIN"), str(note))
    return got


def pool(rng: np.random.Generator, padding: int) -> tuple[bytes, Array, tuple[int, ...]]:
    height, width = (int(n) for n in rng.integers(1, 5, 2))
    image, channels = [int(n) for n in rng.integers(5, 12, 2)], int(rng.integers(1, 10))
    steps = [-(-n // k) if padding == SAME else n // k for n, k in zip(image, (height, width), strict=True)]
    x, y = (2, *image, channels), (2, *steps, channels)
    op = Op("MaxPoolingWithArgmax2D", [0], [1, 2], custom=pool_options(padding, height, width))
    return build(Graph([floats(*x), floats(*y), floats(*y)], [0], [1, 2], [op])), normal(rng, *x, strange=0.1), y


@each("seed", range(16))
@each("padding", [SAME, VALID])
def test_pooling(padding: int, seed: int) -> None:
    model, x, shape = pool(np.random.default_rng([21, seed]), padding)
    assert check(model, [x], seed)[1].shape == shape


@pytest.mark.parametrize("seed", range(10))
def test_unpooling(seed: int) -> None:
    rng = np.random.default_rng([22, seed])
    height, width = (int(n) for n in rng.integers(1, 4, 2))
    x = (2, *(int(n) for n in rng.integers(1, 5, 2)), int(rng.integers(1, 10)))
    y = (2, x[1] * height, x[2] * width, x[3])
    op = Op("MaxUnpooling2D", [0, 1], [2], custom=pool_options(VALID, height, width))
    model = build(Graph([floats(*x), floats(*x), floats(*y)], [0, 1], [2], [op]))
    places = rng.integers(0, height * width, x).astype(np.uint32).view(np.float32)
    check(model, [normal(rng, *x, strange=0.2), places], seed)


@each("seed", range(16))
@each("padding", [SAME, VALID])
def test_deconvolution(padding: int, seed: int) -> None:
    rng = np.random.default_rng([23, seed])
    stride = [int(n) for n in rng.integers(1, 4, 2)]
    kernel = [int(n) + (s - 1 if padding == SAME else 0) for n, s in zip(rng.integers(1, 4, 2), stride, strict=True)]
    size, depth, out = [int(n) for n in rng.integers(1, 7, 2)], int(rng.integers(1, 9)), int(rng.integers(1, 9))
    of_valid = [(n - 1) * s + k for n, s, k in zip(size, stride, kernel, strict=True)]
    target = [n * s for n, s in zip(size, stride, strict=True)] if padding == SAME else of_valid
    w, b = normal(rng, out, *kernel, depth), normal(rng, out)
    tensors = [floats(2, *size, depth), constant(w), constant(b), floats(2, *target, out)]
    options = struct.pack("<3i", padding, stride[1], stride[0])
    model = build(Graph(tensors, [0], [3], [Op("Convolution2DTransposeBias", [0, 1, 2], [3], custom=options)]))
    check(model, [normal(rng, 2, *size, depth, strange=0.02 * (seed % 2))], seed)


def segmentation() -> bytes:
    """A pool whose places an unpooling reads, and a deconvolution with float16 weights behind DEQUANTIZE."""
    rng = np.random.default_rng(24)
    w, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 2, 2, 4), (3,)))
    real = [floats(*w.shape), floats(3)]
    places = [floats(1, 4, 4, 4), floats(1, 4, 4, 4), floats(1, 8, 8, 4)]
    tensors = [floats(1, 8, 8, 4), *places, constant(w), constant(b), *real, floats(1, 16, 16, 3)]
    pooled = pool_options(VALID, 2, 2)
    ops = [
        Op("MaxPoolingWithArgmax2D", [0], [1, 2], custom=pooled),
        Op("MaxUnpooling2D", [1, 2], [3], custom=pooled),
        Op("DEQUANTIZE", [4], [6], version=3),
        Op("DEQUANTIZE", [5], [7], version=3),
        Op("Convolution2DTransposeBias", [3, 6, 7], [8], custom=struct.pack("<3i", SAME, 2, 2)),
    ]
    return build(Graph(tensors, [0], [8], ops))


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
def test_a_model_of_all_three_is_the_same(mode: str) -> None:
    report = verify(segmentation(), "litert-xnnpack", mode=mode, samples=2)
    assert report.verdict == Verdict.SAME
    assert len(report.coverage.unwritten) == 2


@pytest.mark.parametrize(
    "options", [pool_options(0, 2, 2), pool_options(VALID, 2, 2, sw=1), pool_options(VALID, 2, 2, activation=4), b""]
)
def test_what_the_delegate_leaves_is_refused(options: bytes) -> None:
    shape = (1, 4, 4, 2)
    y = floats(1, 2, 2, 2)
    op = Op("MaxPoolingWithArgmax2D", [0], [1, 2], custom=options)
    model = build(Graph([floats(*shape), y, y], [0], [1, 2], [op]))
    x = np.zeros(shape, np.float32)
    with pytest.raises(TflqError):
        run(model, [x], XNNPACK or "")
    with pytest.raises((RuntimeError, ValueError)):
        litert(model, [x], "BUILTIN")


def test_profiles_that_have_them() -> None:
    have = {name for name, profile in PROFILES.items() if "MaxUnpooling2D" in profile.kernels}
    assert {"litert-xnnpack", "litert-1.0-xnnpack", "litert-xnnpack-arm64"} <= have
    assert not have & {"litert-ref", "litert-opt", "tflite-2.12-xnnpack", "tflm"}
