"""IF: one of two subgraphs.

| operand   | shape       | types | quantization |
|-----------|-------------|-------|--------------|
| condition | one element | bool  | none         |
| x ...     | any         | any   | passed by    |
| y ...     | the branch's| any   | the branch's |

Options: then_subgraph_index, else_subgraph_index; both take x ... and give y ... .
Source: LiteRT 2.3, if.cc Prepare, Eval_static, Eval_dynamic.
"""

from __future__ import annotations

from tflq.kernels.families.subgraph_calls import Branches, prepare_branches, single_value, take
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session
from tflq.numerics.arithmetic import Arithmetic

_OPTIONS = ("then_subgraph_index", "else_subgraph_index")


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Both branches are bound to the inputs' shapes."""
    single_value(node, node.input(0))
    branches, shapes = prepare_branches(node, [int(node.options[option]) for option in _OPTIONS], 1)
    return Prepared(shapes, branches, eval_if)


def eval_if(data: Branches, session: Session, condition: Array, *values: Array) -> tuple[Array, ...]:
    """Source: if.cc Eval. Only the branch taken is run."""
    return take(data, session, 0 if condition.flat[0] else 1, values)


KERNELS = (Kernel("IF", "bool any* -> any*", prepare, (1, 1), session=True, calls=_OPTIONS),)
