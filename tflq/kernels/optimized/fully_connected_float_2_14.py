"""FULLY_CONNECTED of float32 up to 2.14: one row times one column goes through two accumulators, not four.

Source: TensorFlow 2.14 fully_connected.cc EvalFloat; its Eigen's InnerProduct through Redux.h.
"""

from __future__ import annotations

from functools import partial

from tflq.kernels.optimized.fully_connected_float import rows
from tflq.numerics import eigen

KERNELS = rows(partial(eigen.product, dot=eigen.coefficients))
