"""Functions of one float32 as XNNPACK computes them on x86-64, over arrays.

What depends on the processor's vector extension is in `Functions`.
Source: XNNPACK of August 2026, configs/unary-elementwise-config.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Compiled, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics import rsqrt_estimate, xnnpack_exponentials, xnnpack_rationals
from tflq.engine.numerics.normal_float32 import read

Floats = NDArray[np.float32]

#: The function of an element; each loop is bound to its own.
element = read


@in_pieces(32, x="r", out="r")
@compiled
def _over(x: Floats, out: Floats) -> None:
    """Fill `out` with the function of every element.

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = element(x[i])


class Elementwise:
    """A function of float32 arrays, computed element by element."""

    def __init__(self, function: Compiled[..., Real]) -> None:
        self._loop: Any = _over.bind(element=function)

    def __call__(self, x: Floats) -> Floats:
        """Compute the function of `x`, of any shape."""
        out = np.empty(x.shape, np.float32)
        self._loop(np.ascontiguousarray(x).reshape(-1), out.reshape(-1))
        return out

    def into(self, x: Floats, out: Floats) -> Callable[[], object]:
        """Bind a call that fills `out` with the function of `x`, both 1-D and of one size."""
        bound: Callable[[], object] = self._loop.bound(x, out)
        return bound


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """Functions whose steps depend on the vector extension. Roots are None if the processor's estimate is unknown."""

    logistic: Elementwise
    elu: Elementwise
    log: Elementwise
    rsqrt: Elementwise | None = None
    sqrt: Elementwise | None = None


EXP = Elementwise(xnnpack_rationals.exp)
EXP_2_2 = Elementwise(xnnpack_rationals.exp_2_2)
TANH = Elementwise(xnnpack_rationals.tanh)
GELU = Elementwise(xnnpack_rationals.gelu)
GELU_APPROXIMATE = Elementwise(xnnpack_rationals.gelu_approximate)
SIN = Elementwise(xnnpack_rationals.sin)
COS = Elementwise(xnnpack_rationals.cos)
COS_2_2 = Elementwise(xnnpack_rationals.cos_2_2)
HARD_SWISH = Elementwise(xnnpack_rationals.hard_swish)

#: With AVX2 and FMA3.
AVX2 = Functions(
    Elementwise(xnnpack_exponentials.logistic_avx2),
    Elementwise(xnnpack_exponentials.elu_avx2),
    Elementwise(xnnpack_rationals.log_fma3),
)
#: With AVX-512.
AVX512 = Functions(
    Elementwise(xnnpack_exponentials.logistic_avx512),
    Elementwise(xnnpack_exponentials.elu_avx512),
    Elementwise(xnnpack_rationals.log_avx512),
    Elementwise(rsqrt_estimate.rsqrt),
    Elementwise(rsqrt_estimate.sqrt),
)
