"""Quantizer and verifier turn real values into the codes that QUANTIZE gives: at ties, next to them and far outside."""

from __future__ import annotations

import numpy as np

import tflq
from support.each import each
from support.single_op import T, assert_same, build
from support.toys import tensor
from tflq.comparison.inputs.prepare import quantized
from tflq.model.ir import Quantization, TensorType
from tflq.quantization.params import codes_of

CASES = [
    (type_, scale, zero)
    for type_, zeros in ((TensorType.INT8, (-128, 3, 127)), (TensorType.UINT8, (0, 131)), (TensorType.INT16, (0,)))
    for zero in zeros
    for scale in (1.0, 0.1, 1 / 3, 0.0078125, 1e-30, 7e8)
]


def values(scale: np.float32) -> np.ndarray:
    """Products of the scale with halves and their neighbours in float64, in float32, and values far outside."""
    halves = np.concatenate([np.arange(-300.5, 301), [0.49999999999999994, 0.5, 2.0**23 + 0.5, 32767.5, -32768.5]])
    exact = halves * np.float64(scale)
    narrow = exact.astype(np.float32)
    near = [np.nextafter(narrow, np.float32(side)) for side in (-np.inf, np.inf)]
    far = np.array([0, -0.0, 2.0**31, -(2.0**31), 3e9, -3e9, 3e38, -3e38], np.float32) * np.float32(min(scale, 1))
    return np.concatenate([narrow, *near, far]).astype(np.float32)


@each(("type_", "scale", "zero"), CASES)
def test_both_give_the_codes_of_quantize(type_: TensorType, scale: float, zero: int) -> None:
    quantization = Quantization(np.array([scale], np.float32), np.array([zero]))
    real = values(np.float32(scale))
    spec = tensor(type_, real.shape, quantization=quantization)
    model = build("QUANTIZE", [T("float32", real.shape)], [T(type_.label, real.shape, float(np.float32(scale)), zero)])
    assert_same(model, [real])
    interpreter = tflq.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, real)
    interpreter.invoke()
    expected = interpreter.get_tensor(1)
    assert np.array_equal(codes_of(spec, real), expected)
    assert np.array_equal(quantized(spec, real), expected)
    assert np.array_equal(codes_of(spec, real.astype(np.float64)), expected)


def test_the_largest_number_below_a_half_is_no_half() -> None:
    spec = tensor(TensorType.INT8, (1,), quantization=Quantization(np.array([1], np.float32), np.array([0])))
    below = np.nextafter(np.float32(0.5), np.float32(0))
    assert codes_of(spec, np.array([below, -below, 0.5, -0.5], np.float32)).tolist() == [0, 0, 1, -1]
