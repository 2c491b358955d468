"""RELU_N1_TO_1: y = min(max(x, -1), 1).

| operand | shape | types                       | quantization                    |
|---------|-------|-----------------------------|---------------------------------|
| x       | any   | float32, uint8, int8        | per tensor                      |
| y       | as x  | as x                        | per tensor, may differ from x's |

Source: LiteRT 2.3, activations.cc ReluPrepare, Relu1Eval.
"""

from __future__ import annotations

from tflq.kernels.families.relu import kernels

KERNELS = kernels("RELU_N1_TO_1", -1.0, 1.0, ("uint8", "int8"))
