"""SUB of 8-bit codes by XNNPACK: see scaled_sum.py. Operands, options and refusals: tflq/kernels/add_sub/sub.py."""

from __future__ import annotations

import numpy as np

from tflq.kernels.add_sub import sub
from tflq.kernels.add_sub.xnnpack_sums import prepare_sum, takes
from tflq.kernels.delegation import delegate
from tflq.kernels.families.xnnpack_floats import computing
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare x - y, the sum of x and y with the sign -1."""
    return prepare_sum(node, -1)


KERNELS = (
    *valid(xnnpack(), *(delegate(Kernel("SUB", f"{t} {t} -> {t}", prepare, (1, 5)), takes) for t in ("uint8", "int8"))),
    *valid(xnnpack("litert-2.3", cpu="x86-64"), computing("SUB", sub.KERNELS, np.subtract)),
)
