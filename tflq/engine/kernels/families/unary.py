"""Element-wise operators of one input: the bodies that their kernel files share.

On 8-bit inputs such an operator is a function of 256 codes: it is evaluated once over all of them and looked up.

Requirements of elementwise.cc: quantization of ABS, LOG, RSQRT and SQRT, and values that these refuse when run.

Functions of one float that the source computes in float32 for narrower types too, rounding once at the end.

Float operators whose bits under the optimized resolver are not reproduced: reference kernels, not claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.kernels.checks import require_zero_point_zero
from tflq.engine.kernels.kernel import (
    SAME_LIBM,
    Call,
    Exactness,
    Kernel,
    Node,
    Operand,
    Prepare,
    Prepared,
    close,
    filling,
    promising,
)
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.estimates import MultiplyAdd, round_apart
from tflq.engine.numerics.libm import Elementwise
from tflq.engine.numerics.tables import (
    Transform,
    leaves_int32,
    look_up_8bit_into,
    look_up_16bit_into,
    table_8bit,
    table_16bit,
)
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Tabulated:
    """An operator on 8-bit codes as a table: `table[code as uint8]` is the output's code, `make(data)` the table."""

    data: Any
    table: Array
    make: Callable[[Any], Array]


def prepare_unary(node: Node, data: Any, evaluate: Callable[[Any, Array], Array], dtype: np.dtype[Any]) -> Prepared:
    """Bind `evaluate(data, x)`, through a table of all codes where the input `dtype` has 8 bits."""
    shape = node.input(0).shape
    if dtype.itemsize == 1 and dtype != np.bool_:
        codes = np.arange(256, dtype=np.uint8).view(dtype)
        return Prepared((shape,), tabulate(data, lambda changed: evaluate(changed, codes)), eval_table)
    return Prepared((shape,), data, evaluate)


def tabulate(data: Any, make: Callable[[Any], Array]) -> Tabulated:
    """Return the table that `make` computes from `data`."""
    return Tabulated(data, make(data), make)


@filling(lambda data, x: (x.shape, data.table.dtype))
def eval_table(data: Tabulated, out: Array, x: Array) -> Call:
    """Look every code up. No rounding: that happened when the table was computed."""
    return look_up_8bit_into.bound(data.table, np.asarray(x, order="C").reshape(-1).view(np.uint8), out.reshape(-1))


def same_type(node: Node) -> tuple[Operand, Operand]:
    """Return input and output of a one-input operator whose types must agree."""
    x, y = node.input(0), node.outputs[0]
    node.check(x.type == y.type, "input and output types differ", y, expected=x.type.label, got=y.type.label)
    return x, y


def prepare_tabulated(
    node: Node, transform: Transform, multiply_add: MultiplyAdd = round_apart, is_clamped: bool = True
) -> Prepared:
    """Prepare a table of a function of reals: 256 codes for int8 and uint8, 513 samples to interpolate for int16.

    If not `is_clamped`, 8-bit results beyond int32 are refused, which wheels convert before they clamp them; uint8 ones
    always are.
    """
    x, y = same_type(node)
    dtype = np.dtype(x.type.label)
    if dtype == np.int16:
        table = table_16bit(transform, x.scale, x.zero_point, y.scale, y.zero_point, multiply_add)
        return Prepared((x.shape,), table, eval_table_16bit)
    is_clamped = is_clamped and dtype != np.uint8
    if not is_clamped and leaves_int32(transform, dtype, x.scale, x.zero_point, y.scale, y.zero_point):
        raise UndefinedResultError(node.op, "results beyond int32 in steps of the output")
    table = table_8bit(transform, dtype, x.scale, x.zero_point, y.scale, y.zero_point)
    return Prepared((x.shape,), table, eval_table_8bit)


@filling(lambda table, x: (x.shape, table.dtype))
def eval_table_8bit(table: Array, out: Array, x: Array) -> Call:
    """Look every 8-bit code up."""
    return look_up_8bit_into.bound(table, np.asarray(x, order="C").reshape(-1).view(np.uint8), out.reshape(-1))


@filling(lambda table, x: (x.shape, np.int16))
def eval_table_16bit(table: Array, out: Array, x: Array) -> Call:
    """Interpolate between samples."""
    return look_up_16bit_into.bound(table, np.asarray(x, order="C").reshape(-1), out.reshape(-1))


def prepare_function(function: Callable[[Array], Array]) -> Prepare:
    """Return a prepare for a function of the input's own type, without constants."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, _ = same_type(node)
        return Prepared((x.shape,), function, evaluate)

    evaluate: Callable[..., Any] = eval_ufunc if isinstance(function, np.ufunc) else eval_function
    if isinstance(function, Elementwise):
        evaluate = eval_loop
    return prepare


@filling(lambda function, x: (x.shape, x.dtype), once=lambda function, x: function(x))
def eval_loop(function: Elementwise, out: Array, x: Array) -> Call:
    """Evaluate without rounding, except the function's own."""
    return function.into(np.asarray(x, order="C").reshape(-1), out.reshape(-1))


@filling(lambda function, x: (x.shape, x.dtype), once=lambda function, x: function(x))
def eval_ufunc(function: np.ufunc, out: Array, x: Array) -> Call:
    """Evaluate without rounding, except the function's own."""

    def call() -> None:
        function(x, out=out)

    return call


def eval_function(function: Callable[[Array], Array], x: Array) -> Array:
    """Evaluate without rounding, except the function's own."""
    return np.asarray(function(x))


def check_elementwise(node: Node) -> None:
    """Require both operands to be quantized, with zero point 0 for int16. Source: elementwise.cc GenericPrepare."""
    for operand in (node.input(0), node.outputs[0]):
        node.check(operand.is_quantized, "is not quantized", operand)
        if operand.type == TensorType.INT16:
            require_zero_point_zero(node, operand)


def refuse_negative(function: str, x: Array, zero_point: int) -> None:
    """Raise for codes below the zero point, as the source's Eval returns an error for them."""
    if x.size and int(x.min()) < zero_point:
        where = int(np.argmin(x))
        raise UndefinedResultError(
            function, f"defined for x >= 0 only (code {x.reshape(-1)[where]} at element {where})"
        )


Function = Callable[[Array], Array]


def from_bfloat16(bits: Array) -> Array:
    """Return bfloat16, given as its bits, as float32: exact."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bfloat16(x: Array) -> Array:
    """Return float32 as the bits of bfloat16, half to even; NaN is made quiet and keeps its sign."""
    bits = np.asarray(x, np.float32, order="C").view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = ((bits >> np.uint32(16)) & np.uint32(0x8000)) | np.uint32(0x7FC0)
    return np.where(np.isnan(x), quiet, rounded).astype(np.uint16)


def narrow_floats(
    op: str, function: Function, versions: tuple[int, int], exactness: Exactness = SAME_LIBM
) -> tuple[Kernel, ...]:
    """Return the kernels of a float32 function on float32, float16 and bfloat16."""

    def half(x: Array) -> Array:
        return function(x.astype(np.float32)).astype(np.float16)

    def brain(bits: Array) -> Array:
        return to_bfloat16(function(from_bfloat16(bits)))

    forms = {"float32": function, "float16": half, "bfloat16": brain}
    return tuple(
        Kernel(op, f"{t} -> {t}", prepare_function(form), versions, exactness=exactness) for t, form in forms.items()
    )


UNCLAIMED = close("computed by Eigen or vector code, in an order and with functions of its own")


def unclaimed_floats(rows: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Return the rows with float results, not claimed."""
    return tuple(row for row in promising(UNCLAIMED, rows) if row.signature.is_float)


def beside_dense(rows: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Return the rows except those whose operands are dense floats, which are reproduced."""
    start = TensorType.FLOAT32, TensorType.FLOAT32
    return tuple(row for row in rows if row.sparse or not row.signature.starts_with(*start))
