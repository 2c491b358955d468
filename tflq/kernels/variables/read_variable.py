"""READ_VARIABLE: the value of a variable.

| operand | shape                                                            | types           | quantization |
|---------|------------------------------------------------------------------|-----------------|--------------|
| handle  | one element                                                      | resource, int32 | none         |
| y       | as the file has it; where that is a scalar, as the variable's    | any but string  | its own      |

An output whose shape the file gives takes the variable's bytes, whatever its shape is; LiteRT reads beyond a variable
that has fewer, which is refused, and crashes on strings, which are refused too. Without a value, or with one of another
type, the run fails.
Source: LiteRT 2.3, read_variable.cc Prepare, Eval.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tflq.errors import UndefinedResultError
from tflq.ir import TensorType
from tflq.kernels.families.resources import Variable, number_of, require_handle, resource
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session, Shape
from tflq.numerics.arithmetic import Arithmetic


@dataclass(frozen=True, slots=True)
class OpData:
    """What the output must be; `shape` is None where it is the variable's."""

    shape: Shape | None
    type: TensorType


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """A scalar and a tensor without rank look alike, so LiteRT takes both for the latter."""
    require_handle(node, node.input(0))
    y = node.outputs[0]
    data = OpData(y.shape or None, y.type)
    return Prepared((data.shape,), data, eval_read)


def eval_read(data: OpData, session: Session, handle: Array) -> Array:
    """Source: read_variable.cc Eval."""
    variable = resource(session, number_of(handle), Variable)
    value = variable.value
    if value is None or variable.type is None:
        raise LookupError("the variable has no value yet")
    if variable.type != data.type:
        raise TypeError(f"the variable holds {variable.type.label}, not {data.type.label}")
    if value.dtype == object:
        raise UndefinedResultError("read_variable", "LiteRT copies strings as plain bytes, to memory that is not there")
    if data.shape is None or data.shape == value.shape:
        return value
    count = prod(data.shape)
    if count > value.size:
        raise UndefinedResultError("read_variable", f"{count} elements are read of a variable that has {value.size}")
    return value.reshape(-1)[:count].reshape(data.shape)


KERNELS = (Kernel("READ_VARIABLE", "resource|int32 -> any", prepare, (1, 1), session=True),)
