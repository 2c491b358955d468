"""SQUEEZE: drop dimensions of size 1.

| operand | shape                | types | quantization |
|---------|----------------------|-------|--------------|
| x       | up to 8 dimensions   | any   | passed by    |
| y       | x's without dropped  | as x  | passed by    |

Options: squeeze_dims (none: every dimension of size 1).
Source: LiteRT 2.3, squeeze.cc Prepare.
"""

from __future__ import annotations

from tflq.engine.kernels.families.movement import prepare_view
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import axis_within, integers_option, require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Drop the dimensions named, which must have size 1."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    require_rank(node, x, 0, 8)
    named = {axis_within(node, axis, len(x.shape)) for axis in integers_option(node, "squeeze_dims")}
    for axis in named:
        node.check(x.shape[axis] == 1, f"dimension {axis} to squeeze", x, expected=1, got=x.shape[axis])
    dropped = named or {axis for axis, size in enumerate(x.shape) if size == 1}
    return prepare_view(tuple(size for axis, size in enumerate(x.shape) if axis not in dropped))


KERNELS = (Kernel("SQUEEZE", "any -> any", prepare, (1, 2)),)
