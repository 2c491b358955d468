"""TensorFlow Lite Micro: the operators it takes and how it reads scales, against its package if that is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from support.running import run_once
from support.single_op import T, build
from tflq.engine.api.interpreter import Interpreter
from tflq.engine.kernels.kernel import Signature
from tflq.engine.kernels.tables.micro import CONSTANT, FORMS, RANK, narrow
from tflq.engine.profiles import by_name
from tflq.errors import TflqError, UnsupportedError

Array = np.ndarray[Any, Any]


def run(model: bytes, inputs: Sequence[Array], profile: str = "tflm") -> Array:
    return run_once(Interpreter(model_content=model, profile=profile), inputs)[0]


def live(model: bytes, inputs: Sequence[Array]) -> Array | None:
    """Return the output of the installed package; None if it refuses the model."""
    runtime = pytest.importorskip("tflite_micro", reason="tflite-micro is not installed").runtime
    try:
        interpreter = runtime.Interpreter.from_bytes(model, arena_size=1 << 20)
        for place, value in enumerate(inputs):
            interpreter.set_input(value, place)
        interpreter.invoke()
    except RuntimeError:
        return None
    return np.array(interpreter.get_output(0))


def test_the_first_of_several_scales_is_used_for_all_channels() -> None:
    x = T("int8", (2, 3), [0.5, 0.25, 2.0], [1, 2, 3], 1)
    model = build("DEQUANTIZE", [x], [T("float32", (2, 3))], version=2)
    codes = np.array([[1, 2, 3], [-128, 0, 127]], np.int8)
    assert (run(model, [codes]) == (codes.astype(np.float32) - 1) * 0.5).all()
    assert (run(model, [codes], "litert-ref") == (codes - np.float32([1, 2, 3])) * np.float32([0.5, 0.25, 2])).all()


def test_the_first_scale_live() -> None:
    x = T("int8", (2, 3), [0.5, 0.25, 2.0], [1, 2, 3], 1)
    model = build("DEQUANTIZE", [x], [T("float32", (2, 3))], version=2)
    codes = np.array([[1, 2, 3], [-128, 0, 127]], np.int8)
    assert np.array_equal(live(model, [codes]), run(model, [codes]))  # type: ignore[arg-type]


def test_every_version_is_taken() -> None:
    x = T("float32", (3,))
    values = np.array([-1, 0.5, 2], np.float32)
    for version in (0, 1, 30):
        assert (run(build("ABS", [x], [x], version=version), [values]) == abs(values)).all()
    with pytest.raises(UnsupportedError):
        run(build("ABS", [x], [x], version=30), [values], "litert-ref")


@pytest.mark.parametrize(
    ("op", "kind", "options"),
    [
        ("EXP", "int8", "ExpOptions"),
        ("ABS", "int32", "AbsOptions"),
        ("FLOOR", "float16", ""),
        ("NEG", "int8", "NegOptions"),
    ],
)
def test_forms_that_its_kernels_lack_are_refused(op: str, kind: str, options: str) -> None:
    x = T(kind, (3,), 0.1 if kind == "int8" else None, 0)
    model = build(op, [x], [x], (options, {}) if options else None)
    with pytest.raises(UnsupportedError):
        run(model, [np.zeros(3, kind)])


def transposing(constant: bool, shape: tuple[int, ...]) -> bytes:
    order = np.arange(len(shape), dtype=np.int32)[::-1].copy()
    perm = T("int32", order.shape, value=order if constant else None)
    x, y = T("int8", shape, 0.5, 0), T("int8", shape[::-1], 0.5, 0)
    return build("TRANSPOSE", [x, perm], [y], ("TransposeOptions", {}))


def test_shapes_have_to_be_constant_and_of_few_dimensions() -> None:
    codes, order = np.arange(6, dtype=np.int8), np.array([1, 0], np.int32)
    assert run(transposing(True, (2, 3)), [codes.reshape(2, 3)]).shape == (3, 2)
    for model, inputs in (
        (transposing(False, (2, 3)), [codes.reshape(2, 3), order]),
        (transposing(True, (1, 1, 1, 1, 2, 3)), [codes.reshape(1, 1, 1, 1, 2, 3)]),
    ):
        with pytest.raises(TflqError):
            run(model, inputs)


def test_shapes_live() -> None:
    codes, order = np.arange(6, dtype=np.int8), np.array([1, 0], np.int32)
    assert live(transposing(False, (2, 3)), [codes.reshape(2, 3), order]) is None
    assert live(transposing(True, (1, 1, 1, 1, 2, 3)), [codes.reshape(1, 1, 1, 1, 2, 3)]) is None
    assert live(transposing(True, (2, 3)), [codes.reshape(2, 3)]) is not None


def test_sums_of_2026_2_wrap_without_a_bias() -> None:
    x, w = np.full((1, 2048), 32767, np.int16), np.full((1, 2048), 127, np.int8)
    model = build(
        "FULLY_CONNECTED",
        [T("int16", x.shape, 2.0**-12, 0), T("int8", w.shape, 0.01, 0, value=w), None],
        [T("int16", (1, 1), 1.0, 0)],
        ("FullyConnectedOptions", {}),
        version=7,
    )
    assert run(model, [x], "tflm-2026.2") == -164  # recorded from the build of 3 February 2026
    assert run(model, [x], "tflm") == run(model, [x], "tflm-2026.9") == 20808  # from later builds


def test_options_that_2026_2_ignores() -> None:
    """Recorded from the build of 3 February 2026: no fused activation, and corners for centers."""
    x = T("int8", (1, 1, 1, 1), 1.0, 0)
    weights = T("int8", (1, 1, 1, 1), 1.0, 0, value=np.array([[[[1]]]], np.int8))
    shape = T("int32", (4,), value=np.array([1, 1, 1, 1], np.int32))
    options = ("TransposeConvOptions", {"padding": 1, "stride_h": 1, "stride_w": 1, "fused_activation_function": 1})
    model = build("TRANSPOSE_CONV", [shape, weights, x], [x], options, version=4)
    code = np.full((1, 1, 1, 1), -5, np.int8)
    assert (run(model, [code], "tflm-2026.2"), run(model, [code], "tflm")) == (-5, 0)
    image = T("int8", (1, 1, 3, 1), 1.0, 0)
    size = T("int32", (2,), value=np.array([1, 2], np.int32))
    resize = ("ResizeNearestNeighborOptions", {"align_corners": False, "half_pixel_centers": True})
    model = build("RESIZE_NEAREST_NEIGHBOR", [image, size], [T("int8", (1, 1, 2, 1), 1.0, 0)], resize, version=3)
    codes = np.array([1, 2, 3], np.int8).reshape(1, 1, 3, 1)
    assert run(model, [codes], "tflm-2026.2").ravel().tolist() == [1, 2]
    assert run(model, [codes], "tflm").ravel().tolist() == [1, 3]


def test_the_data_name_operators_that_are_registered() -> None:
    table = by_name("tflm").kernels
    for op in (*FORMS, *CONSTANT, *RANK):
        assert table[op], op


def test_narrowed() -> None:
    def of(signature: str, form: str) -> str:
        return str(narrow(Signature.parse(signature), Signature.parse(form)))

    assert of("int8|int16 int32|int64 -> any", "float32|int8 int32 -> any") == "int8 int32 -> any"
    assert of("int8 -> int8", "float32 -> any") == "None"
    assert of("float32|int8* -> int8", "int8* -> any") == "int8* -> int8"
    assert of("int8 int8 int32? -> int8", "int8 int8 -> int8") == "int8 int8 -> int8"
