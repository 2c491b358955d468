"""Element-wise operators of one input: the bodies that their kernel files share.

On 8-bit inputs such an operator is a function of 256 codes: it is evaluated once over all of them and looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.libm import Composed, FloatFunction
from tflq.engine.numerics.multiply_add import MultiplyAdd, round_apart
from tflq.engine.numerics.tables import (
    Transform,
    leaves_int32,
    look_up_8bit_into,
    look_up_16bit_into,
    table_8bit,
    table_16bit,
)
from tflq.errors import UndefinedResultError
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


def check_zero_points(node: Node) -> None:
    """Refuse an input or output whose zero point is not 0."""
    for operand in (node.input(0), node.outputs[0]):
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)


def prepare_function(function: Callable[[Array], Array]) -> Callable[[Node, Arithmetic], Prepared]:
    """Return a prepare for a function of the input's own type, without constants."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, _ = same_type(node)
        return Prepared((x.shape,), function, evaluate)

    evaluate: Callable[..., Any] = eval_ufunc if isinstance(function, np.ufunc) else eval_function
    if isinstance(function, FloatFunction | Composed):
        evaluate = eval_loop
    return prepare


class Looped(Protocol):
    """A function of float32 arrays that has a compiled loop."""

    def into(self, x: Array, out: Array) -> Call:
        """Return the call that fills `out` with the function of `x`, both 1-D."""
        ...


@filling(lambda function, x: (x.shape, x.dtype), once=lambda function, x: function(x))
def eval_loop(function: Looped, out: Array, x: Array) -> Call:
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
