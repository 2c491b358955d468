"""MUL by XNNPACK.

MUL of 8-bit codes by XNNPACK: the product scaled by a float32 multiplier, and squares by a table.

Operands, options and refusals: tflq/engine/kernels/mul.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitBinaryNode, CheckTensorsInputProductOutputScale. Squares: XNNPACK subgraph.c
optimize_common_subgraphs_mul_to_sqr; unary-elementwise-nc.c init_lut_op_with_config; reference-utils.h dequantize,
quantize.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels import mul
from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.unary import Tabulated, tabulate
from tflq.engine.kernels.families.xnnpack import Operation, computing, even_range
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepare, Prepared, close, filling, valid
from tflq.engine.kernels.mul import prepare_quantized
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.tables import look_up_8bit_into
from tflq.typing import Array

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


@dataclass(frozen=True, slots=True, eq=False)
class SquareData:
    """Constants of an operator that multiplies a tensor by itself. All products are float32."""

    scale: np.float32  # real units per LSB of input
    input_zero_point: ZeroPoint
    per_unit: np.float32  # LSB of output per real unit
    zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output
    dtype: np.dtype[Any]


def prepare_square(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Make a table of 256 squares if both operands are the same tensor; else prepare a product.

    In a table that XNNPACK fuses of several operators, equal operands are multiplied like others.
    """
    x, other, y = both(node)
    if x.index != other.index or node.is_in_chain:
        return prepare(node, arithmetic)
    dtype = np.dtype(x.type.label)
    with np.errstate(all="ignore"):
        per_unit = np.float32(1) / y.scale
    data = SquareData(x.scale, x.zero_point, per_unit, y.zero_point, even_range(node, y), dtype)
    return Prepared((x.shape,), tabulate(data, squares), eval_square)


def squares(data: SquareData) -> Array:
    """Return the codes of the squares of all codes.

    Rounding: the real value, its square, the scaled square, and that with the zero point are float32; then half to
    even. LiteRT 2.1.0 and 2.1.1 round half away there. Overflow: saturates.
    """
    return _encode(data, _scale(data) + np.float32(data.zero_point))


def fused_squares(data: SquareData) -> Array:
    """Return the codes if a compiler fuses the last product with the sum, which then round once."""
    exact = _square(data).astype(np.float64) * np.float64(data.per_unit) + float(data.zero_point)
    return _encode(data, exact.astype(np.float32))


def _square(data: SquareData) -> Array:
    codes = np.arange(256, dtype=np.uint8).view(data.dtype).astype(np.float32)
    with np.errstate(all="ignore"):
        real = (codes - np.float32(data.input_zero_point)) * data.scale
        return np.asarray(real * real)


def _scale(data: SquareData) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(_square(data) * data.per_unit)


def _encode(data: SquareData, values: Array) -> Array:
    rounded = np.rint(np.where(np.isnan(values), np.float32(0), values))
    return np.clip(rounded, *data.clamp).astype(data.dtype)


def prepare_square_apart(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like `prepare_square`; a table that depends on whether the compiler fuses is promised to be close."""
    prepared = prepare_square(node, arithmetic)
    data = prepared.data.data if isinstance(prepared.data, Tabulated) else None
    if data is None or np.array_equal(prepared.data.table, fused_squares(data)):
        return prepared
    return replace(prepared, exactness=close("a compiler for AArch64 may fuse the last product and sum of squares"))


def prepare_square_unseen(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like `prepare_square`; squares were not compared with WebAssembly, and are promised to be close."""
    prepared = prepare_square(node, arithmetic)
    if not isinstance(prepared.data, Tabulated):
        return prepared
    return replace(prepared, exactness=close("squares were not compared with the runtime"))


@filling(lambda data, x, _: (x.shape, data.table.dtype))
def eval_square(data: Tabulated, out: Array, x: Array, _: Array) -> Call:
    """Look every code up."""
    return look_up_8bit_into.bound(data.table, np.asarray(x, order="C").reshape(-1).view(np.uint8), out.reshape(-1))


def _rows(prepare: Prepare) -> tuple[Kernel, ...]:
    return tuple(delegate(Kernel("MUL", f"{t} {t} -> {t}", prepare, (1, 7)), takes) for t in ("uint8", "int8"))


KERNELS = (
    *valid(xnnpack(until="litert-2.0"), *_rows(prepare)),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), *_rows(prepare_square)),
    *valid(xnnpack("litert-2.1", cpu="arm64"), *_rows(prepare_square_apart)),
    *valid(xnnpack("litert-2.1", cpu="wasm"), *_rows(prepare_square_unseen)),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), computing("MUL", mul.ROWS, Operation.MULTIPLY)),
)
