"""The axes along which runtimes differ, one field each. A profile fills them; kernels only ever see this value."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.numerics.stages import StageOf


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Behaviour shared by several kernels. Every field is a function or a value that acts, never a flag."""

    #: int32 accumulators -> output LSB, for the real multipliers given (float64)
    requantize: StageOf
    #: int32 accumulators -> output LSB where vector instructions do it, which may round in their own way
    requantize_simd: StageOf
    #: int64 accumulators (16-bit activations with 64-bit bias) -> output LSB
    requantize_wide: StageOf
    #: FULLY_CONNECTED's own, int32 accumulators
    requantize_dense: StageOf
    #: FULLY_CONNECTED's own, int64 accumulators
    requantize_dense_wide: StageOf
