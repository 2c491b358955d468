"""REDUCE_PROD: y = product of x over the axes.

| operand | shape                | types                 | quantization                             |
|---------|----------------------|-----------------------|------------------------------------------|
| x       | any                  | float32, int32, int64 | none                                     |
|         |                      | int8, int16           | none; or per tensor, int16: zero point 0 |
| axes    | any                  | int32                 |                                          |
| y       | x without, or with 1 | as x                  | as x has any                             |

Options: keep_dims. Over axes of size 1 alone, the optimized resolver copies quantized integers without any scaling; up
to LiteRT 2.1 it reads memory that nothing has written, which is refused.
Source: LiteRT 2.3, reduce.cc PrepareProd, GetQuantProdScaling, EvalQuantizedProd; reference/reduce.h
QuantizedReduceProd; optimized/reduce.h QuantizedReduceProd, ReduceIsCopy. TensorFlow 2.14, optimized/reduce.h
QuantizedReduceProd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.reduction import AXES, Reduced, fold_product, kernels, reduced_axes
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.notes import Fault
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.multiplier import Multiplier, multiply_wide, quantize_multiplier
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    reduced: Reduced
    input_zero_point: ZeroPoint  # LSB of input
    multiplier: Multiplier  # of the scaling after every product, Q31
    output_zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output


def _start(dtype: np.dtype[np.generic]) -> int:
    return 1


PLAIN = kernels("REDUCE_PROD", fold_product, _start, ("float32", "int32", "int64", "int8", "int16"), (1, 2))


def prepare_integer(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Multiply plainly without quantization; else scale each of n products by input / output scale ** (1/n)."""
    x, y = node.input(0), node.outputs[0]
    if not x.is_quantized:
        return PLAIN[0].prepare(node, arithmetic)
    if x.type.label == "int16":
        for operand in (x, y):
            node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
    reduced = reduced_axes(node)
    if math.prod(x.shape) == 0:
        raise UndefinedResultError("QuantizedReduceProd", "no elements to multiply: the output stays unwritten")
    if not y.scale > 0:
        raise UndefinedResultError(node.op, "a scale of 0")
    scaling = float(x.scale) / math.pow(float(y.scale), 1.0 / reduced.count)
    clamp = type_range(x.type.label)
    data = OpData(reduced, x.zero_point, quantize_multiplier(scaling), y.zero_point, clamp)
    return Prepared((reduced.shape,), data, eval_quantized)


def eval_quantized(data: OpData, x: Array, axes: Array) -> Array:
    """Source: QuantizedReduceProd. Rounding: half up after every product, by the int64 form. Overflow: wraps int32."""
    rows = data.reduced.rows(x)
    products = np.empty((rows.shape[0], rows.shape[2]), np.int64)
    out = np.empty(products.shape, x.dtype)
    _fold(rows, int(data.input_zero_point), *data.multiplier, products, True)
    _narrow(products, *data.multiplier, int(data.output_zero_point), *data.clamp, out)
    return out.reshape(data.reduced.shape)


@in_pieces(8, x="ok", products="o", begin="k")
@compiled
def _fold(x: Array, zero_in: Int, mantissa: Int, shift: Int, products: Array, begin: bool) -> None:
    """Prepare guarantees: `x` is (outer, reduced, inner), and `products` (outer, inner)."""
    outer, count, inner = x.shape
    for o in range(outer):
        for k in range(count):
            for i in range(inner):
                centred = np.int64(x[o, k, i]) - zero_in
                if begin and k == 0:
                    products[o, i] = centred
                else:
                    products[o, i] = wrap_int32(multiply_wide(products[o, i] * centred, mantissa, shift))


@in_pieces(8, products="o", out="o")
@compiled
def _narrow(products: Array, mantissa: Int, shift: Int, zero_out: Int, low: Int, high: Int, out: Array) -> None:
    """Rescale `products` into `out`. The caller guarantees: `products` has the shape of `out`."""
    outer, inner = out.shape
    for o in range(outer):
        for i in range(inner):
            out[o, i] = clamp(wrap_int32(multiply_wide(products[o, i], mantissa, shift)) + zero_out, low, high)


TYPES = ("int8", "int16")


def prepare_copying(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Copy if, by the shapes, nothing is multiplied."""
    prepared = prepare_integer(node, arithmetic)
    reduced = reduced_axes(node)
    return prepared if reduced.count > 1 else Prepared(prepared.shapes, reduced.shape, eval_copy)


def eval_copy(shape: Shape, x: Array, axes: Array) -> Array:
    """Source: ReduceIsCopy. No rounding."""
    return x.reshape(shape)


def prepare_multiplied(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse reductions that multiply nothing."""
    if node.input(0).is_quantized and reduced_axes(node).count == 1:
        raise UndefinedResultError("QuantizedReduceProd", "nothing to multiply: temporary memory is read unwritten")
    return prepare_integer(node, arithmetic)


KERNELS = (
    *PLAIN[:3],
    *(Kernel("REDUCE_PROD", f"{t} int32 -> {t}", prepare_integer, (1, 2), AXES) for t in ("int8", "int16")),
    *valid(
        opt("litert-2.2"), *(Kernel("REDUCE_PROD", f"{t} int32 -> {t}", prepare_copying, (1, 2), AXES) for t in TYPES)
    ),
    *valid(
        opt(until="litert-2.1"),
        *(Kernel("REDUCE_PROD", f"{t} int32 -> {t}", prepare_multiplied, (1, 2), AXES) for t in TYPES),
    ),
)

FAULTS = (
    Fault(
        "REDUCE_PROD",
        ("int8 int32 -> int8", "int16 int32 -> int16"),
        "2.14 to LiteRT 2.1, optimized kernels",
        "over axes of size 1 alone, temporary memory is read that was never written, stray addresses among it: refused",
        "optimized/reduce.h QuantizedReduceProd; ReduceIsCopy in later releases",
        (opt("tflite-2.14", "litert-2.1"),),
    ),
)
