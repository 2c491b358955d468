"""Operators from complex numbers to reals: what their kernel files share.

Source: LiteRT 2.3, complex_support.cc Prepare, ExtractData.
"""

from __future__ import annotations

from collections.abc import Callable

from tflq.engine.kernels.exactness import EXACT, Exactness
from tflq.engine.kernels.families.unary import eval_function
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array

_TYPES = {"complex64": "float32", "complex128": "float64"}


def kernels(op: str, function: Callable[[Array], Array], exactness: Exactness = EXACT) -> tuple[Kernel, ...]:
    """Return the kernels of a function of one complex number."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        return Prepared((node.input(0).shape,), function, eval_function)

    return tuple(
        Kernel(op, f"{source} -> {target}", prepare, (1, 1), exactness=exactness) for source, target in _TYPES.items()
    )
