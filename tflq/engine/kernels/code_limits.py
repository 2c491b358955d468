"""The least and the greatest code of each integer type."""

from __future__ import annotations

from types import MappingProxyType

from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER, TensorType

#: Limits of the types that are carried in wider ones.
NARROW = MappingProxyType(
    {TensorType.INT4: Clamp(-8, 7), TensorType.UINT4: Clamp(0, 15), TensorType.INT2: Clamp(-2, 1)}
)


def code_limits(type_: TensorType) -> Clamp:
    """Return the least and the greatest code of an integer type."""
    return NARROW.get(type_) or type_range(CARRIER[type_])
