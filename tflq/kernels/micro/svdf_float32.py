"""SVDF with a state of 8 bits and multipliers in float32: as tflite-micro had it up to August 2026, and LiteRT would.

Operands and options: tflq/kernels/micro/svdf.py.
Source: tflite-micro (August 2026), svdf_common.cc PrepareSvdf, EvalInt8SvdfReference.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.kernels.kernel import Kernel
from tflq.kernels.micro.svdf import prepare_int8_state

KERNELS = (Kernel("SVDF", "int8 int8 int8 int32? int8 -> int8", partial(prepare_int8_state, real=np.float32), (1, 4)),)
