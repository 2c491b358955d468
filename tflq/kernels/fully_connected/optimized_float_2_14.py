"""FULLY_CONNECTED of float32 up to 2.14: one row times one column goes through two accumulators, not four.

Source: TensorFlow 2.14 fully_connected.cc EvalFloat; its Eigen's InnerProduct through Redux.h.
"""

from __future__ import annotations

from functools import partial

from tflq.kernels.fully_connected.optimized_float import rows
from tflq.kernels.kernel import valid
from tflq.kernels.validity import opt
from tflq.numerics import eigen

KERNELS = valid(opt(until="tflite-2.14"), *rows(partial(eigen.product, dot=eigen.coefficients)))
