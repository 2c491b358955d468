"""Ranges of quantized tensors, compared with the values that they represent."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.code_limits import code_limits
from tflq.model.ir import TensorSpec, TensorType
from tflq.quantization.judge.fidelity import Fidelity
from tflq.typing import Array

#: A quantized range of this many times the values' own was calibrated on other numbers.
WIDE = 16.0
#: A tensor is too narrow if what is cut off is this share of its noise, and noise this far above what steps cost.
_CUT, _BEYOND_STEPS = 0.5, 4.0
#: Most columns of an input whose values are watched one by one.
_MOST_COLUMNS = 4096


def code_range(spec: TensorSpec) -> tuple[float, float] | None:
    """Return the real values of the lowest and the highest code; None for a tensor without 8-bit codes of one scale."""
    q = spec.quantization
    if spec.type not in (TensorType.INT8, TensorType.UINT8) or q is None or len(q.scale) != 1:
        return None
    zero = int(q.zero_point[0]) if len(q.zero_point) else 0
    low, high = ((code - zero) * float(q.scale[0]) for code in code_limits(TensorType(spec.type)))
    return low, high


@dataclass(frozen=True, slots=True)
class Span:
    """The range of a quantized tensor, and that of the values which the reference has there.

    `share` of the values are cut off. `narrow` are columns (of an input) that vary by less than one `step` of the
    codes, of `columns`; `spreads` are the least and the greatest spread of all.
    """

    name: str
    op: str
    index: int
    low: float
    high: float
    seen: tuple[float, float]
    share: float = 0.0
    is_narrow: bool = False
    narrow: tuple[int, ...] = ()
    columns: int = 0
    spreads: tuple[float, float] = (0.0, 0.0)

    @staticmethod
    def of(spec: TensorSpec, sums: Fidelity, columns: Columns | None = None) -> Span | None:
        """Return the ranges of a tensor; None if it has no codes of one scale, or no values were seen."""
        ends = code_range(spec)
        if ends is None or not sums.elements:
            return None
        step = (ends[1] - ends[0]) / 255
        steps = sums.elements * step * step / 12
        is_narrow = sums.cut > _CUT * sums.noise and sums.noise > _BEYOND_STEPS * steps
        spreads = np.zeros(0) if columns is None else columns.spreads
        alone = np.flatnonzero((spreads > 0) & (spreads < step)) if len(spreads) > 1 else np.zeros(0, np.int64)
        return Span(
            sums.name,
            sums.op,
            sums.index,
            *ends,
            (sums.low, sums.high),
            sums.beyond / sums.elements,
            is_narrow,
            tuple(alone.tolist()),
            len(spreads),
            (float(spreads[spreads > 0].min(initial=np.inf)), float(spreads.max())) if alone.size else (0.0, 0.0),
        )

    @property
    def step(self) -> float:
        """The distance of two codes."""
        return (self.high - self.low) / 255

    @property
    def excess(self) -> float:
        """Width of the range by that of the values, which include 0 as every range does."""
        width = max(self.seen[1], 0.0) - min(self.seen[0], 0.0)
        return (self.high - self.low) / width if width > 0 else 1.0


@dataclass(slots=True)
class Columns:
    """The least and the greatest value of each column of an input (its last axis) over all samples."""

    low: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    high: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def add(self, values: Array) -> None:
        """Count a sample; inputs of very many columns are not watched."""
        if values.ndim and 0 < values.shape[-1] <= _MOST_COLUMNS and values.size:
            rows = values.reshape(-1, values.shape[-1])
            low, high = rows.min(axis=0), rows.max(axis=0)
            is_first = self.low.shape != low.shape
            self.low = low if is_first else np.minimum(self.low, low)
            self.high = high if is_first else np.maximum(self.high, high)

    @property
    def spreads(self) -> NDArray[np.float64]:
        """The widths of the columns' ranges."""
        return np.asarray(self.high, np.float64) - np.asarray(self.low, np.float64)
