"""The ends of output stages: sums at and beyond what fits, zero points at both ends, in LiteRT's three resolvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from support import single_op
from support.each import each
from support.processors import own
from support.running import run_once
from support.single_op import Array, T, build
from tflq.engine.api.interpreter import Interpreter
from tflq.engine.kernels.families.contraction import Output
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stage_roundings import FloatRoundingEven, FloatRoundingWrapped, SaturatedTwice
from tflq.engine.numerics.stages import OutputPipeline
from tflq.proof.products import never_falls

RESOLVERS = {
    "litert-ref": "BUILTIN_REF",
    "litert-opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-xnnpack": "BUILTIN",
}
#: Sums in the bias: int32's ends, those of int32 and int8 divided by the multipliers, and tails of vectors.
SUMS = np.array(
    [
        *(-(2**31), -(2**31) + 1, -(2**31) + 128, -1431655766, -1431655765, -21474837, -21474836, -85, -1, 0, 1, 85),
        *(8589934, 8589935, 21474836, 21474837, 1431655765, 1431655766, 2**31 - 128, 2**31 - 1, 7),
    ],
    np.int32,
)
COUNT = len(SUMS)
CONV = {"padding": 1, "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}


@dataclass(frozen=True)
class Type:
    """A type of codes: its name, its centre, and zero points of outputs."""

    name: str
    centre: int
    zero_points: tuple[int, ...]


INT8, UINT8 = Type("int8", 0, (-128, -3, 5, 127)), Type("uint8", 128, (0, 3, 255))


def contraction(op: str, type_: Type, zero_point: int, real: float, limit: int = 0) -> tuple[bytes, Array]:
    """A model whose outputs are `SUMS` times `real`, in a form of `op`, and its input."""
    scale, centre, name = 1 / real, type_.centre, type_.name

    def weights(shape: tuple[int, ...], value: int = 0, kind: str = name) -> T:
        return T(kind, shape, 1.0, centre if kind == name else 0, value=np.full(shape, value + centre, np.dtype(name)))

    def output(*shape: int) -> T:
        return T(name, shape, scale, zero_point)

    def image(channels: int) -> T:
        return T(name, (1, 1, 2, channels), 1.0, centre)

    bias, version = T("int32", (COUNT,), 1.0, value=SUMS), 3 if type_ is INT8 else 1
    options = {**CONV, "fused_activation_function": limit}
    if op == "FULLY_CONNECTED":
        form = ("FullyConnectedOptions", {"fused_activation_function": limit})
        made = build(op, [T(name, (2, 1), 1.0, centre), weights((COUNT, 1)), bias], [output(2, COUNT)], form, 4)
        return made, np.full((2, 1), centre, name)
    if op == "TRANSPOSE_CONV":
        shape = T("int32", (4,), value=np.array([1, 1, 2, COUNT], np.int32))
        operands, form = [shape, weights((COUNT, 1, 1, 1)), image(1), bias], ("TransposeConvOptions", dict(CONV))
        for key in ("dilation_w_factor", "dilation_h_factor"):
            del form[1][key]
        return build(op, operands, [output(1, 1, 2, COUNT)], form, 3), np.full((1, 1, 2, 1), centre, name)
    if op == "CONV_2D":
        operands, form, channels = [image(1), weights((COUNT, 1, 1, 1)), bias], ("Conv2DOptions", options), 1
    else:
        taps, channels = {"by channel": (1, COUNT), "multiplied": (1, 1), "of 26 taps": (26, COUNT)}[op]
        form = ("DepthwiseConv2DOptions", {**options, "depth_multiplier": COUNT // channels, "padding": 0})
        operands, op = [image(channels), weights((1, 1, taps, COUNT)), bias], "DEPTHWISE_CONV_2D"
    made = build(op, operands, [output(1, 1, 2, COUNT)], form, version)
    return made, np.full((1, 1, 2, channels), centre, name)


FORMS = ("FULLY_CONNECTED", "CONV_2D", "TRANSPOSE_CONV", "by channel", "multiplied", "of 26 taps")


def run(model: bytes, profile: str, x: Array) -> Array:
    interpreter = Interpreter(model_content=model, profile=profile)
    return run_once(interpreter, [x])[0]


@each("profile", RESOLVERS)
@each("op", FORMS)
@each("type_", [INT8, UINT8], ids=lambda t: t.name)
def test_sums_beyond_the_codes_are_as_in_litert(type_: Type, op: str, profile: str) -> None:
    for zero_point in type_.zero_points:
        for real, limit in ((1.5, 0), (100.0, 0), (250.0, 0), (1.5, 3)):
            if limit and op == "TRANSPOSE_CONV":
                continue
            model, x = contraction(op, type_, zero_point, real, limit)
            (want,) = single_op.litert(model, [x], RESOLVERS[profile])
            assert np.array_equal(run(model, own(profile), x), want), (zero_point, real, limit)


@pytest.mark.parametrize("op", FORMS)
def test_with_avx2_no_product_wraps(op: str) -> None:
    """LiteRT 2.3 under QEMU's Haswell and SandyBridge."""
    model, x = contraction(op, INT8, -3, 100.0)
    codes = run(model, "litert-xnnpack-avx2", x).reshape(2, COUNT)
    assert np.array_equal(codes[0], np.clip(SUMS.astype(np.int64) * 100 - 3, -128, 127))


@pytest.mark.parametrize("op", ["FULLY_CONNECTED", "CONV_2D"])
def test_shifts_of_gemmlowp_saturate(op: str) -> None:
    """tflite-runtime 2.9.1, 2.11 and 2.14: products of uint8 codes."""
    model, x = contraction(op, UINT8, 3, 250.0)
    codes = run(model, "tflite-2.14-opt", x).reshape(2, COUNT)
    assert np.array_equal(codes[0], np.clip(SUMS.astype(np.int64) * 250 + 3, 0, 255))


@each("zero_point", [-128, -1, 0, 127])
@each("stage", [FloatRoundingEven, FloatRoundingWrapped, SaturatedTwice])
def test_steps_in_words_and_proofs_know_what_wraps(stage: Any, zero_point: int) -> None:
    pipeline = OutputPipeline(stage.of([100.0]), ZeroPoint(zero_point), Clamp(-128, 100), np.dtype(np.int8))
    codes = pipeline(SUMS.reshape(-1, 1)).reshape(-1)
    assert [int(pipeline.worked(int(one))[-1].value) for one in SUMS] == codes.tolist()
    wraps = stage is FloatRoundingWrapped and zero_point < 0
    assert bool(codes[0] == 127) is wraps
    rises = never_falls(Output(np.zeros(1, np.int32), pipeline), *np.array([[-(2**31)], [2**31 - 1]]))
    assert rises is (stage is not SaturatedTwice and not wraps)
    if wraps:
        assert never_falls(Output(np.zeros(1, np.int32), pipeline), *np.array([[-(2**20)], [2**20]]))
