"""Real values as codes, as QUANTIZE of LiteRT computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.rounding import floats_to_int32, nearest_half_away
from tflq.typing import Array


def affine_codes(real: Array, scale: Any, zero_point: Any, limits: Clamp) -> NDArray[np.int32]:
    """Return the codes of real values; `scale` and `zero_point` are numbers, or arrays that broadcast.

    Rounding: to float32, float32 quotient, then half away from zero. Overflow: as x86 converts to int32, then wrap.

    Source: LiteRT 2.3 reference/quantize.h AffineQuantize; cppmath.h TfLiteRound.
    """
    with np.errstate(all="ignore"):
        quotients = np.divide(np.asarray(real, np.float32), np.asarray(scale, np.float32), dtype=np.float32)
        whole = floats_to_int32(nearest_half_away(quotients)).astype(np.int64)
        moved = (whole + np.asarray(zero_point, np.int64)).astype(np.int32)
    return np.asarray(np.clip(moved, *limits), np.int32)
