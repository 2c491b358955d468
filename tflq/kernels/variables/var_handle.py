"""VAR_HANDLE: the handle of a variable, by name.

| operand | shape | types    | quantization |
|---------|-------|----------|--------------|
| y       | any   | resource | none         |

Options: container, shared_name; equal names mean the same variable, in whatever subgraph.
Source: LiteRT 2.3, var_handle.cc Init, Eval.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Variables are numbered in the order of their first handles in the file."""
    name = str(node.options.get("container") or ""), str(node.options.get("shared_name") or "")
    shape = node.outputs[0].shape
    handle = np.full(shape, node.around().handle(*name), object)
    return Prepared((shape,), handle, eval_handle)


def eval_handle(handle: Array) -> Array:
    """A constant."""
    return handle


KERNELS = (Kernel("VAR_HANDLE", "-> resource", prepare, (1, 1)),)
