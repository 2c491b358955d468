"""LOGISTIC and TANH by XNNPACK. Floats: tflq/engine/kernels/families/xnnpack_floats.py.

Tables of 8-bit codes, for any scale of the output: tflq/engine/kernels/families/xnnpack_tables.py.

Operands: tflq/engine/kernels/sigmoids/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK's tables of unary operators.
"""

from __future__ import annotations

from tflq.engine.kernels.families.xnnpack_floats import applying
from tflq.engine.kernels.families.xnnpack_tables import sigmoid, tabulated
from tflq.engine.kernels.kernel import valid
from tflq.engine.kernels.sigmoids import reference
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics import xnnpack_functions
from tflq.engine.numerics.libm import tanhf

KERNELS = (
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        applying("LOGISTIC", reference.LOGISTIC, lambda _, arithmetic: arithmetic.xnnpack_functions.logistic),
        applying("TANH", reference.TANH, lambda *_: xnnpack_functions.TANH),
    ),
    *valid(
        xnnpack("litert-2.1"),
        *tabulated("LOGISTIC", ("uint8", "int8"), sigmoid),
        *tabulated("TANH", ("uint8", "int8"), tanhf),
    ),
)
