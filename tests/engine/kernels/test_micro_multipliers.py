"""Multipliers in float64: codes that tflite-micro 0.dev20261023 was seen to give, where float32 gives a neighbour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tflq
from tflq.devices.suites.draft import T, build
from tflq.errors import UndefinedResultError


def run(
    op: str, inputs: Sequence[T | None], made: T, fed: Sequence[Any], options: Any, version: int, profile: str = "tflm"
) -> int:
    model = build(op, tuple(inputs), (made,), options, version)
    interpreter = tflq.Interpreter(model_content=model, profile=profile)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), fed, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return int(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).flat[0])


@pytest.mark.parametrize(
    ("kind", "scale", "made", "code", "expected"),
    [
        ("int8", 0.0055792261846363544, 0.007438968401402235, 2, 1),
        ("int8", 0.05121975392103195, 0.08852797001600266, 70, 40),
        ("int16", 0.05415783077478409, 0.07156958431005478, 4281, 3240),
        ("int16", 0.010866058059036732, 0.014039305038750172, 14036, 10864),
    ],
)
def test_relu(kind: str, scale: float, made: float, code: int, expected: int) -> None:
    operands = T(kind, (1,), scale, 0), T(kind, (1,), made, 0)
    assert run("RELU", operands[:1], operands[1], [np.array([code], kind)], None, 2) == expected


def split(total: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes and weights, 200 each, whose products add up to `total`."""
    whole, rest = divmod(total, 127)
    codes = np.clip(whole - 127 * np.arange(200), 0, 127)
    codes[-1] = rest
    return codes, np.array([127] * 199 + [1])


@pytest.mark.parametrize(
    ("op", "kind", "scales", "total", "expected"),
    [
        ("BATCH_MATMUL", "int8", (0.025058472529053688, 0.016170736402273178, 13.118700981140137), 2411918, 75),
        ("BATCH_MATMUL", "int16", (0.004280358552932739, 0.05400746688246727, 0.027735427021980286), 2118848, 17661),
        ("FULLY_CONNECTED", "int8", (0.05111924558877945, 0.0059164222329854965, 9.270756721496582), 2038417, 66),
        ("FULLY_CONNECTED", "int16", (0.0186908058822155, 0.01714605651795864, 0.03864649683237076), 1143492, 9482),
    ],
)
def test_products(op: str, kind: str, scales: tuple[float, float, float], total: int, expected: int) -> None:
    codes, weights = split(total)
    (a, b, y), fed = scales, [codes[None].astype(kind)]
    x, made = T(kind, (1, 200), a, 0), T(kind, (1, 1), y, 0)
    if op == "BATCH_MATMUL":
        inputs, fed = (x, T(kind, (200, 1), b, 0)), [*fed, weights[:, None].astype(kind)]
        options: Any = ("BatchMatMulOptions", {"adj_x": False, "adj_y": False})
    else:
        inputs = x, T("int8", (1, 200), b, 0, value=weights[None])
        options = ("FullyConnectedOptions", {"weights_format": 0})
    assert run(op, inputs, made, fed, options, 3 if op == "BATCH_MATMUL" else 7) == expected


@pytest.mark.parametrize(
    ("kind", "state", "time", "made", "bias", "expected"),
    [
        ("int16", 0.0025984570384025574, 0.006232813000679016, 46.60106658935547, 289176036, 101),
        ("int8", 0.004697524476796389, 0.011560720391571522, 139.73280334472656, 258589268, 101),
    ],
)
def test_svdf(kind: str, state: float, time: float, made: float, bias: int, expected: int) -> None:
    """Every input is its zero point, so that the output is the bias."""
    ones = np.ones((2, 4), int)
    inputs = (
        T("int8", (1, 4), 0.05, 7),
        T("int8", (2, 4), 0.01, 0, value=ones),
        T(kind, (2, 3), time, 0, value=ones[:, :3]),
        T("int32", (2,), float(np.float32(state) * np.float32(time)), 0, value=np.array([bias] * 2)),
        T(kind, (1, 6), state, 0, variable=True),
    )
    options = ("SVDFOptions", {"rank": 1, "fused_activation_function": 1, "asymmetric_quantize_inputs": False})
    made_tensor, fed = T("int8", (1, 2), made, 0), [np.full((1, 4), 7, np.int8)]
    assert run("SVDF", inputs, made_tensor, fed, options, 3) == expected
    in_float32 = {"int16": "litert-ref", "int8": "spec"}[kind]
    assert run("SVDF", inputs, made_tensor, fed, options, 3, in_float32) == expected - 1


WEIGHTS = [
    [[52, 36], [-109, -21]],
    [[-122, 69], [30, 2]],
    [[-13, -69], [-31, -74]],
    [[-62, -68], [-120, -68]],
    [[64, -64], [-109, -51]],
    [[14, 25], [44, 7]],
    [[18, -110], [-87, -20]],
    [[-116, 110], [16, 112]],
]
CODES = [-28243, -10820, 19512, -20668, 8820, -12434, -25011, -22040, -20544, -14486, 17154, 25487]
EXPECTED = [32, 24941, 15063, 1374, 11184, 6646, 16712, 25462, 16736, 26280, -10, 20]


def test_gates_of_16_bits() -> None:
    scale, weight = 0.0004121637612115592, 0.00908342469483614
    filters = [T("int8", (2, 2), weight if i < 4 else 0.0086, 0, value=np.array(w)) for i, w in enumerate(WEIGHTS)]
    bias = T("int64", (2,), float(np.float32(scale) * np.float32(weight)), 0, value=np.zeros(2, int))
    states = [T("int16", (1, 2), 2.0**exponent, 0, variable=True) for exponent in (-15, -11)]
    x, absent = T("int16", (1, 6, 2), scale, 0), [None] * 4
    inputs = (x, *filters, *absent[:3], *[bias] * 4, *absent[:2], *states, *absent)
    options = {"fused_activation_function": 4, "cell_clip": 0.0, "proj_clip": 0.0, "time_major": False}
    op = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    model = build(op, inputs, (T("int16", (1, 6, 2), 2.0**-15, 0),), ("UnidirectionalSequenceLSTMOptions", options), 3)
    interpreter = tflq.Interpreter(model_content=model, profile="tflm")
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(given["index"], np.array(CODES, np.int16).reshape(1, 6, 2))
    interpreter.invoke()
    assert interpreter.get_tensor(made["index"]).flatten().tolist() == EXPECTED


def test_inverse_root() -> None:
    x, y = T("int16", (1,), 2.0**-13, 0), T("int16", (1,), 2.0**-15, 0)
    assert run("RSQRT", [x], y, [np.array([10176], np.int16)], None, 1) == 29401


@pytest.mark.parametrize(("profile", "expected"), [("litert-2.4-ref", 28411), ("litert-ref", 28410)])
def test_quotient(profile: str, expected: int) -> None:
    """Codes that ai-edge-litert-nightly 2.4.0.dev20261026 and ai-edge-litert 2.3.0 were seen to give."""
    scales = (float.fromhex(scale) for scale in ("0x1.9a86e6p-14", "0x1.fd512p-15", "0x1.0a8042p-12"))
    a, b, y = (T("int16", (1,), scale, 0) for scale in scales)
    fed = [np.array([code], np.int16) for code in (-21361, -4769)]
    assert run("DIV", [a, b], y, fed, ("DivOptions", {}), 1, profile) == expected


def test_unset_paddings_are_refused() -> None:
    x, y = T("int8", (1, 3, 4, 1), 0.1, -44), T("int8", (4, 2, 2, 1), 0.1, -44)
    lists = [T("int32", np.shape(v), value=np.array(v)) for v in ([2, 2], [[1, 0], [0, 0]])]
    with pytest.raises(UndefinedResultError, match="output_offset"):
        run("SPACE_TO_BATCH_ND", [x, *lists], y, [np.zeros((1, 3, 4, 1), np.int8)], ("SpaceToBatchNDOptions", {}), 1)
