"""LOGISTIC and TANH of float32 as Eigen's arrays compute them.

Operands and refusals: tflq/kernels/sigmoids/logistic.py, tanh.py.
Source: LiteRT 2.3 optimized_ops.h Logistic, Tanh.
"""

from __future__ import annotations

from collections.abc import Callable

from tflq.kernels.exactness import EXACT, SAME_LIBM, Exactness
from tflq.kernels.families.unary import same_type
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics import eigen_activations
from tflq.numerics.arithmetic import Arithmetic


def _row(op: str, function: Callable[[Array], Array], exactness: Exactness) -> Kernel:
    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, _ = same_type(node)
        return Prepared((x.shape,), None, lambda _, x: function(x))

    return Kernel(op, "float32 -> float32", prepare, (1, 3), exactness=exactness)


KERNELS = valid(
    opt("litert-1.0"),
    _row("LOGISTIC", eigen_activations.logistic, SAME_LIBM),
    _row("TANH", eigen_activations.tanh, EXACT),
)
