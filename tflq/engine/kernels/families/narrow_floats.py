"""Functions of one float that the source computes in float32 for narrower types too, rounding once at the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.engine.kernels.exactness import SAME_LIBM, Exactness
from tflq.engine.kernels.families.unary import prepare_function
from tflq.engine.kernels.kernel import Kernel
from tflq.typing import Array

Function = Callable[[Array], Array]


def from_bfloat16(bits: Array) -> Array:
    """Return bfloat16, given as its bits, as float32: exact."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bfloat16(x: Array) -> Array:
    """Return float32 as the bits of bfloat16, half to even; NaN is made quiet and keeps its sign."""
    bits = np.asarray(x, np.float32, order="C").view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = ((bits >> np.uint32(16)) & np.uint32(0x8000)) | np.uint32(0x7FC0)
    return np.where(np.isnan(x), quiet, rounded).astype(np.uint16)


def narrow_floats(
    op: str, function: Function, versions: tuple[int, int], exactness: Exactness = SAME_LIBM
) -> tuple[Kernel, ...]:
    """Return the kernels of a float32 function on float32, float16 and bfloat16."""

    def half(x: Array) -> Array:
        return function(x.astype(np.float32)).astype(np.float16)

    def brain(bits: Array) -> Array:
        return to_bfloat16(function(from_bfloat16(bits)))

    forms = {"float32": function, "float16": half, "bfloat16": brain}
    return tuple(
        Kernel(op, f"{t} -> {t}", prepare_function(form), versions, exactness=exactness) for t, form in forms.items()
    )
