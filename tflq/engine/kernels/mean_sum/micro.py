"""SUM of TensorFlow Lite Micro: codes are read and written as the type that the model declares.

| operand | shape                | types       | quantization |
|---------|----------------------|-------------|--------------|
| x       | any                  | int8, int16 | per tensor   |
| axes    | any                  | int32       |              |
| y       | x without, or with 1 | as x        | per tensor   |

Options: keep_dims.
Source: tflite-micro (October 2026), reduce_common.cc EvalSumHelper, QuantizedMeanOrSum.
"""

from __future__ import annotations

from tflq.engine.kernels.kernel import valid
from tflq.engine.kernels.mean_sum.reference import prepare_sum_as_declared, sum_rows
from tflq.engine.kernels.validity import SPEC, micro

KERNELS = valid(micro(SPEC), *sum_rows(prepare_sum_as_declared, "int8", "int16"))
