"""Tensors that XNNPACK's delegate unpacks when it is applied, so that no run writes them.

The delegate computes DEQUANTIZE of a float16 or int8 constant, and DENSIFY of a sparse one, once, into memory of its
own. The tensor in the file then is uninitialized memory, even as an output of the graph. If an operator that the
delegate does not take reads the tensor, the interpreter runs the operator instead, and the tensor is written.
Source: LiteRT 2.3 xnnpack_delegate.cc Delegate::PrepareOpsToDelegate, Subgraph::Create; tflite-runtime 2.14 alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tflq.engine.interpreter.operands import node_of, operand_of
from tflq.engine.kernels.delegation import UNPACKING, VISITED, is_taken, unpacks
from tflq.engine.kernels.kernel import Node, Operand
from tflq.engine.kernels.validity import XNNPACK, xnnpack
from tflq.engine.profiles import Profile
from tflq.errors import TflqError, UnsupportedError
from tflq.model.ir import GraphView, OperatorView, TensorType

#: Operators whose filters and biases may stay float16. Source: LiteRT 2.1 Delegate::PrepareOpsToDelegate.
_KEEPING = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"))
#: Releases that let them.
_KEPT = xnnpack("litert-1.4")
#: Releases that cannot be set up with an unpacked output of any type that nothing reads; later ones only of float16.
_UNREAD = xnnpack(until="litert-2.1")


def constant_results(graph: GraphView) -> frozenset[int]:
    """Return the results that operators which the delegate knows compute from constants alone."""
    found: set[int] = set()
    for op in graph.ops:
        inputs = [t for t in op.inputs if t >= 0]
        is_known = op.name in VISITED or op.name in UNPACKING
        if is_known and inputs and all(t in found or _is_constant(graph, t) for t in inputs):
            found |= {t for t in op.outputs if t >= 0}
    return frozenset(found)


def makers_of(graph: GraphView, tensors: Iterable[int]) -> tuple[int, ...]:
    """Return the operators that unpack these tensors from constants, in execution order."""
    found: set[int] = set()
    pending = list(tensors)
    while pending:
        maker = graph.maker(pending.pop())
        if maker is not None and maker.name in UNPACKING and maker.index not in found:
            found.add(maker.index)
            pending += maker.inputs
    return tuple(sorted(found))


def unpack_tensors(graph: GraphView, profile: Profile) -> frozenset[int]:
    """Return the tensors that no run writes under a profile with XNNPACK; none under others.

    A tensor whose readers XNNPACK may or may not take is among them: its values show whether it was written.
    """
    operands: dict[int, Operand] = {}
    unpacked = unpackable_tensors(graph, profile, operands)
    return frozenset(t for t in unpacked if not any(_runs(graph, op, operands, profile) for op in graph.readers(t)))


def unwritten_outputs(graph: GraphView, profile: Profile) -> frozenset[int]:
    """Return the graph's outputs that no run writes under a profile.

    Raises:
        UnsupportedError: One of them is not read, either, so that XNNPACK cannot be set up. Source: LiteRT 1.0 to 2.3.
            An operator alone is taken as a part of a model that reads it.
    """
    outputs = unpack_tensors(graph, profile) & {*graph.outputs}
    for tensor in sorted(outputs) if len(graph.ops) > 1 else ():
        maker = graph.maker(tensor)
        is_half = maker is not None and graph.tensors[maker.inputs[0]].type == TensorType.FLOAT16
        if maker is not None and not graph.readers(tensor) and (is_half or _UNREAD.holds(profile.runtime)):
            reason = "XNNPACK cannot be set up where an output unpacks a constant that no operator reads"
            raise UnsupportedError(maker.name, reason=reason, profile=profile.name, index=maker.index)
    return outputs


def readers_left(graph: GraphView, profile: Profile) -> frozenset[int]:
    """Return the operators which read such tensors, and which XNNPACK certainly leaves to the interpreter."""
    operands: dict[int, Operand] = {}
    unpacked = unpackable_tensors(graph, profile, operands)
    readers = {op.index: op for t in unpacked for op in graph.readers(t)}
    return frozenset(i for i, op in readers.items() if _runs(graph, op, operands, profile))


def unpackable_tensors(
    graph: GraphView, profile: Profile, operands: dict[int, Operand] | None = None
) -> frozenset[int]:
    """Return the tensors that operators of XNNPACK read as constants under a profile, written or not.

    `operands` gets the operands of the operators that make them.
    """
    if profile.runtime.resolver != XNNPACK or profile.runtime.library:
        return frozenset()
    known: dict[int, Operand] = {} if operands is None else operands
    ops = (op for op in graph.ops if op.name in UNPACKING)
    return frozenset(t for op in ops for t in _unpack(graph, op, known, profile))


def _unpack(graph: GraphView, op: OperatorView, operands: dict[int, Operand], profile: Profile) -> Iterator[int]:
    """Yield the result of an operator that unpacks a constant; `operands` gets its operands."""
    if op.name not in UNPACKING or len(op.outputs) != 1 or len(op.inputs) != 1:
        return
    node = _node(graph, op, operands)
    if node is not None and unpacks(node):
        result = node.outputs[0]
        operands[result.index] = as_unpacked(graph, node, result, profile)
        yield result.index


def as_unpacked(graph: GraphView, node: Node, result: Operand, profile: Profile) -> Operand:
    """Return the result of an operator that unpacks a constant, as the delegate knows it."""
    is_float16 = node.input(0).type == TensorType.FLOAT16 and _KEPT.holds(profile.runtime)
    only = all(op.name in _KEEPING and result.index != op.inputs[0] for op in graph.readers(result.index))
    return replace(result, is_unpacked=True, is_half=is_float16 and only)


def _runs(graph: GraphView, op: OperatorView, operands: dict[int, Operand], profile: Profile) -> bool:
    """Return whether the interpreter certainly runs an operator that reads an unpacked tensor."""
    return op.name not in UNPACKING and is_left(graph, op, operands, profile)


def is_left(graph: GraphView, op: OperatorView, operands: dict[int, Operand], profile: Profile) -> bool:
    """Return whether XNNPACK certainly leaves an operator to the interpreter; `operands` gets its operands."""
    if op.name not in VISITED:
        return True
    node = _node(graph, op, operands)
    try:
        return node is not None and is_taken(node, profile.kernels.get(op.name, ())) is False
    except TflqError:
        return False  # the rule asks for more than the file has


def _node(graph: GraphView, op: OperatorView, operands: dict[int, Operand]) -> Node | None:
    """Return the operator in the file's shapes; None if it cannot be read."""
    try:
        for t in (*op.inputs, *op.outputs):
            if t >= 0 and t not in operands:
                operands[t] = operand_of(graph, t, None, t in graph.last_writers)
        return node_of(operands, op, None, 0)
    except TflqError:
        return None


def _is_constant(graph: GraphView, tensor: int) -> bool:
    spec = graph.tensors[tensor]
    return tensor not in graph.inputs and not spec.is_variable and graph.data(tensor) is not None
