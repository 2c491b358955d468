"""QUANTIZE and DEQUANTIZE against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from support.parameters import CODES, quantized, scale, zero_point
from support.single_op import T, allocate, assert_same, build, draw
from tflq.errors import ModelError, UnsupportedError

BYTES = ("int8", "uint8")
PAIRS = [(a, b) for a in BYTES for b in (*BYTES, "int16")]
PAIRS += [("int16", b) for b in ("int8", "int16", "int32")] + [("int32", b) for b in ("int8", "int16")]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_requantize(source, target):
    """Random scales, equal ones, and powers of two, which make ties."""
    rng = np.random.default_rng(1)
    for factor in (None, None, 1.0, 0.5, 8.0):
        x = quantized(rng, source, (3, 90))
        y = T(target, (3, 90), x.scale * (factor or scale(rng, -3, 3)), zero_point(rng, target))
        codes = draw(rng, x)
        if source == "int32":
            codes = (codes >> rng.integers(0, 31, codes.shape)).astype(np.int32)
        assert_same(build("QUANTIZE", [x], [y]), [codes], (x, y))


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "int4", "uint4"])
def test_quantize(target):
    """Ties, values beyond int32, infinities and NaN."""
    rng = np.random.default_rng(2)
    for k in range(6):
        y = T(target, (4, 40), 2.0**-4 if k == 0 else scale(rng), zero_point(rng, target))
        x = rng.uniform(-20, 20, (4, 40)).astype(np.float32)
        x = np.round(x * 32) / np.float32(32) if k == 0 else x
        x.flat[:6] = [np.inf, -np.inf, np.nan, 3e9, -3e9, 1e30]
        assert_same(build("QUANTIZE", [T("float32", (4, 40))], [y]), [x], y)


@pytest.mark.parametrize("target", ["int8", "uint8", "int16"])
def test_quantize_per_axis(target):
    rng = np.random.default_rng(3)
    for axis in range(3):
        shape = (2, 3, 4)
        scales = [scale(rng) for _ in range(shape[axis])]
        y = T(target, shape, scales, [zero_point(rng, target) for _ in scales], axis)
        x = rng.uniform(-20, 20, shape).astype(np.float32)
        assert_same(build("QUANTIZE", [T("float32", shape)], [y]), [x], y)


@pytest.mark.parametrize("source", ["int8", "uint8", "int16", "int4", "uint4", "int2"])
def test_dequantize(source):
    """Codes of every width, per tensor and per axis; narrow ones come as constants."""
    rng = np.random.default_rng(4)
    for k in range(4):
        x = quantized(rng, source, (3, 41))
        if k == 3 and source != "int16":
            x = T(source, (3, 41), rng.uniform(0.1, 1, 41), [zero_point(rng, source) for _ in range(41)], 1)
        if source in ("int8", "uint8", "int16"):
            assert_same(build("DEQUANTIZE", [x], [T("float32", x.shape)]), [draw(rng, x)], x)
        else:
            low, high = CODES[source]
            constant = T(source, x.shape, x.scale, x.zero_point, x.axis, rng.integers(low, high + 1, x.shape))
            assert_same(build("DEQUANTIZE", [constant], [T("float32", x.shape)]), [], x)


def test_widen():
    rng = np.random.default_rng(5)
    x = rng.normal(size=50).astype(np.float16)
    assert_same(build("DEQUANTIZE", [T("float16", (50,))], [T("float32", (50,))]), [x])


def test_refusals():
    with pytest.raises(ModelError, match="not quantized"):
        allocate(build("QUANTIZE", [T("float32", (3,))], [T("int8", (3,))]))
    with pytest.raises(ModelError, match="zero point"):
        allocate(build("QUANTIZE", [T("int16", (3,), 1.0, 4)], [T("int16", (3,), 1.0)]))
    with pytest.raises(UnsupportedError):
        allocate(build("QUANTIZE", [T("int16", (3,), 1.0)], [T("uint8", (3,), 1.0)]))
    with pytest.raises(UnsupportedError, match="2 scales along a dimension of 4"):
        allocate(build("DEQUANTIZE", [T("int8", (3, 4), [1.0, 2.0], 0, 1)], [T("float32", (3, 4))]))
