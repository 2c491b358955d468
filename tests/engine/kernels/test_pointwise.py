"""Element-wise operators that few models have, against LiteRT: complex parts, angles, signs, StableHLO's arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.parameters import NUMBERS, SPECIAL, floats, quantized
from support.single_op import FULL, REFERENCE, T, assert_same, build, draw, litert, tflq
from tflq.errors import ModelError, UndefinedResultError

SHAPES = [(), (7,), (3, 0), (2, 3, 1, 2, 5), (3000,)]


def bits(rng, type_, shape):
    """Values of any type; NaN and infinities among the floats."""
    if type_.startswith("float"):
        return floats(rng, shape).astype(type_)
    return draw(rng, T(type_, shape))


@each("shape", SHAPES)
@each(
    ("op", "type_", "resolver"),
    [
        ("SIGN", "float32", "BUILTIN_REF"),
        ("SIGN", "float64", "BUILTIN_REF"),
        ("SIGN", "int32", "BUILTIN_REF"),
        ("CEIL", "float32", FULL),
        ("ELU", "float32", FULL),
        ("ROUND", "float32", FULL),
        ("ROUND", "float16", FULL),
        ("TANH", "float16", "BUILTIN_REF"),
        ("LOGISTIC", "float16", "BUILTIN_REF"),
    ],
)
def test_unary(op, type_, resolver, shape):
    x = bits(np.random.default_rng(1), type_, shape)
    assert_same(build(op, [T(type_, shape)], [T(type_, shape)]), [x], (op, type_), resolver)


def test_round_at_halves():
    x = (np.arange(-41, 41) / 4).astype(np.float32)
    x = np.concatenate([x, np.nextafter(x, 99), np.nextafter(x, -99), np.float32([-0.0, 2**23 + 1, -1e-30, 1e30])])
    x = x.astype(np.float32)
    assert_same(build("ROUND", [T("float32", x.shape)], [T("float32", x.shape)]), [x], "", FULL)


def test_elu_codes():
    rng = np.random.default_rng(2)
    for _ in range(8):
        x, y = quantized(rng, "int8", (500,)), quantized(rng, "int8", (500,))
        assert_same(build("ELU", [x], [y]), [draw(rng, x)], (x, y), FULL)


@each("shape", SHAPES)
@each("type_", ["float32", "float64", "float16"])
def test_atan2(type_, shape):
    rng = np.random.default_rng(3)
    y, x = bits(rng, type_, shape), bits(rng, type_, shape)
    x = rng.permutation(x.reshape(-1)).reshape(shape)
    assert_same(build("ATAN2", [T(type_, shape)] * 2, [T(type_, shape)]), [y, x], type_)


def test_bfloat16():
    """LiteRT's interface cannot hand bfloat16 over: its float32 kernels, rounded once, are the expectation."""
    rng = np.random.default_rng(10)
    for shape in ((), (400,)):
        y, x = (rng.uniform(-300, 300, shape).astype(np.float32).view(np.uint32) & 0xFFFF0000 for _ in range(2))
        half, brain = [v.view(np.float32) for v in (y, x)], [(v >> 16).astype(np.uint16) for v in (y, x)]
        for op, count in (("ATAN2", 2), ("ROUND", 1), ("TANH", 1), ("LOGISTIC", 1)):
            (wide,) = litert(
                build(op, [T("float32", shape)] * count, [T("float32", shape)]),
                half[:count],
                FULL if op == "ROUND" else REFERENCE,
            )
            (got,) = tflq(build(op, [T("bfloat16", shape)] * count, [T("bfloat16", shape)]), brain[:count])
            error = np.abs(wide - (got.astype(np.uint32) << 16).view(np.float32))
            step = np.exp2(np.floor(np.log2(np.maximum(np.abs(wide), 1e-30))) - 7)
            assert (error <= step / 2).all(), op


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("type_", ["float32", "float16"])
def test_gelu(type_, approximate):
    """Sizes that fill groups of four and sizes that do not."""
    rng = np.random.default_rng(11)
    options = ("GeluOptions", {"approximate": approximate})
    for shape in ((), (3,), (4,), (2, 3, 0), (1, 5, 1, 2, 3), (40003,)):
        x = np.where(rng.random(shape) < 0.5, rng.normal(size=shape), rng.uniform(-16, 16, shape))
        if x.size > 20:
            x.flat[: len(SPECIAL)] = SPECIAL
        assert_same(build("GELU", [T(type_, shape)], [T(type_, shape)], options), [x.astype(type_)], shape)


def test_atan2_pairs_by_place():
    rng = np.random.default_rng(4)
    y, x = T("float32", (2, 3)), T("float32", (4, 2))
    assert_same(build("ATAN2", [y, x], [y]), [draw(rng, y), draw(rng, x)])
    with pytest.raises(UndefinedResultError):
        tflq(build("ATAN2", [x, y], [x]), [draw(rng, x), draw(rng, y)])


@each("shape", SHAPES)
@each("op", ["REAL", "IMAG", "COMPLEX_ABS"])
def test_complex(op, shape):
    rng = np.random.default_rng(5)
    for given, made in (("complex64", "float32"), ("complex128", "float64")):
        x = np.zeros(shape, given)
        x.real, x.imag = floats(rng, shape), rng.permutation(floats(rng, shape).reshape(-1)).reshape(shape)
        assert_same(build(op, [T(given, shape)], [T(made, shape)]), [x], given)


@pytest.mark.parametrize("type_", ["float32", "float64", "int32", "int64"])
def test_bucketize(type_):
    rng = np.random.default_rng(6)
    for count in (0, 1, 5, 40):
        bounds = np.sort(rng.integers(-6, 6, count) * rng.choice([0.5, 0.3])).astype(np.float32)
        model = build(
            "BUCKETIZE", [T(type_, (9, 60))], [T("int32", (9, 60))], ("BucketizeOptions", {"boundaries": bounds})
        )
        x = floats(rng, (9, 60)).astype(type_) if type_[0] == "f" else rng.integers(-6, 7, (9, 60)).astype(type_)
        if type_[0] == "f" and count:
            x[0, :40] = rng.choice(bounds, 40)
        assert_same(model, [x], bounds)


def test_bucketize_rounds_integers_to_float():
    x = (2**24 + np.arange(-8, 8)).astype(np.int32)
    bounds = np.float32([2**24 - 3, 2**24, 2**24 + 2, 2**24 + 4])
    model = build("BUCKETIZE", [T("int32", (16,))], [T("int32", (16,))], ("BucketizeOptions", {"boundaries": bounds}))
    assert_same(model, [x])


def test_boundaries_that_fall_are_refused():
    options = ("BucketizeOptions", {"boundaries": np.float32([2, 1])})
    with pytest.raises(ModelError, match="boundaries"):
        tflq(build("BUCKETIZE", [T("int32", (1,))], [T("int32", (1,))], options), [np.zeros(1, np.int32)])


@pytest.mark.parametrize("type_", ["float32", "int32"])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_add_n(type_, count):
    rng = np.random.default_rng(7)
    for shape in SHAPES:
        values = [bits(rng, type_, shape) for _ in range(count)]
        if type_ == "float32":
            values = [np.where(np.isnan(v), np.float32(3e38), v) for v in values]
        assert_same(build("ADD_N", [T(type_, shape)] * count, [T(type_, shape)], ("AddNOptions", {})), values, shape)


PAIRS = [(op, t) for op in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM") for t in NUMBERS]


@pytest.mark.slow
@pytest.mark.parametrize(("op", "type_"), [*PAIRS, *(("AND", t) for t in NUMBERS[3:])])
def test_stablehlo_arithmetic(op, type_):
    rng = np.random.default_rng(8)
    for shape in SHAPES:
        a = bits(rng, type_, shape)
        b = rng.permutation(bits(rng, type_, shape).reshape(-1)).reshape(shape)
        model = build(f"STABLEHLO_{op}", [T(type_, shape)] * 2, [T(type_, shape)])
        assert_same(model, [a, b], (op, type_), FULL if op == "AND" else "BUILTIN_REF")


def test_stablehlo_maximum_of_zeros_and_nans():
    a, b = (v.reshape(-1).astype(np.float32) for v in np.meshgrid(SPECIAL, SPECIAL))
    for op in ("MAXIMUM", "MINIMUM"):
        assert_same(build(f"STABLEHLO_{op}", [T("float32", a.shape)] * 2, [T("float32", a.shape)]), [a, b], op)


@pytest.mark.parametrize("type_", ["int8", "int16", "int32"])
def test_shift_left(type_):
    rng = np.random.default_rng(9)
    for shape in SHAPES:
        a, b = draw(rng, T(type_, shape)), rng.integers(0, 32, shape).astype(type_)
        assert_same(build("STABLEHLO_SHIFT_LEFT", [T(type_, shape)] * 2, [T(type_, shape)]), [a, b], shape, FULL)
    with pytest.raises(UndefinedResultError):
        tflq(build("STABLEHLO_SHIFT_LEFT", [T(type_, (1,))] * 2, [T(type_, (1,))]), [a[:1], np.full(1, -1, type_)])
