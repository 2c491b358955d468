"""SIGN: y = 1, 0 or -1, as x is above, at or below 0.

| operand | shape | types                   |
|---------|-------|-------------------------|
| x       | any   | float32, float64, int32 |
| y       | as x  | as x                    |

Source: LiteRT 2.3, sign.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.unary import same_type
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    x, _ = same_type(node)
    return Prepared((x.shape,), None, eval_sign)


@filling(lambda _, x: (x.shape, x.dtype))
def eval_sign(data: None, out: Array, x: Array) -> Call:
    """Source: Sign::Eval. A NaN stays; both zeros give +0."""
    return _sign_into.bound(np.asarray(x, order="C").reshape(-1), out.reshape(-1))


@in_pieces(x="r", out="r")
@compiled
def _sign_into(x: Array, out: Array) -> None:
    """Eval guarantees: `x` and `out` have the same size."""
    for i in range(x.size):
        if x[i] != x[i]:
            out[i] = x[i]
        elif x[i] > 0:
            out[i] = 1
        elif x[i] < 0:
            out[i] = -1
        else:
            out[i] = 0


KERNELS = tuple(Kernel("SIGN", f"{t} -> {t}", prepare, (1, 2)) for t in ("float32", "float64", "int32"))
