"""CALL_ONCE: runs a subgraph without inputs and outputs, unless that has been done.

Options: init_subgraph_index. Once is once in an interpreter's life: allocations and resizes do not count.
Source: LiteRT 2.3, call_once.cc Prepare, Eval.
"""

from __future__ import annotations

from tflq.kernels.families.subgraph_calls import callee
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session
from tflq.numerics.arithmetic import Arithmetic

_OPTION = "init_subgraph_index"


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The subgraph must have neither inputs nor outputs."""
    subgraph = int(node.options[_OPTION])
    callee(node, subgraph, (), 0)
    return Prepared((), subgraph, eval_call_once)


def eval_call_once(subgraph: int, session: Session) -> tuple[Array, ...]:
    """Source: call_once.cc Eval."""
    key = ("CALL_ONCE", subgraph)
    if key not in session.resources:
        session.enter(subgraph)(())
        session.resources[key] = True
    return ()


KERNELS = (Kernel("CALL_ONCE", "->", prepare, (1, 1), session=True, calls=(_OPTION,)),)
