"""CONCATENATION of uint8 as releases up to 2.14 rescale it: the zero point is taken off before the product.

Operands, options and refusals: tflq/kernels/concatenation/reference.py.
Source: TensorFlow 2.14 reference/concatenation.h ConcatenationWithScaling, as the AArch64 wheel has it: built with
float arithmetic that may be reordered.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.concatenation import reference as concatenation
from tflq.kernels.kernel import Array, Kernel, Node, Operand, Prepared, valid
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.rounding import nearest_half_away


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The reference's, with tables of its own for the inputs that are rescaled."""
    prepared = concatenation.prepare(node, arithmetic)
    y = node.outputs[0]
    tables = tuple(
        None if table is None else rescaling(node.input(position), y)
        for position, table in enumerate(prepared.data.tables)
    )
    return replace(prepared, data=replace(prepared.data, tables=tables))


def rescaling(x: Operand, y: Operand) -> Array:
    """Output codes of the 256 input codes. Rounding: float32 product, then half away, then clamped to 0..255."""
    scale = x.scale * (np.float32(1) / y.scale)
    real = (np.arange(256) - x.zero_point).astype(np.float32) * scale
    return np.clip(nearest_half_away(real).astype(np.int64) + y.zero_point, 0, 255).astype(np.uint8)


KERNELS = valid(tflite(until="tflite-2.14", cpu="arm64"), Kernel("CONCATENATION", "uint8* -> uint8", prepare, (1, 7)))
