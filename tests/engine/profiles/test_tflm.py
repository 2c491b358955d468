"""The profile `tflm`: recorded outputs of tflite-micro, and the runtime itself where it is installed.

TFLQ_MICRO_PYTHON names the Python that has tflite-micro, if not this one.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.each import each
from support.running import run_once
from support.single_op import T, build
from support.sweeping import few
from tflq.engine.runtimes import by_name
from tflq.errors import RuntimeFailed, RuntimeMissing, UnsupportedError

Array = np.ndarray[Any, Any]
SINGLE = suites.ROOT / "golden" / "singleop"
RECORDED = sorted((SINGLE / "recorded").glob("*@tflm.npz"))


def run(model: bytes, inputs: list[Array], profile: str = "tflm") -> list[Array]:
    return run_once(tflq.Interpreter(model_content=model, profile=profile), inputs)


@each("path", RECORDED, ids=[path.stem for path in RECORDED])
def test_recorded_outputs(path: Any) -> None:
    name = path.stem.removesuffix("@tflm")
    model = (SINGLE / "models" / f"{name}.tflite").read_bytes()
    differs = False
    with np.load(SINGLE / "recorded" / f"{name}.npz") as given, np.load(path) as wanted:
        for sample in sorted({key.split("_")[0] for key in wanted}):
            inputs = [given[key] for key in sorted(k for k in given if k.startswith(f"{sample}_in"))]
            (got,) = run(model, inputs)
            np.testing.assert_array_equal(got, wanted[f"{sample}_out0"])
            differs |= not np.array_equal(wanted[f"{sample}_out0"], given[f"{sample}_out0"])
    assert differs  # from LiteRT: a recording that tells nothing would not be here


def live(models: list[bytes], inputs: list[Array]) -> list[tuple[Array | None, ...]]:
    try:
        done = by_name("tflm", python=os.environ.get("TFLQ_MICRO_PYTHON")).run(models, [tuple(inputs)])
    except RuntimeMissing as error:
        pytest.skip(str(error))
    return [outputs[0] for outputs in done.outputs]


def scales(rng: np.random.Generator, count: int, *, pot: bool) -> list[float]:
    """Random scales; powers of two make ties."""
    return [float(2.0 ** rng.integers(-8, -2)) if pot else float(rng.uniform(0.005, 0.2)) for _ in range(count)]


def zeros(rng: np.random.Generator, type_: str, count: int) -> list[int]:
    return [int(z) for z in rng.integers(-30, 30, count)] if type_ == "int8" else [0] * count


def codes(rng: np.random.Generator, type_: str, shape: tuple[int, ...], lowest: int | None = None) -> Array:
    info = np.iinfo(type_)
    return rng.integers(info.min if lowest is None else lowest, info.max, shape, type_, endpoint=True)


def check(models: list[bytes], notes: list[object], inputs: list[Array]) -> None:
    """Every model on the same inputs."""
    for model, note, wanted in zip(models, notes, live(models, inputs), strict=True):
        (got,), (want,) = run(model, inputs), wanted
        assert want is not None
        np.testing.assert_array_equal(got, want, err_msg=str(note))


UNARY: tuple[tuple[str, tuple[str, dict[str, Any]] | None], ...] = (
    ("LEAKY_RELU", ("LeakyReluOptions", {"alpha": 0.3})),
    ("LEAKY_RELU", ("LeakyReluOptions", {"alpha": -0.125})),
    ("RELU", None),
    ("RELU6", None),
    ("LOGISTIC", None),
    ("TANH", None),
    ("ABS", ("AbsOptions", {})),
    ("QUANTIZE", ("QuantizeOptions", {})),
    ("HARD_SWISH", ("HardSwishOptions", {})),
    ("SOFTMAX", ("SoftmaxOptions", {"beta": 0.7})),
)


@pytest.mark.parametrize("type_", ["int8", "int16"])
def test_one_operand(type_: str) -> None:
    rng = np.random.default_rng(7)
    models, notes = [], []
    for op, options in UNARY:
        if type_ == "int16" and op in ("HARD_SWISH", "SOFTMAX"):
            continue
        for pot in (False, True):
            (si, so), (zi, zo) = scales(rng, 2, pot=pot), zeros(rng, type_, 2)
            if op in ("LOGISTIC", "SOFTMAX", "TANH"):  # fixed by the runtime
                bits = 8 if type_ == "int8" else 16
                so = 2.0 ** -(bits if op != "TANH" and type_ == "int8" else bits - 1)
                zo = 0 if type_ == "int16" or op == "TANH" else -128
            models.append(build(op, [T(type_, (4, 60), si, zi)], [T(type_, (4, 60), so, zo)], options))
            notes.append((op, options, si, zi, so, zo))
    check(models, notes, [codes(rng, type_, (4, 60))])


def test_inverse_roots_of_16_bits() -> None:
    rng = np.random.default_rng(8)
    pairs = [scales(rng, 2, pot=pot) for pot in (False, False, True, True)]
    models = [build("RSQRT", [T("int16", (5, 50), a)], [T("int16", (5, 50), b)]) for a, b in pairs]
    check(models, list(pairs), [codes(rng, "int16", (5, 50), lowest=0)])


@pytest.mark.parametrize("type_", ["int8", "int16"])
def test_two_operands(type_: str) -> None:
    rng = np.random.default_rng(9)
    models, notes = [], []
    for op, table in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")):
        for pot in (False, True, False, True):
            s, z = scales(rng, 3, pot=pot), zeros(rng, type_, 3)
            a, b, y = (T(type_, (3, 70), s[i] * (4 if i == 2 else 1), z[i]) for i in range(3))
            models.append(build(op, [a, b], [y], (table, {"fused_activation_function": int(rng.integers(0, 2))})))
            notes.append((op, s, z))
    check(models, notes, [codes(rng, type_, (3, 70)), codes(rng, type_, (3, 70))])


@pytest.mark.parametrize("type_", ["int8", "int16"])
def test_squared_differences(type_: str) -> None:
    rng = np.random.default_rng(14)
    models, notes = [], []
    for pot in (False, True, False, True):
        s, z = scales(rng, 3, pot=pot), zeros(rng, type_, 3)
        fine, coarse = (1.0, 20.0) if type_ == "int8" else (0.01, 0.5)
        a, b, y = (T(type_, (3, 70), s[i] * (coarse if i == 2 else fine), z[i]) for i in range(3))
        models.append(build("SQUARED_DIFFERENCE", [a, b], [y]))
        notes.append((s, z))
    check(models, notes, [codes(rng, type_, (3, 70)), codes(rng, type_, (3, 70))])


@pytest.mark.parametrize("type_", ["int8", "int16"])
def test_slopes_that_are_learned(type_: str) -> None:
    rng = np.random.default_rng(13)
    models, notes = [], []
    for pot in (False, True, False, True):
        (si, sa, so), (zi, za, zo) = scales(rng, 3, pot=pot), (*zeros(rng, type_, 1), 7, *zeros(rng, type_, 1))
        operands = [T(type_, (3, 300), si, zi), T("int8", (3, 300), sa, za)]
        models.append(build("PRELU", operands, [T(type_, (3, 300), so, zo)]))
        notes.append((si, zi, sa, za, so, zo))
    check(models, notes, [codes(rng, type_, (3, 300)), codes(rng, "int8", (3, 300))])


@pytest.mark.parametrize("type_", ["int8", "int16"])
def test_sums_and_means(type_: str) -> None:
    rng = np.random.default_rng(10)
    models, notes = [], []
    for op in ("SUM", "MEAN"):
        for pot in (False, True):
            (si, so), (zi, zo) = scales(rng, 2, pot=pot), zeros(rng, type_, 2)
            inputs = [T(type_, (2, 5, 6, 3), si, zi), T("int32", (2,), value=[1, 2])]
            options = ("ReducerOptions", {"keep_dims": True})
            models.append(build(op, inputs, [T(type_, (2, 1, 1, 3), so * 8, zo)], options))
            notes.append((op, si, zi, so, zo))
    check(models, notes, [codes(rng, type_, (2, 5, 6, 3))])


@pytest.mark.parametrize(("type_", "bias_type"), [("int8", "int32"), ("int16", "int64"), ("int16", "int32")])
def test_dense(type_: str, bias_type: str) -> None:
    rng = np.random.default_rng(11)
    models, notes = [], []
    for units, pot in ((5, False), (16, True), (9, True), (3, False)):
        (si, sw, so), (zi, zo) = scales(rng, 3, pot=pot), zeros(rng, type_, 2)
        w = T("int8", (units, 24), sw, value=codes(rng, "int8", (units, 24)))
        bias = T(bias_type, (units,), si * sw, value=rng.integers(-3000, 3000, units))
        options = ("FullyConnectedOptions", {"fused_activation_function": 0})
        y = T(type_, (6, units), so * 40, zo)
        models.append(build("FULLY_CONNECTED", [T(type_, (6, 24), si, zi), w, bias], [y], options))
        notes.append((units, si, sw, so))
    check(models, notes, [codes(rng, type_, (6, 24))])


@pytest.mark.parametrize(("type_", "bias_type"), [("int8", "int32"), ("int16", "int64"), ("int16", "int32")])
def test_convolution(type_: str, bias_type: str) -> None:
    rng = np.random.default_rng(12)
    models, notes = [], []
    for channels, pot in ((4, False), (7, True)):
        (si, so), (zi, zo) = scales(rng, 2, pot=pot), zeros(rng, type_, 2)
        sw = np.array(scales(rng, channels, pot=pot), np.float32)
        w = T("int8", (channels, 3, 3, 3), sw, [0] * channels, value=codes(rng, "int8", (channels, 3, 3, 3)))
        bias = T(bias_type, (channels,), sw * np.float32(si), [0] * channels, value=rng.integers(-999, 999, channels))
        options = (
            "Conv2DOptions",
            {
                "padding": 1,
                "stride_h": 1,
                "stride_w": 2,
                "dilation_h_factor": 1,
                "dilation_w_factor": 1,
                "fused_activation_function": 1,
            },
        )
        y = T(type_, (1, 4, 3, channels), so * 30, zo)
        models.append(build("CONV_2D", [T(type_, (1, 6, 7, 3), si, zi), w, bias], [y], options))
        notes.append((channels, si, so))
    check(models, notes, [codes(rng, type_, (1, 6, 7, 3))])


#: Operator and input type, refused when the operator runs; the types that it takes beside.
REFUSED = (
    ("REDUCE_MAX", "int16"),
    ("REDUCE_MAX", "int32"),
    ("REDUCE_MIN", "int16"),
    ("MEAN", "int32"),
    ("SUM", "int32"),
    ("RESIZE_BILINEAR", "int16"),
    ("MUL", "uint8"),
)


def form(op: str, kind: str) -> tuple[bytes, list[Array]]:
    """A model of that operator and an input for it."""

    def tensor(shape: tuple[int, ...]) -> T:
        return T(kind, shape, 0.05, 0)

    if op == "RESIZE_BILINEAR":
        size = T("int32", (2,), value=np.array([4, 4]))
        model = build(op, [tensor((1, 2, 2, 1)), size], [tensor((1, 4, 4, 1))], ("ResizeBilinearOptions", {}), 3)
        return model, [np.ones((1, 2, 2, 1), kind)]
    if op == "MUL":
        return build(op, [tensor((4,))] * 2, [tensor((4,))], ("MulOptions", {}), 2), [np.ones(4, kind)] * 2
    axes = T("int32", (1,), value=np.array([1]))
    model = build(op, [tensor((2, 4)), axes], [tensor((2,))], ("ReducerOptions", {"keep_dims": False}), 2)
    return model, [np.ones((2, 4), kind)]


@pytest.mark.parametrize(("op", "kind"), few(REFUSED, *REFUSED[:2]))
def test_types_that_the_runtime_refuses_are_refused(op: str, kind: str) -> None:
    model, inputs = form(op, kind)
    with pytest.raises(UnsupportedError, match=op):
        run(model, inputs)
    run(*form(op, "int8"))
    with pytest.raises(RuntimeFailed):
        live([model], inputs)
