"""SUM of TensorFlow Lite Micro: codes are read and written as what they are.

| operand | shape                | types       | quantization |
|---------|----------------------|-------------|--------------|
| x       | any                  | int8, int16 | per tensor   |
| axes    | any                  | int32       |              |
| y       | x without, or with 1 | as x        | per tensor   |

Options: keep_dims.
Source: tflite-micro (October 2026), reduce_common.cc EvalSumHelper, QuantizedMeanOrSum.
"""

from __future__ import annotations

from functools import partial

from tflq.kernels.families.reduction import AXES
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.mean_sum import sum as reference
from tflq.kernels.validity import SPEC, micro

KERNELS = valid(
    micro(SPEC),
    *(
        Kernel("SUM", f"{t} int32 -> {t}", partial(reference.prepare_quantized, read_as=t), (1, 2), AXES)
        for t in ("int8", "int16")
    ),
)
