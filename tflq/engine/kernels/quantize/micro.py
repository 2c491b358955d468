"""QUANTIZE of TensorFlow Lite Micro: LiteRT's arithmetic, for other pairs of types.

| operand | shape | types   | y's types                 | quantization           |
|---------|-------|---------|---------------------------|------------------------|
| x       | any   | float32 | int8, int16               | y: per tensor or axis  |
|         |       | int8    | int8, uint8, int16, int32 | per tensor             |
|         |       | uint8   | int8                      | per tensor             |
|         |       | int16   | int8, int16, int32        | per tensor             |
|         |       | int32   | int8, int16               | per tensor             |
| y       | as x  |         |                           |                        |

Source: tflite-micro (October 2026), quantize_common.cc PrepareQuantizeReference, EvalQuantizeReference.
"""

from __future__ import annotations

from tflq.engine.kernels.kernel import Kernel, valid
from tflq.engine.kernels.quantize.reference import prepare_float, prepare_requantize
from tflq.engine.kernels.validity import micro

KERNELS = valid(
    micro(),
    Kernel("QUANTIZE", "float32 -> int8|int16", prepare_float, (1, 6)),
    Kernel("QUANTIZE", "int8 -> int8|uint8|int16|int32", prepare_requantize, (1, 6)),
    Kernel("QUANTIZE", "uint8 -> int8", prepare_requantize, (1, 6)),
    Kernel("QUANTIZE", "int16 -> int8|int16|int32", prepare_requantize, (1, 6)),
    Kernel("QUANTIZE", "int32 -> int8|int16", prepare_requantize, (1, 6)),
)
