"""RELU6: y = min(max(x, 0), 6).

| operand | shape | types                       | quantization                    |
|---------|-------|-----------------------------|---------------------------------|
| x       | any   | float32, uint8, int8, int16 | per tensor; int16: zero point 0 |
| y       | as x  | as x                        | per tensor, may differ from x's |

Source: LiteRT 2.3, activations.cc ReluPrepare, Relu6Eval.
"""

from __future__ import annotations

from tflq.kernels.families.relu import kernels

KERNELS = kernels("RELU6", 0.0, 6.0, ("uint8", "int8", "int16"), (1, 3))
