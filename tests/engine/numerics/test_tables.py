"""Tables and the host's float functions, against scalar models in NumPy's scalars and ctypes."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from support.each import each
from tflq.engine.numerics import libm, tables
from tflq.engine.numerics import tables as sigmoid_int16
from tflq.engine.numerics.libm import FloatFunction
from tflq.engine.numerics.rounding import rounding_half_away
from tflq.engine.numerics.tables import SIGMOID

FUNCTIONS = [libm.expf, libm.expm1f, libm.logf, libm.tanhf, libm.sinf, libm.cosf, libm.erff, libm.erfcf, libm.powf]


def sample(function, size):
    low = 0.001 if function.name in ("logf", "powf") else -12
    return np.random.default_rng(5).uniform(low, 12, (function.arguments, size)).astype(np.float32)


@each("function", FUNCTIONS, ids=lambda f: f.name)
@each("size", [0, 1, 700, 20_000])
def test_bits_are_the_librarys(function, size):
    native = getattr(libm.c_library(), function.name)
    native.restype, native.argtypes = ctypes.c_float, [ctypes.c_float] * function.arguments
    operands = sample(function, size)
    expected = np.array([native(*row) for row in operands.T.tolist()], np.float32)
    got = function(*operands)
    assert got.dtype == np.float32
    assert (got.view(np.int32) == expected.view(np.int32)).all()
    assert function.is_compiled_alike


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_without_a_library_float64_is_rounded(function, monkeypatch):
    operands = sample(function, 2000)
    native = function(*operands)
    monkeypatch.setattr(libm, "c_library", lambda: None)
    alone = FloatFunction(function.name, function.wide, function.arguments)
    got = alone(*operands)
    assert (np.abs(got - native) <= 2 * np.spacing(np.abs(native))).all()


def test_without_a_library_extremes_are_cs(monkeypatch):
    monkeypatch.setattr(libm, "c_library", lambda: None)

    def alone(function, *operands):
        return float(FloatFunction(function.name, function.wide, function.arguments)(*operands)[()])

    assert alone(libm.expf, 1000) == math.inf
    assert alone(libm.expf, -1000) == 0
    assert alone(libm.logf, 0) == -math.inf
    assert math.isnan(alone(libm.logf, -1))
    assert alone(libm.powf, -1e30, 3) == -math.inf
    assert alone(libm.powf, -1e30, 2) == math.inf
    assert math.isnan(alone(libm.sinf, math.inf))
    assert alone(libm.tanhf, math.inf) == 1


def test_broadcasting_and_shape():
    assert libm.powf(np.array([[1.0], [2.0]], np.float32), np.array([1.0, 2.0, 3.0], np.float32)).tolist() == [
        [1, 1, 1],
        [2, 4, 8],
    ]
    assert libm.expf(np.float32(0)).shape == ()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_8bit_table(dtype):
    """Each entry by hand: float32 throughout, the output scale's reciprocal, half away, clamped."""
    input_scale, output_scale = np.float32(0.047), np.float32(1 / 100)
    table = tables.table_8bit(libm.tanhf, dtype, input_scale, 7, output_scale, 3)
    reciprocal = np.float32(1) / output_scale
    limits = np.iinfo(dtype)
    for code in range(limits.min, limits.max + 1):
        real = libm.tanhf(input_scale * np.float32(code - 7))[()]
        expected = min(max(rounding_half_away(float(real * reciprocal)) + 3, limits.min), limits.max)
        assert table[np.array(code, dtype).view(np.uint8)] == expected
    codes = np.arange(limits.min, limits.max + 1).astype(dtype).reshape(2, -1).T
    assert tables.look_up_8bit(table, codes).tolist() == [[table[int(c) & 255] for c in row] for row in codes]


def test_8bit_table_of_a_function_that_leaves_int32():
    """What lies beyond int32 is clamped like anything else: LiteRT's EXP of a large code gives the highest one."""
    for value, code in ((np.inf, 127), (1e30, 127), (-1e30, -128), (-np.inf, -128)):
        table = tables.table_8bit(lambda x, v=value: np.full_like(x, v), np.int8, np.float32(1), 0, np.float32(1), 5)
        assert set(table.tolist()) == {code}


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_16bit_table(real):
    """Entry by entry, in the scales' own type, in the order of LUTPopulate."""
    input_scale, input_zero_point, output_scale, output_zero_point = real(3e-4), -700, real(1.1e-4), 200

    def transform(x):
        return np.asarray(np.tanh(x.astype(np.float64)), real)

    table = tables.table_16bit(transform, input_scale, input_zero_point, output_scale, output_zero_point)
    first, last = (input_scale * real(code - input_zero_point) for code in (-32768, 32767))
    bottom, top = (output_scale * real(code - output_zero_point) for code in (-32768, 32767))
    step = (last - first) / real(512)
    per_unit = real(65536) / (top - bottom)

    def at(x):
        return transform(np.array(x, real))[()]

    def nearest(x):
        return real(rounding_half_away(float(x)))

    for i in range(512):
        value = at(first + real(i) * step)
        middle = at(first + real(i) * step + step / real(2))
        following = at(first + real(i + 1) * step)
        halfway = nearest((following * per_unit + nearest(value * per_unit)) / real(2))
        bias = nearest((halfway - nearest(middle * per_unit)) / real(2))
        assert table[i] == min(max(nearest(value * per_unit) - bias, -32768), 32767)
    assert table[512] == nearest(at(last) * per_unit)


def test_16bit_interpolation():
    rng = np.random.default_rng(2)
    table = rng.integers(-32768, 32768, 513).astype(np.int16)
    codes = np.arange(-32768, 32768).astype(np.int16)

    def wrapped(x):
        return (x + 2**15) % 2**16 - 2**15

    expected = []
    for code in codes.tolist():
        index = 256 + code // 128
        base = int(table[index])
        slope = wrapped(int(table[index + 1]) - base)
        expected.append(wrapped(base + (slope * (code % 128) + 64) // 128))
    assert tables.look_up_16bit(table, codes).tolist() == expected


def test_sigmoid_table_is_not_the_formula():
    formula = [min(65535, rounding_half_away(65536 / (1 + math.exp(-i / 24)))) for i in range(256)]
    difference = SIGMOID.astype(int) - formula
    assert np.count_nonzero(difference) == 44
    assert set(difference.tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("scale", "largest_pot_shift", "expected"),
    [
        (2.0**-12, 0, (0, 0)),
        (2.0**-11, 0, (24576, 12)),
        (2.0**-11, 1, (0, 1)),
        (2.0**-10, 1, (24576, 11)),
        (1.0, 1, (24576, 1)),
        (10.0, 1, (122880, 0)),
    ],
)
def test_sigmoid_multiplier(scale, largest_pot_shift, expected):
    """A power of two is a shift only where the operator takes it; otherwise scale * 12288 * 2**shift > 32767 / 2."""
    assert sigmoid_int16.sigmoid_multiplier(np.float32(scale), largest_pot_shift) == expected
