"""Sums of squares that a runtime computes in one go from what is squared, although the file has two operators.

Source: XNNPACK subgraph.c optimize_common_subgraphs_mul_to_sqr, optimize_common_subgraphs_reduce_sum_to_square. A sum
that reads nothing but a square is in the delegate's same partition.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.engine.kernels.kernel import Kernel, Node, Operand
from tflq.engine.profiles import Profile
from tflq.model.ir import GraphView, OperatorView, TensorType


def squared_tensors(graph: GraphView, profile: Profile) -> dict[int, int]:
    """Return, by operator that may sum squares in one go, the tensor that is squared."""
    squares = {op.outputs[0]: op.inputs[0] for op in graph.ops if is_square(graph, op)}
    return {
        op.index: squares[op.inputs[0]]
        for op in graph.ops
        if op.inputs and op.inputs[0] in squares and _sums_squares(op, profile)
    }


def squaring(graph: GraphView, index: int, profile: Profile) -> tuple[int, ...]:
    """Return the operator, if there is one, whose squares operator `index` may sum in one go."""
    if not _sums_squares(graph.op(index), profile):
        return ()
    read = graph.op(index).inputs[:1]
    return tuple(op.index for op in graph.ops if op.outputs == read and is_square(graph, op))


def is_square(graph: GraphView, op: OperatorView) -> bool:
    """Return whether an operator multiplies a float32 tensor by itself, without an activation."""
    if op.name not in ("MUL", "SQUARE") or len(op.outputs) != 1 or len(set(op.inputs)) != 1 or min(op.inputs) < 0:
        return False
    has_function = op.options is not None and int(op.options.get("fused_activation_function", 0)) > 0
    return not has_function and graph.tensor(op.inputs[0]).type == TensorType.FLOAT32


def _sums_squares(op: OperatorView, profile: Profile) -> bool:
    return any(row.sums_squares for row in profile.kernels.get(op.name, ()))


def of_squares(node: Node, kernel: Kernel, squared: Operand) -> Node:
    """Return the node that reads what is squared; the node itself if the kernel leaves the sum to another."""
    constant = all(node.input(position).is_constant for position in kernel.shape_operands)
    if not kernel.sums_squares or not constant or (kernel.takes is not None and not kernel.takes(node)):
        return node
    return replace(node, inputs=(squared, *node.inputs[1:]), is_of_squares=True)
