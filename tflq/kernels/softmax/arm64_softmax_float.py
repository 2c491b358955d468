"""SOFTMAX of 8-bit codes by the float32 table: half away for uint8 too, whose zero point counts.

Operands, options and refusals: tflq/kernels/softmax/softmax.py.
Source: LiteRT 2.3 optimized_ops.h Softmax, QuantizeSoftmaxOutput on AArch64.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.exactness import SAME_LIBM
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.softmax import optimized_softmax as softmax
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.rounding import nearest_half_away


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like x86-64's kernel; the result is rounded half away from zero."""
    prepared = softmax.prepare_8bit(node, arithmetic)
    data = replace(prepared.data, zero_point=node.outputs[0].zero_point, round=nearest_half_away)
    return replace(prepared, data=data)


KERNELS = valid(
    opt(cpu="arm64"),
    *(Kernel("SOFTMAX", f"{t} -> {t}|int16", prepare, (1, 3), exactness=SAME_LIBM) for t in ("uint8", "int8")),
)
