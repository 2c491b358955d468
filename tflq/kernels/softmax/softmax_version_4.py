"""SOFTMAX version 4, which only LiteRT's full resolver registers: that resolver's kernels.

8-bit codes go through a float32 table of exps (tflq/kernels/softmax/optimized_softmax.py); 16-bit codes have one kernel
everywhere. Floats are refused: the full resolver's are Eigen's vector code.
Source: LiteRT 2.3, register.cc; activations.cc SoftmaxEval.
"""

from __future__ import annotations

from tflq.kernels.exactness import SAME_LIBM
from tflq.kernels.kernel import Kernel
from tflq.kernels.softmax.optimized_softmax import prepare_8bit
from tflq.kernels.softmax.softmax import prepare_int16

KERNELS = (
    *(Kernel("SOFTMAX", f"{t} -> {t}|int16", prepare_8bit, (4, 4), exactness=SAME_LIBM) for t in ("uint8", "int8")),
    Kernel("SOFTMAX", "int16 -> int16", prepare_int16, (4, 4)),
)
