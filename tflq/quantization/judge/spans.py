"""Ranges of quantized tensors, compared with the values that they represent."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.engine.kernels.code_limits import code_limits
from tflq.model.ir import TensorSpec, TensorType
from tflq.quantization.judge.fidelity import Fidelity

#: A quantized range of this many times the values' own was calibrated on other numbers.
WIDE = 16.0


@dataclass(frozen=True, slots=True)
class Span:
    """The range of a quantized tensor, and that of the values which the reference has there."""

    name: str
    op: str
    index: int
    low: float
    high: float
    seen: tuple[float, float]

    @staticmethod
    def of(spec: TensorSpec, sums: Fidelity) -> Span | None:
        """Return the ranges of a tensor; None if it has no codes of one scale, or no values were seen."""
        q = spec.quantization
        if spec.type not in (TensorType.INT8, TensorType.UINT8) or q is None or len(q.scale) != 1 or not sums.elements:
            return None
        zero = int(q.zero_point[0]) if len(q.zero_point) else 0
        low, high = ((code - zero) * float(q.scale[0]) for code in code_limits(TensorType(spec.type)))
        return Span(sums.name, sums.op, sums.index, low, high, (sums.low, sums.high))

    @property
    def excess(self) -> float:
        """Width of the range by that of the values, which include 0 as every range does."""
        width = max(self.seen[1], 0.0) - min(self.seen[0], 0.0)
        return (self.high - self.low) / width if width > 0 else 1.0
