"""DEQUANTIZE by vector code: eight at a time x * scale + (-zero point * scale), what is left over as the reference.

Operands, options and refusals: tflq/kernels/reference/dequantize.py; several scales are dequantized as there.
Source: LiteRT 2.3 optimized_ops.h Dequantize, ScaleWithNewZeroPoint with USE_NEON, without FMA.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.kernels.blocks import in_whole_blocks
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.reference import dequantize
from tflq.numerics.arithmetic import Arithmetic

#: Elements that the vector loop takes at a time.
BLOCK = 8


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the per-tensor form."""

    scale: np.float32  # real units per LSB
    shift: np.float32  # -zero point * scale, real units, rounded once
    rest: Prepared  # the reference, for what is left over


def prepare_dequantize(node: Node, arithmetic: Arithmetic) -> Prepared:
    """-zero point * scale is a float64 product, rounded to float32."""
    x = node.input(0)
    rest = dequantize.prepare_dequantize(node, arithmetic)
    if x.quantization is not None and len(x.quantization.scale) > 1:
        return rest
    data = OpData(x.scale, np.float32(-x.zero_point * np.float64(x.scale)), rest)
    return Prepared(rest.shapes, data, eval_blocks)


def eval_blocks(data: OpData, x: Array) -> Array:
    """Source: Dequantize. Rounding: product and sum apart, float32; what is left over once."""
    codes = np.ascontiguousarray(x).reshape(-1)
    at = in_whole_blocks(codes.size, BLOCK)
    out = np.empty(x.shape, np.float32)
    flat = out.reshape(-1)
    np.multiply(codes[:at], data.scale, out=flat[:at], dtype=np.float32)
    flat[:at] += data.shift
    if at < codes.size:
        flat[at:] = data.rest.eval(data.rest.data, codes[at:])
    return out


KERNELS = (Kernel("DEQUANTIZE", "int8|uint8|int16 -> float32", prepare_dequantize, (1, 9)),)
