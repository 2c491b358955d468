"""LOGISTIC and TANH of float16 and bfloat16: reference kernels, not claimed, as Eigen has functions of its own."""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.optimized.unclaimed import UNCLAIMED
from tflq.kernels.reference import logistic, tanh

KERNELS = tuple(
    replace(row, exactness=UNCLAIMED)
    for file in (logistic, tanh)
    for row in file.KERNELS
    if row.signature.makes(TensorType.FLOAT16, TensorType.BFLOAT16)
)
