"""RELU: y = max(x, 0).

| operand | shape | types                       | quantization                    |
|---------|-------|-----------------------------|---------------------------------|
| x       | any   | float32, uint8, int8, int16 | per tensor; int16: zero point 0 |
| y       | as x  | as x                        | per tensor, may differ from x's |

Source: LiteRT 2.3, activations.cc ReluPrepare, ReluEval.
"""

from __future__ import annotations

from tflq.kernels.families.relu import kernels

KERNELS = kernels("RELU", 0.0, None, ("uint8", "int8", "int16"), (1, 3))
