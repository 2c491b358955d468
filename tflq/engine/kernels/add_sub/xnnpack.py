"""ADD and SUB by XNNPACK. Operands, options and refusals: tflq/engine/kernels/add_sub/reference.py.

8-bit codes: both ratios of scales become integers with a common shift, chosen so that the larger one has 21 bits; the
contribution of each input's code is tabulated when the operator is prepared.
float32: see tflq/engine/kernels/families/xnnpack_floats.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitBinaryNode; XNNPACK's qs8 and qu8 vadd.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.add_sub import reference
from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized, ratio_lies
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.scaled_sum import OpData, eval_general
from tflq.engine.kernels.families.xnnpack_floats import computing
from tflq.engine.kernels.families.xnnpack_scaling import even_range
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import OutputPipeline, SingleRounding
from tflq.typing import Array

#: Bits of the larger multiplier below its highest.
_PRECISION = 20
_LOWEST, _BEYOND = 2.0**-10, 256.0


def takes(node: Node) -> bool:
    """Return whether both inputs' scales lie between 1/1024 and 256 of the output's."""
    a, b, y = both(node)
    return (
        all(map(is_quantized, (a, b, y)))
        and has_shape(a)
        and has_shape(b)
        and ratio_lies(a, y, _LOWEST, _BEYOND)
        and ratio_lies(b, y, _LOWEST, _BEYOND)
    )


def prepare_sum(node: Node, sign: int) -> Prepared:
    """Prepare a + sign * b. Ratios are float32; multipliers are rounded half to even."""
    a, b, y = both(node)
    first, second = a.scale / y.scale, b.scale / y.scale
    shift = _PRECISION + 1 - int(np.frexp(max(first, second))[1])
    dtype = np.dtype(y.type.label)
    shape = broadcast_shape(node, a, b)
    data = OpData(
        first=_scale_codes(a, int(np.rint(np.ldexp(np.float64(first), shift)))),
        second=_scale_codes(b, sign * int(np.rint(np.ldexp(np.float64(second), shift)))),
        pipeline=OutputPipeline(halve_up(shift), y.zero_point, even_range(node, y), dtype),
        shape=shape,
    )
    return Prepared((shape,), data, eval_general)


def halve_up(shift: int) -> SingleRounding:
    """Return the stage that divides by 2**shift, half up; `shift` in 1..31."""
    stage = SingleRounding.of_fixed(1 << 30, 1 - shift)
    assert isinstance(stage, SingleRounding)
    return stage


def _scale_codes(operand: Operand, multiplier: int) -> Array:
    codes = np.arange(256, dtype=np.uint8).view(operand.type.label).astype(np.int64)
    return ((codes - operand.zero_point) * multiplier).astype(np.int32)


def prepare_add(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare x + y."""
    return prepare_sum(node, 1)


def prepare_sub(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare x - y, the sum of x and y with the sign -1."""
    return prepare_sum(node, -1)


KERNELS = (
    *valid(
        xnnpack(),
        *(delegate(Kernel("ADD", f"{t} {t} -> {t}", prepare_add, (1, 5)), takes) for t in ("uint8", "int8")),
        *(delegate(Kernel("SUB", f"{t} {t} -> {t}", prepare_sub, (1, 5)), takes) for t in ("uint8", "int8")),
    ),
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        computing("ADD", reference.ADD, np.add),
        computing("SUB", reference.SUB, np.subtract),
    ),
)
