"""Profiles of earlier releases on forms that no recorded model has, with values observed in these releases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from support.each import each
from support.running import run
from support.single_op import T, build
from tflq.engine.profiles import by_name
from tflq.errors import UndefinedResultError, UnsupportedError
from tflq.model.ir import TensorType

Array = np.ndarray[Any, Any]
#: Results of MEAN over [1, 2, 3, 16]: by the kernel for images, and by the one for every form.
IMAGE = [-122, 21, 4, 2, 57, -4, 37, 48, 73, 26, 37, 18, 57, 23, 4, -1]
ANY = [-122, 21, 4, 1, 57, -4, 37, 48, 73, 26, 37, 18, 57, 24, 4, -1]


@pytest.mark.parametrize(
    ("profile", "axes", "keeps", "expected"),
    [
        ("litert-2.1-opt", [1, 2], True, IMAGE),
        ("litert-2.1-opt", [-3, -2], True, ANY),
        ("litert-2.1-opt", [1, 2, 1], True, ANY),
        ("litert-2.1-opt", [1, 2], False, ANY),
        ("litert-2.2-opt", [-3, -2], True, IMAGE),
        ("litert-2.2-opt", [1, 2, 1], True, IMAGE),
        ("litert-2.2-opt", [1, 2], False, ANY),
        ("litert-opt", [1, 2, 1], True, IMAGE),
        ("litert-1.0-xnnpack", [1, 2], False, IMAGE),
        ("litert-1.0-xnnpack", [-3, -2], True, ANY),
    ],
)
def test_mean_takes_the_kernel_for_images_by_its_axes(
    profile: str, axes: list[int], keeps: bool, expected: list[int]
) -> None:
    x = (np.arange(96) ** 2 * 7 % 256 - 128).astype(np.int8).reshape(1, 2, 3, 16)
    operands = [T("int8", x.shape, 0.054, -3), T("int32", (len(axes),), value=np.array(axes, np.int32))]
    output = T("int8", (1, 1, 1, 16) if keeps else (1, 16), 0.0531, 5)
    model = build("MEAN", operands, [output], ("ReducerOptions", {"keep_dims": keeps}), 2)
    assert run(model, [x], profile)[0].ravel().tolist() == expected


@pytest.mark.parametrize(
    ("op", "bits"),
    [
        ("EXP", "3cca88fe 3e92b0c2 3f3da643 3f800000 3f8d763e 400a399c 4142eb7f 45fd38a6"),
        ("COS", "bf591d15 3ea171ed 3f7490ee 3f800000 3f7eb899 3f37c8ff bf4d17bf bf693fd5"),
    ],
)
@pytest.mark.parametrize("profile", ["litert-2.1-xnnpack", "litert-2.2-xnnpack"])
def test_functions_of_xnnpack_in_2_1_and_2_2(op: str, bits: str, profile: str) -> None:
    x = np.array([[-3.7, -1.25, -0.3, 0.0, 0.1, 0.77, 2.5, 9.0]], np.float32)
    (got,) = run(build(op, [T("float32", x.shape)], [T("float32", x.shape)]), [x], profile)
    assert [f"{int(v):08x}" for v in got.view(np.uint32).ravel()] == bits.split()


def dense(kind: str, shape: Sequence[int], scales: int) -> bytes:
    """A FULLY_CONNECTED of five units that keeps dimensions."""
    scale = np.linspace(0.005, 0.02, 5)[:scales] if scales > 1 else 0.01
    x = T(kind, shape, 0.02, 0 if kind == "int16" else -9)
    weights = T("int8", (5, 4), scale, value=np.arange(-10, 10, dtype=np.int8).reshape(5, 4))
    output = T(kind, (*shape[:-1], 5), 0.05, 0)
    return build("FULLY_CONNECTED", [x, weights], [output], ("FullyConnectedOptions", {"keep_num_dims": True}), 7)


@pytest.mark.parametrize("profile", ["litert-1.0-ref", "litert-1.0-opt", "tflite-2.14-ref", "tflite-2.14-opt"])
@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_dense_layers_with_several_scales_leave_outputs_of_three_dimensions_unwritten(profile: str, kind: str) -> None:
    x = np.ones((1, 3, 4), kind)
    if kind == "int8" and profile.endswith("opt"):
        assert run(dense(kind, x.shape, 5), [x], profile)[0].shape == (1, 3, 5)
    else:
        with pytest.raises(UndefinedResultError, match="are not written"):
            run(dense(kind, x.shape, 5), [x], profile)
    assert run(dense(kind, x.shape, 1), [x], profile)[0].shape == (1, 3, 5)
    assert run(dense(kind, (3, 4), 5), [x[0]], profile)[0].shape == (3, 5)
    assert run(dense(kind, x.shape, 5), [x], "litert-2.0-ref")[0].shape == (1, 3, 5)


@pytest.mark.parametrize(
    ("profile", "refuses"), [("litert-1.0-opt", False), ("litert-2.0-opt", True), ("litert-opt", False)]
)
def test_division_by_the_code_0(profile: str, refuses: bool) -> None:
    divisor = np.array([1, 2, 3, 0, 5, 6, 7, 8], np.uint8)
    operands = [T("uint8", (8,), 0.02, 3), T("uint8", (8,), 0.03, 9, value=divisor)]
    model = build("DIV", operands, [T("uint8", (8,), 0.1, 5)], ("DivOptions", {}))
    x = np.arange(8, dtype=np.uint8) * 30
    if refuses:
        with pytest.raises(UndefinedResultError, match="division by zero"):
            run(model, [x], profile)
    else:
        assert run(model, [x], profile)[0].shape == (8,)


@pytest.mark.parametrize(
    ("profile", "takes"), [("litert-1.0-ref", False), ("litert-2.0-opt", False), ("litert-2.1-ref", True)]
)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_8_bits_become_16_since_2_1(profile: str, takes: bool, kind: str) -> None:
    model = build("QUANTIZE", [T(kind, (4,), 0.02, 3)], [T("int16", (4,), 0.01)], version=2)
    x = np.arange(4).astype(kind)
    if takes:
        assert run(model, [x], profile)[0].tolist() == [-6, -4, -2, 0]
    else:
        with pytest.raises(UnsupportedError, match="QUANTIZE"):
            run(model, [x], profile)


def test_exp_of_2_14_refuses_codes_beyond_int32() -> None:
    model = build("EXP", [T("int8", (4,), 0.29, -96)], [T("int8", (4,), 0.0137, -97)], version=2)
    with pytest.raises(UndefinedResultError, match="beyond int32"):
        run(model, [np.zeros(4, np.int8)], "tflite-2.14-ref")
    assert run(model, [np.full(4, 100, np.int8)], "litert-1.0-ref")[0].tolist() == [127] * 4


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("litert-1.0-ref", [-6035, 5677]),
        ("tflite-2.14-ref", [-6035, 5676]),
        ("litert-1.0-opt", [-6034, 5676]),
        ("tflite-2.14-opt", [-6034, 5676]),
    ],
)
def test_16_bits_without_a_bias_have_sums_of_32_bits(profile: str, expected: list[int]) -> None:
    x = np.array([[-11192, 7215], [9621, -8394]], np.int16)
    weights = T("int8", (1, 2), 0.0192, value=np.array([[101, -57]], np.int8))
    operands, output = [T("int16", (2, 2), 7.9e-5), weights], T("int16", (2, 1), 0.0031 / 8)
    (got,) = run(build("FULLY_CONNECTED", operands, [output], ("FullyConnectedOptions", {}), 7), [x], profile)
    assert got.ravel().tolist() == expected


@each(
    ("op", "types", "last"),
    [
        ("TILE", "int16 int32 -> int16", "2.0"),
        ("GELU", "int16 -> int16", "1.0"),
        ("SQRT", "int8 -> int8", "1.4"),
        ("GREATER", "float16 float16 -> bool", "2.0"),
        ("LESS", "float16 float16 -> bool", "1.0"),
        ("PAD", "bool int32 -> bool", "1.4"),
        ("PRELU", "int16 int8 -> int16", "1.4"),
        ("DYNAMIC_UPDATE_SLICE", "uint8 uint8 int32 -> uint8", "2.1"),
        ("REDUCE_MAX", "bool int32 -> bool", "2.2"),
        ("QUANTIZE", "float32 -> int4", "2.0"),
        ("FULLY_CONNECTED", "int16 int16 int32 -> int16", "2.0"),
        ("TRANSPOSE", "float16 int32 -> float16", "2.0"),
    ],
)
def test_types_that_came_later(op: str, types: str, last: str) -> None:
    """Observed by asking each release for each form."""
    inputs, outputs = ([TensorType[word.upper()] for word in side.split()] for side in types.split(" -> "))
    releases = ("1.0", "1.4", "2.0", "2.1", "2.2")
    for place, release in enumerate(releases):
        rows = by_name(f"litert-{release}-opt").kernels.get(op, ())
        takes = any(row.signature.mismatches(inputs, outputs) == 0 for row in rows)
        assert takes == (place > releases.index(last)), release
