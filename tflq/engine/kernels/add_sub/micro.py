"""ADD and SUB of TensorFlow Lite Micro: 16 bits always have multipliers, even if scales are powers of two.

| operand | shape             | types | quantization |
|---------|-------------------|-------|--------------|
| a, b    | any, broadcasting | int16 | per tensor   |
| y       | broadcast         | int16 | per tensor   |

Options: fused_activation_function; pot_scale_int16 is ignored.
Source: tflite-micro (October 2026), add_common.cc CalculateOpDataAdd; sub_common.cc CalculateOpDataSub.
"""

from __future__ import annotations

from functools import partial

from tflq.engine.kernels.families.scaled_sum import prepare_general
from tflq.engine.kernels.kernel import Kernel, valid
from tflq.engine.kernels.validity import micro

KERNELS = (
    *valid(
        micro(),
        Kernel("ADD", "int16 int16 -> int16", partial(prepare_general, sign=1), (1, 5)),
        Kernel("SUB", "int16 int16 -> int16", partial(prepare_general, sign=-1), (1, 5)),
    ),
)
