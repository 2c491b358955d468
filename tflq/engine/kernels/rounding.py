"""CEIL, FLOOR, ROUND: the smallest integer >= x, the largest integer <= x, the nearest integer with half to even.

| operand | shape | CEIL    | FLOOR            | ROUND                      |
|---------|-------|---------|------------------|----------------------------|
| x       | any   | float32 | float32, float16 | float32, float16, bfloat16 |
| y       | as x  | as x    | as x             | as x                       |

ROUND of numbers in [-1/2, 0) gives +0, as the source adds 1 to their floor. BUILTIN_REF lacks CEIL and ROUND: their
kernels are those of the full resolver.
Optimized CEIL and FLOOR up to 2.14: zeros in whole groups of four elements are +0; the rest keep their sign.
XNNPACK: see tflq/engine/kernels/families/xnnpack_floats.py.
Source: LiteRT 2.3, ceil.cc; optimized_ops::Ceil; reference/floor.h Floor; round.cc; reference/round.h RoundToNearest.
TensorFlow 2.14 optimized_ops.h Ceil, Floor, by Eigen's pceil and pfloor without SSE4.1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.exactness import EXACT
from tflq.engine.kernels.families.narrow_floats import narrow_floats
from tflq.engine.kernels.families.unary import prepare_function
from tflq.engine.kernels.families.xnnpack_floats import computing
from tflq.engine.kernels.kernel import Kernel, valid
from tflq.engine.kernels.validity import opt, xnnpack
from tflq.engine.numerics.libm import Composed
from tflq.typing import Array

CEIL = (Kernel("CEIL", "float32 -> float32", prepare_function(np.ceil), (1, 1)),)
FLOOR = tuple(Kernel("FLOOR", f"{t} -> {t}", prepare_function(np.floor), (1, 1)) for t in ("float32", "float16"))


def nearest(x: Array) -> Array:
    """Source: RoundToNearest, in float32. Rounding: half to even."""
    below = np.floor(x)
    with np.errstate(invalid="ignore"):  # infinities give NaN, which is neither below nor at a half
        over = x - below
    stays = (over < 0.5) | ((over == 0.5) & (np.fmod(below, 2) == 0))
    return np.where(stays, below, below + np.float32(1))


@in_pieces(x="r", out="r")
@compiled
def _nearest_into(x: Array, out: Array) -> None:
    """Compute out = nearest(x).

    Eval guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        below = np.floor(x[i])
        over, half = x[i] - below, below * np.float32(0.5)
        stays = (over < np.float32(0.5)) | ((over == np.float32(0.5)) & (half == np.floor(half)))
        out[i] = below if stays else below + np.float32(1)


_LANES = 4


def in_lanes(function: Callable[[Array], Array], x: Array) -> Array:
    """Add 0 in whole vectors: -0 + 0 is +0."""
    out = np.array(function(x), order="C")
    out.reshape(-1)[: x.size // _LANES * _LANES] += np.float32(0)
    return out


ROUND = narrow_floats("ROUND", Composed(nearest, _nearest_into), (1, 1), EXACT)

KERNELS = (
    *CEIL,
    *FLOOR,
    *ROUND,
    *valid(
        opt(until="tflite-2.14", cpu="x86-64"),
        Kernel("CEIL", "float32 -> float32", prepare_function(partial(in_lanes, np.ceil)), (1, 1)),
        Kernel("FLOOR", "float32 -> float32", prepare_function(partial(in_lanes, np.floor)), (1, 1)),
    ),
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        computing("CEIL", CEIL, np.ceil, 1),
        computing("FLOOR", FLOOR, np.floor, 1),
        computing("ROUND", ROUND, np.rint, 1),
    ),
)
