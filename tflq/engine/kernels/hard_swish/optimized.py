"""HARD_SWISH of the optimized resolver. Operands, options and refusals: tflq/engine/kernels/hard_swish/reference.py.

Floats on x86-64 go through vector code, four at a time: the input is divided by 6 first, as a product. Elsewhere they
are not claimed. 8-bit codes on AArch64 go through vector code, eight at a time: shifts round half up, the
last product is a floor. The reference does what is left over.
Source: LiteRT 2.3 optimized_ops.h HardSwish (float) with USE_NEON; LiteRT 2.3 and TensorFlow 2.14 optimized_ops.h
HardSwish (quantized) with __ARM_NEON.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.two_tables import TwoTables, eval_tables
from tflq.engine.kernels.families.unary import same_type, tabulate
from tflq.engine.kernels.families.unclaimed import unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks
from tflq.engine.kernels.hard_swish import reference
from tflq.engine.kernels.hard_swish.reference import OpData
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER
from tflq.typing import Array

#: Elements that the vector loop takes at a time.
BLOCK = 8


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare two tables of all codes, both from the reference's constants."""
    tail = reference.prepare_quantized(node, arithmetic)
    data = tail.data.data
    codes = np.arange(256, dtype=np.uint8).view(CARRIER[node.input(0).type])
    whole = tabulate(data, lambda changed: eval_whole(changed, codes))
    return Prepared(tail.shapes, TwoTables(whole, tail.data, BLOCK), eval_tables)


def eval_whole(data: OpData, x: Array) -> Array:
    """Source: HardSwish. Rounding: half up in products and shifts, floor in the last product."""
    out = np.empty(x.shape, x.dtype)
    reference.hard_swish(
        x,
        int(data.input_zero_point),
        int(data.output_zero_point),
        *data.output,
        *data.reluish,
        *type_range(x.dtype),
        True,
        out,
    )
    return out


#: Floats that the vector loop takes at a time.
FLOATS = 4


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    x, _ = same_type(node)
    return Prepared((x.shape,), None, eval_float)


def eval_float(data: None, x: Array) -> Array:
    """Source: HardSwish (float). Rounding: each sum and product; the elements left over multiply by 1/6 at the end."""
    sixth, flat = np.float32(1) / np.float32(6), x.reshape(-1)
    gate = np.minimum(np.float32(6), np.maximum(np.float32(0), flat + np.float32(3)))
    out, whole = flat * sixth * gate, in_whole_blocks(flat.size, FLOATS)
    out[whole:] = flat[whole:] * gate[whole:] * sixth
    return np.asarray(out.reshape(x.shape))


KERNELS = (
    *valid(opt(), *unclaimed_floats(reference.ROWS)),
    *valid(opt("litert-1.0", cpu="x86-64"), Kernel("HARD_SWISH", "float32 -> float32", prepare_float, (1, 1))),
    *valid(opt(cpu="arm64"), *(Kernel("HARD_SWISH", f"{t} -> {t}", prepare, (1, 1)) for t in ("uint8", "int8"))),
)
