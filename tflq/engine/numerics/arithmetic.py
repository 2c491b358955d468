"""The axes along which runtimes differ, one field each. A profile fills them; kernels read nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.dynamic_range import Rescale, rescale_fused
from tflq.engine.numerics.eigen import FIRST_LEVEL_CACHE
from tflq.engine.numerics.estimates import MultiplyAdd, round_apart
from tflq.engine.numerics.stage_roundings import DoubleRounding, FloatRoundingEven, HalfUpTwice, SingleRounding
from tflq.engine.numerics.stages import OutputStage, Reals, StageOf
from tflq.engine.numerics.xnnpack import AVX2, Functions


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Behaviour shared by several kernels. Fields are functions, or values that act."""

    #: int32 accumulators -> output LSB, for the real multipliers given (float64)
    requantize: StageOf
    #: the same in matrix products of the optimized kernels
    requantize_gemm: StageOf
    #: the same in vectorized loops of the optimized kernels
    requantize_simd: StageOf
    #: int64 accumulators (16-bit activations with 64-bit bias) -> output LSB
    requantize_wide: StageOf
    #: FULLY_CONNECTED's real multipliers, from two: float64 throughout, and as prepare computes them for fixed point
    dense_real: Callable[[Reals, Reals], Reals]
    #: FULLY_CONNECTED's own, int32 accumulators
    requantize_dense: StageOf
    #: FULLY_CONNECTED's own, int64 accumulators
    requantize_dense_wide: StageOf
    #: a * b + c of float32, where the source writes them in one expression
    multiply_add: MultiplyAdd = round_apart
    #: the stages of XNNPACK's int8 matrix products, with weights of 8 and of 4 bits
    xnnpack_int8_gemm: StageOf = FloatRoundingEven.of
    xnnpack_int4_gemm: StageOf = FloatRoundingEven.of
    #: the stage of XNNPACK's uint8 matrix products
    xnnpack_uint8_gemm: StageOf = FloatRoundingEven.of
    #: the stage of XNNPACK's products and uint8 depthwise convolutions
    xnnpack_product: StageOf = FloatRoundingEven.of
    #: how XNNPACK rescales sums of quantized floats
    xnnpack_rescale: Rescale = rescale_fused
    #: lanes in which XNNPACK adds sums of blocks whose weights have scales of their own; None if they are not known
    xnnpack_blocks: int | None = None
    #: functions of floats by XNNPACK that depend on the vector extension
    xnnpack_functions: Functions = AVX2
    #: the floats that XNNPACK's leaky rectifiers multiply by the slope; subnormal ones are zeros by then
    xnnpack_negative: Callable[[NDArray[np.float32]], NDArray[np.bool_]] = np.signbit
    #: the number of float32 that XNNPACK's reductions along rows take at a time
    xnnpack_lanes: int = 8
    #: what is added to weights of four bits that are packed for float activations
    int4_offset: int = 7
    #: type in which real multipliers are computed from scales, step by step; float64 afterwards
    scale_type: type[np.float32] | type[np.float64] = np.float32
    #: type in which MUL and PRELU multiply and divide the scales of operands; None: `scale_type`
    operand_scale_type: type[np.float64] | None = None
    #: type in which SUB divides scales
    difference_scale_type: type[np.float32] | type[np.float64] = np.float64
    #: bytes of the first-level data cache that Eigen fits panels of float products to
    first_level_cache: int = FIRST_LEVEL_CACHE

    def real_of_scales(self, *factors: np.float32, over: np.float32) -> np.float64:
        """Return the product of the scales `factors` over the scale `over`, left to right in `scale_type`."""
        return _product_over(self.scale_type, factors, over)

    def real_of_operands(self, *scales: np.float32, over: np.float32) -> np.float64:
        """Return the product of operands' scales over the scale `over`, left to right in `operand_scale_type`."""
        return _product_over(self.operand_scale_type or self.scale_type, scales, over)

    def each_stage(self, change: Callable[[StageOf], StageOf]) -> Arithmetic:
        """Return the arithmetic with every rule that builds output stages changed."""
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in STAGES}
        return replace(self, **changed)

    def each_made_stage(self, change: Callable[[OutputStage], OutputStage]) -> Arithmetic:
        """Return the arithmetic with every output stage that it builds changed."""
        return self.each_stage(lambda own: lambda real: change(own(real)))


#: The fields that make output stages.
STAGES = tuple(name for name, kind in get_type_hints(Arithmetic).items() if kind == StageOf)


def round_once(arithmetic: Arithmetic) -> Arithmetic:
    """Return the arithmetic with single rounding: every requantizer that rounds twice rounds once, half up.

    Source: TFLITE_SINGLE_ROUNDING, which CMSIS-NN's option, TOSA and many NPUs share.
    """
    twice = (DoubleRounding.of, HalfUpTwice.of)
    return arithmetic.each_stage(lambda stage: SingleRounding.of if stage in twice else stage)


def below_zero(x: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Compare with zero, for `xnnpack_negative`: negative zero is not negative. Source: f32-vlrelu for AVX-512."""
    return x < 0


def exact_real(exact: Reals, prepared: Reals) -> Reals:
    """Return the multipliers in float64 throughout, for `dense_real`."""
    return exact


def _product_over(
    real: type[np.float32] | type[np.float64], factors: Iterable[np.float32], over: np.float32
) -> np.float64:
    product = real(1)
    with np.errstate(all="ignore"):
        for factor in factors:
            product = product * real(factor)
        return np.float64(product / real(over))


def prepared_real(exact: Reals, prepared: Reals) -> Reals:
    """Return the multipliers as prepare has them, for `dense_real`: a per-tensor product of scales is rounded to
    float32.
    """
    return prepared
