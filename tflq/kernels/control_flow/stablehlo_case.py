"""STABLEHLO_CASE: one of several subgraphs.

| operand | shape       | types | quantization          |
|---------|-------------|-------|-----------------------|
| index   | one element | int32 | none                  |
| x ...   | any         | any   | as the branches' have |
| y ...   | the branch's| any   | as the branches' have |

Options: branch_subgraph_indices; an index outside of them takes the last. LiteRT overwrites the quantization of the
branches' inputs and outputs with the caller's: branches that have another are refused.
Not in BUILTIN_REF: the kernel is that of the full resolver.
Source: LiteRT 2.3, stablehlo_case.cc Prepare, Eval.
"""

from __future__ import annotations

from tflq.kernels.families.subgraph_calls import Branches, callee, prepare_branches, present, single_value, take
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Session
from tflq.kernels.operands import integers_option, require_same_quantization
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """All branches are bound to the inputs' shapes."""
    single_value(node, node.input(0))
    subgraphs = integers_option(node, "branch_subgraph_indices")
    node.check(len(subgraphs) > 0, "no branches")
    arguments = present(node, 1)
    for subgraph in subgraphs:
        branch = callee(node, subgraph, arguments, len(node.outputs))
        for inner, outer in zip((*branch.inputs, *branch.outputs), (*arguments, *node.outputs), strict=True):
            require_same_quantization(node, outer, inner)
    branches, shapes = prepare_branches(node, subgraphs, 1)
    return Prepared(shapes, branches, eval_case)


def eval_case(data: Branches, session: Session, index: Array, *values: Array) -> tuple[Array, ...]:
    """Source: stablehlo_case.cc Eval. Only the branch taken is run."""
    chosen = int(index.flat[0])
    last = len(data.subgraphs) - 1
    return take(data, session, chosen if 0 <= chosen <= last else last, values)


KERNELS = (
    Kernel("STABLEHLO_CASE", "int32 any* -> any*", prepare, (1, 1), session=True, calls=("branch_subgraph_indices",)),
)
