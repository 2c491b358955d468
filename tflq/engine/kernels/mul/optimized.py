"""MUL of 8-bit codes by vector code: scaled products saturate in 16 bits, and wrap when the zero point is added.

Operands, options and refusals: tflq/engine/kernels/mul/reference.py. Elements left over after whole blocks are
identical to the reference, and so are all if no product can leave 16 bits.
Source: LiteRT 2.3 optimized/integer_ops/mul.h MulElementwise, MulSimpleBroadcast; optimized_ops.h MulElementwise,
MulSimpleBroadcast (uint8), all with USE_NEON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks, run_of
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, valid
from tflq.engine.kernels.mul import reference as mul
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.multiplier import quantize_multipliers
from tflq.engine.numerics.stages import WORD, OutputPipeline, OutputStage, type_range
from tflq.engine.numerics.unscaled import Unscaled
from tflq.model.ir import TensorType
from tflq.typing import Array


def saturate(scaled: Array) -> Array:
    """Return int32 as int16, saturated. Source: vqmovn_s32."""
    return np.clip(scaled, -(2**15), 2**15 - 1).astype(np.int16)


def truncate(scaled: Array) -> Array:
    """Return the low 16 bits of int32. Source: vmovn_s32."""
    return scaled.astype(np.int16)


#: Type, and whether one operand is a single element -> elements in a block, and how 32 bits become 16 in it.
FORMS: dict[tuple[TensorType, bool], tuple[int, Callable[[Array], Array]]] = {
    (TensorType.UINT8, False): (8, saturate),
    (TensorType.UINT8, True): (8, truncate),
    (TensorType.INT8, False): (16, saturate),
    (TensorType.INT8, True): (16, saturate),
}


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the vector form."""

    products: mul.OpData  # the reference's, without scaling
    pipeline: OutputPipeline  # the reference's
    narrowed: Callable[[Array], Array]  # scaled products in 32 bits -> in 16 bits
    run: int  # elements that the vector loop goes through without a break
    whole: int  # how many of these fill whole blocks
    stage: OutputStage  # the scaling in these


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the reference's operator; if products can leave 16 bits, they are kept and scaled afterwards."""
    a, b, y = both(node)
    prepared = mul.prepare_quantized(node, arithmetic)
    run, stands_still = run_of(a.shape, b.shape)
    block, narrowed = FORMS[y.type, stands_still]
    whole = in_whole_blocks(run, block)
    largest = _reach(a) * _reach(b) * float(arithmetic.real_of_operands(a.scale, b.scale, over=y.scale)) + abs(
        y.zero_point
    )
    if not whole or largest < 2**15 - 1:
        return prepared
    products, pipeline = replace(prepared.data, pipeline=Unscaled.pipeline()), prepared.data.pipeline
    stage = vector_stage(pipeline.stage, arithmetic)
    return Prepared(prepared.shapes, OpData(products, pipeline, narrowed, run, whole, stage), eval_blocks)


def vector_stage(stage: OutputStage, arithmetic: Arithmetic) -> OutputStage:
    """Return the per-tensor `stage` as vectors do it: a left shift of 32 or more gives 0. Source: vshlq_s32."""
    _, shifts = quantize_multipliers(stage.real)
    return arithmetic.requantize(0.0) if shifts[0] >= WORD else stage


def _reach(operand: Operand) -> int:
    return max(abs(int(code) - operand.zero_point) for code in type_range(operand.type.label))


def eval_blocks(data: OpData, a: Array, b: Array) -> Array:
    """Source: MulElementwise. Rounding: once, by the stage. Overflow: saturates, then wraps 16 bits in whole blocks."""
    products = mul.eval_quantized(data.products, a, b)
    codes = data.pipeline(products).reshape(-1, data.run)
    blocks = products.reshape(-1, data.run)[:, : data.whole]
    wrapped = data.narrowed(data.stage(blocks)) + np.int16(data.pipeline.zero_point)
    codes[:, : data.whole] = np.clip(wrapped, *data.pipeline.clamp)
    return codes.reshape(data.products.shape)


KERNELS = valid(
    opt(vectors=True), *(Kernel("MUL", f"{t} {t} -> {t}", prepare_quantized, (1, 8)) for t in ("uint8", "int8"))
)
