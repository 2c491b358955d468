"""LOGISTIC and TANH of float16 and bfloat16: reference kernels, not claimed, as Eigen has functions of its own."""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.families.unclaimed import UNCLAIMED
from tflq.kernels.kernel import valid
from tflq.kernels.sigmoids import logistic, tanh
from tflq.kernels.validity import opt

KERNELS = valid(
    opt("litert-1.0"),
    *(
        replace(row, exactness=UNCLAIMED)
        for file in (logistic, tanh)
        for row in file.KERNELS
        if row.signature.makes(TensorType.FLOAT16, TensorType.BFLOAT16)
    ),
)
