"""SVDF with a state of 8 bits and multipliers in float32: as tflite-micro had it up to August 2026, and LiteRT would.

Operands and options: tflq/kernels/svdf/micro.py.
Source: tflite-micro (August 2026), svdf_common.cc PrepareSvdf, EvalInt8SvdfReference.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.svdf.micro import prepare_int8_state
from tflq.kernels.validity import spec

KERNELS = valid(
    spec(), Kernel("SVDF", "int8 int8 int8 int32? int8 -> int8", partial(prepare_int8_state, real=np.float32), (1, 4))
)
