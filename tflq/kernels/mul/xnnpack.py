"""MUL of 8-bit codes by XNNPACK: the product scaled by a float32 multiplier.

Operands, options and refusals: tflq/kernels/mul/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitBinaryNode, CheckTensorsInputProductOutputScale.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.delegation import delegate, has_shape, is_quantized
from tflq.kernels.families.binary import both
from tflq.kernels.families.xnnpack_floats import computing
from tflq.kernels.families.xnnpack_scaling import even_range
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.mul import reference
from tflq.kernels.mul.reference import prepare_quantized
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic

_LOWEST, _BEYOND = 2.0**-16, 256.0


def takes(node: Node) -> bool:
    """Return whether the product of scales is between 1/65536 and 256 of the output's, in float32."""
    a, b, y = both(node)
    if not (all(map(is_quantized, (a, b, y))) and has_shape(a) and has_shape(b)):
        return False
    with np.errstate(all="ignore"):
        return bool(_LOWEST <= a.scale * b.scale / y.scale < _BEYOND)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, except for scaling and limits."""
    prepared = prepare_quantized(node, replace(arithmetic, requantize=arithmetic.xnnpack_product))
    pipeline = replace(prepared.data.pipeline, clamp=even_range(node, node.outputs[0]))
    return replace(prepared, data=replace(prepared.data, pipeline=pipeline))


KERNELS = (
    *valid(xnnpack(), *(delegate(Kernel("MUL", f"{t} {t} -> {t}", prepare, (1, 7)), takes) for t in ("uint8", "int8"))),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), computing("MUL", reference.ROWS, np.multiply)),
)
