"""ADD of 8-bit codes by XNNPACK: see scaled_sum.py. Operands, options and refusals: tflq/kernels/reference/add.py."""

from __future__ import annotations

from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.xnnpack.delegation import Delegate
from tflq.kernels.xnnpack.scaled_sum import prepare_sum, takes
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare x + y."""
    return prepare_sum(node, 1)


DELEGATES = tuple(Delegate(Kernel("ADD", f"{t} {t} -> {t}", prepare, (1, 5)), takes) for t in ("uint8", "int8"))
