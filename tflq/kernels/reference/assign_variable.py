"""ASSIGN_VARIABLE: gives a variable a value, with its shape and type.

| operand | shape       | types           | quantization |
|---------|-------------|-----------------|--------------|
| handle  | one element | resource, int32 | none         |
| x       | any         | any             | dropped      |

Source: LiteRT 2.3, assign_variable.cc Eval; resource_variable.cc AssignFrom.
"""

from __future__ import annotations

from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session
from tflq.kernels.resources import Variable, number_of, require_handle, resource
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Nothing but the handle is looked at."""
    require_handle(node, node.input(0))
    node.input(1)
    return Prepared((), None, eval_assign)


def eval_assign(data: None, session: Session, handle: Array, x: Array) -> tuple[Array, ...]:
    """No copy: arrays are never written to once they are made."""
    resource(session, number_of(handle), Variable, Variable()).value = x
    return ()


KERNELS = (Kernel("ASSIGN_VARIABLE", "resource|int32 any ->", prepare, (1, 1), session=True),)
