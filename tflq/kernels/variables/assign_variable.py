"""ASSIGN_VARIABLE: gives a variable a value, with its shape and type.

| operand | shape       | types           | quantization |
|---------|-------------|-----------------|--------------|
| handle  | one element | resource, int32 | none         |
| x       | any         | any             | dropped      |

Source: LiteRT 2.3, assign_variable.cc Eval; resource_variable.cc AssignFrom.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.families.resources import Variable, number_of, require_handle, resource
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Nothing but the handle is looked at."""
    require_handle(node, node.input(0))
    return Prepared((), node.input(1).type, eval_assign)


def eval_assign(type_: TensorType, session: Session, handle: Array, x: Array) -> tuple[Array, ...]:
    """No copy: arrays are never written to once they are made."""
    variable = resource(session, number_of(handle), Variable, Variable())
    variable.value, variable.type = x, type_
    return ()


KERNELS = (Kernel("ASSIGN_VARIABLE", "resource|int32 any ->", prepare, (1, 1), session=True),)
