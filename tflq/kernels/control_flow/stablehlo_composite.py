"""STABLEHLO_COMPOSITE: a named operation, run by the subgraph that it is made of.

| operand | shape         | types | quantization |
|---------|---------------|-------|--------------|
| x ...   | any           | any   | passed by    |
| y ...   | the subgraph's| any   | the subgraph's |

Options: decomposition_subgraph_index. The name, the attributes and their version do not count.
Source: LiteRT 2.3, stablehlo_composite.cc Prepare, Eval.
"""

from __future__ import annotations

from tflq.kernels.families.subgraph_calls import prepare_call
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic

_OPTION = "decomposition_subgraph_index"


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """At least one input, as LiteRT wants it."""
    node.input(0)
    return prepare_call(node, int(node.options[_OPTION]))


KERNELS = (Kernel("STABLEHLO_COMPOSITE", "any* -> any*", prepare, (1, 1), session=True, calls=(_OPTION,)),)
