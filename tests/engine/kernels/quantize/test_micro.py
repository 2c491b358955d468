"""`tflq/engine/kernels/quantize.py`: pairs of types and bits that tflite-micro 0.dev20261023 was seen to give."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from tflq.devices.suites.draft import T, build
from tflq.errors import TflqError

#: Scale and zero point of int8 and of int32; what became of the codes -128, -127, 126 and 127.
TO_INT32 = [
    (0.05, 3, 1e-4, 0, [-65500, -65000, 61500, 62000]),
    (0.05, 3, 1e-8, 77, [-654999937, -649999937, 615000090, 620000090]),
    (0.0371, -100, 0.02, -5000, [-5052, -5050, -4581, -4579]),
    (0.5, 0, 1e-9, 0, [0, 500000014, -1000000028, -500000014]),  # the shift to the left wraps
]
SCALES = {"float32": (), "int8": (0.05, 3), "uint8": (0.04, 100), "int16": (0.0005, 0), "int32": (1e-4, 0)}


def quantize(x: T, y: T, codes: np.ndarray) -> np.ndarray:
    model = build("QUANTIZE", (x,), (y,), ("QuantizeOptions", {}), 2)
    interpreter = tflq.Interpreter(model_content=model, profile="tflm")
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, codes)
    interpreter.invoke()
    return interpreter.get_tensor(1)


@pytest.mark.parametrize(("scale", "zero", "made_scale", "made_zero", "expected"), TO_INT32)
def test_int8_to_int32(scale: float, zero: int, made_scale: float, made_zero: int, expected: list[int]) -> None:
    codes = np.array([-128, -127, 126, 127], np.int8)
    made = quantize(T("int8", (4,), scale, zero), T("int32", (4,), made_scale, made_zero), codes)
    assert made.tolist() == expected


@pytest.mark.parametrize("pair", ["float32 uint8", "uint8 uint8", "uint8 int16", "int16 uint8", "int32 int32"])
def test_pairs_that_it_refuses(pair: str) -> None:
    read, made = pair.split()
    with pytest.raises(TflqError, match="QUANTIZE: unsupported"):
        quantize(T(read, (4,), *SCALES[read]), T(made, (4,), *SCALES[made]), np.zeros(4, read))
