"""The output stage without scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.rounding import wrap_int32
from tflq.engine.numerics.stages import AS_INT32, Ints32, OutputPipeline, Reals, over
from tflq.typing import Array


@in_pieces(accumulator="r", out="r")
@compiled
def _unscaled_rows(accumulator: Array, out: Array, bias: Array) -> None:
    """Add the bias to rows.

    The caller guarantees: `out` has the shape of `accumulator`, and `bias` an element for every column.
    """
    for r in range(accumulator.shape[0]):
        for c in range(accumulator.shape[1]):
            out[r, c] = wrap_int32(np.int64(accumulator[r, c]) + np.int64(bias[c]))


@dataclass(frozen=True, slots=True, eq=False)
class Unscaled:
    """int32 accumulators as they are, bias added, for kernels that scale them in another step."""

    real: Reals

    @classmethod
    def pipeline(cls) -> OutputPipeline:
        """Return the pipeline accumulators -> int32, without zero point and clamp."""
        return OutputPipeline(cls(np.ones(1)), *AS_INT32)

    def __call__(self, accumulator: Array) -> Ints32:
        """Return the accumulators; see OutputStage.__call__."""
        return np.asarray(accumulator).astype(np.int64).astype(np.int32)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Add the bias; see OutputStage.narrow. `low` and `high` are those of int32."""
        _unscaled_rows(accumulator, out, over(bias, accumulator.shape[1]))

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Copy the accumulators; see OutputStage.narrow_flat. `low` and `high` are those of int32."""
        out[...] = self(accumulator)

    def bind_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> Callable[[], object]:
        """Bind the copy; see OutputStage.bind_flat."""
        return partial(self.narrow_flat, accumulator, out, zero_point, low, high)
