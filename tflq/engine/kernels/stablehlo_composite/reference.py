"""STABLEHLO_COMPOSITE: run the subgraph that decomposes an operator.

| operand | type              | quantization   |
|---------|-------------------|----------------|
| x ...   | any, at least one | any            |
| y ...   | the subgraph's    | the subgraph's |

Option decomposition_subgraph_index. The name, the attributes and their version do not count. XNNPACK computes one name
by itself: tflq/engine/kernels/stablehlo_composite/xnnpack.py.
Source: LiteRT 2.3 stablehlo_composite.cc.
"""

from __future__ import annotations

from tflq.engine.kernels.families.subgraph_calls import prepare_call
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic

DECOMPOSITION = "decomposition_subgraph_index"


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require at least one input, as LiteRT does."""
    node.input(0)
    return prepare_call(node, int(node.options[DECOMPOSITION]))


KERNELS = (Kernel("STABLEHLO_COMPOSITE", "any* -> any*", prepare, (1, 1), session=True, calls=(DECOMPOSITION,)),)
