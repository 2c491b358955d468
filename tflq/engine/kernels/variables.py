"""VAR_HANDLE: the handle of a variable, by name. ASSIGN_VARIABLE, READ_VARIABLE: set and read its value.

| operator        | operands                                        | output                                           |
|-----------------|-------------------------------------------------|--------------------------------------------------|
| VAR_HANDLE      |                                                 | handle: resource, any shape                      |
| ASSIGN_VARIABLE | handle: one element, resource or int32; x: any  |                                                  |
| READ_VARIABLE   | handle                                          | y: any type but string, the variable's           |
|                 |                                                 | quantization; the file's shape, the variable's   |
|                 |                                                 | if that is a scalar                              |

VAR_HANDLE: options container, shared_name; equal names mean the same variable in every subgraph. ASSIGN_VARIABLE sets
shape and type, too, and drops the quantization.
READ_VARIABLE: an output whose shape the file gives takes the variable's bytes, regardless of its shape. LiteRT reads
beyond a variable that has fewer bytes, and crashes on strings; both are refused. Without a value, or with one of
another type, the run fails.
Source: LiteRT 2.3, var_handle.cc Init, Eval; assign_variable.cc Eval; resource_variable.cc AssignFrom; read_variable.cc
Prepare, Eval.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.families.resources import (
    OnVariable,
    Variable,
    eval_handle,
    number_of,
    require_handle,
    resource,
)
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Session, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


def prepare_handle(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Number variables in the order of their first handles in the file."""
    name = str(node.options.get("container") or ""), str(node.options.get("shared_name") or "")
    shape = node.outputs[0].shape
    handle = np.full(shape, node.around().handle(*name), object)
    return Prepared((shape,), handle, eval_handle)


def prepare_assign(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check the handle alone."""
    require_handle(node, node.input(0))
    return Prepared((), node.input(1).type, ASSIGN)


def _assign(type_: TensorType, session: Session, handle: Array, x: Array) -> tuple[Array, ...]:
    """Assign without a copy: arrays are never written to after their creation."""
    variable = resource(session, number_of(handle), Variable, Variable())
    variable.value, variable.type = x, type_
    return ()


def _assign_quickly(type_: TensorType, variable: Variable, x: Array) -> bool:
    variable.value, variable.type = x.copy(), type_
    return True


ASSIGN = OnVariable(_assign, _assign_quickly)


@dataclass(frozen=True, slots=True)
class ReadData:
    """Shape and type of the output; `shape` is None if it is the variable's."""

    shape: Shape | None
    type: TensorType


def prepare_read(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take a scalar for a tensor without rank, as LiteRT does: they look alike."""
    require_handle(node, node.input(0))
    y = node.outputs[0]
    data = ReadData(y.shape or None, y.type)
    return Prepared((data.shape,), data, READ)


def _read(data: ReadData, session: Session, handle: Array) -> Array:
    """Copy, so that no reader of the result can change the variable. Source: read_variable.cc Eval."""
    variable = resource(session, number_of(handle), Variable)
    value = variable.value
    if value is None or variable.type is None:
        raise LookupError("the variable has no value yet")
    if variable.type != data.type:
        raise TypeError(f"the variable holds {variable.type.label}, not {data.type.label}")
    if value.dtype == object:
        raise UndefinedResultError("read_variable", "LiteRT copies strings as plain bytes, to memory that is not there")
    if data.shape is None or data.shape == value.shape:
        return value.copy()
    count = prod(data.shape)
    if count > value.size:
        raise UndefinedResultError("read_variable", f"{count} elements are read of a variable that has {value.size}")
    return value.reshape(-1)[:count].reshape(data.shape).copy()


def _read_quickly(data: ReadData, variable: Variable, y: Array) -> bool:
    value = variable.value
    if value is None or variable.type != data.type or value.shape != y.shape or value.dtype != y.dtype:
        return False
    np.copyto(y, value)
    return True


READ = OnVariable(_read, _read_quickly)


KERNELS = (
    Kernel("VAR_HANDLE", "-> resource", prepare_handle, (1, 1)),
    Kernel("ASSIGN_VARIABLE", "resource|int32 any ->", prepare_assign, (1, 1), session=True),
    Kernel("READ_VARIABLE", "resource|int32 -> any", prepare_read, (1, 1), session=True),
)
