"""DEQUANTIZE by vector code: eight at a time x * scale + (-zero point * scale), what is left over as the reference.

Operands, options and refusals: tflq/engine/kernels/dequantize/reference.py; several scales are dequantized as there.
Source: LiteRT 2.3 optimized_ops.h Dequantize, ScaleWithNewZeroPoint with USE_NEON; fused on AArch64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.dequantize import reference as dequantize
from tflq.engine.kernels.families.unary import prepare_unary
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.multiply_add import MultiplyAdd
from tflq.model.ir import CARRIER
from tflq.typing import Array

#: Elements that the vector loop takes at a time.
BLOCK = 8


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """x * scale + shift."""

    scale: np.float32  # real units per LSB
    shift: np.float32  # -zero point * scale, real units, rounded once
    multiply_add: MultiplyAdd


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the per-tensor form."""

    whole: Prepared  # for whole blocks
    rest: Prepared  # the reference, for what is left over


def prepare_dequantize(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Round -zero point * scale, a float64 product, to float32."""
    x = node.input(0)
    rest = dequantize.prepare_dequantize(node, arithmetic)
    if x.quantization is not None and len(x.quantization.scale) > 1:
        return rest
    shift = np.float32(-x.zero_point * np.float64(x.scale))
    whole = prepare_unary(node, Affine(x.scale, shift, arithmetic.multiply_add), eval_affine, CARRIER[x.type])
    return Prepared(rest.shapes, OpData(whole, rest), eval_blocks)


def eval_affine(data: Affine, x: Array) -> Array:
    """Source: ScaleWithNewZeroPoint. Rounding: float32, by `multiply_add`."""
    return data.multiply_add(x.astype(np.float32), data.scale, data.shift)


def eval_blocks(data: OpData, x: Array) -> Array:
    """Source: Dequantize. Rounding: whole blocks as eval_affine, what is left over once."""
    codes = np.ascontiguousarray(x).reshape(-1)
    at = in_whole_blocks(codes.size, BLOCK)
    out = np.empty(x.shape, np.float32)
    flat = out.reshape(-1)
    flat[:at] = data.whole.eval(data.whole.data, codes[:at])
    if at < codes.size:
        flat[at:] = data.rest.eval(data.rest.data, codes[at:])
    return out


KERNELS = valid(
    opt(vectors=True), Kernel("DEQUANTIZE", "int8|uint8|int16|int4|uint4 -> float32", prepare_dequantize, (1, 9))
)
