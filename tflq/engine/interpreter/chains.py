"""Squares of codes that XNNPACK fuses with the operators before them into one table.

XNNPACK joins operators that depend on one varying operand, from 8-bit codes to 8-bit codes, into a table of 256 codes.
It fills the table with the operators' own kernels, so that codes do not change, with one exception: MUL of a tensor by
itself is a product there, not a square (tflq/engine/kernels/mul/xnnpack.py). A tensor that the graph gives out, or that
several operators read, ends a chain.
Source: XNNPACK subgraph.c xnn_subgraph_fuse_unary_quantized_into_lut, run_subgraph_to_make_lut, in LiteRT 2.3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from tflq.engine.interpreter.matrices import matrices_of_codes
from tflq.engine.interpreter.squares import squaring
from tflq.engine.interpreter.unpacking import is_left
from tflq.engine.kernels.delegation import VISITED
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import Operand
from tflq.engine.kernels.validity import XNNPACK, xnnpack
from tflq.engine.profiles import Profile
from tflq.model.ir import GraphView, OperatorView, TensorType

#: Operators of one operand, and of two, that can be part of a chain. Source: VisitUnaryNode, VisitBinaryNode.
_BINARY = frozenset(("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "PRELU", "SQUARED_DIFFERENCE", "SUB"))
_UNARY = VISITED & frozenset(op for op, fact in OPERATORS.items() if fact.pointwise or op == "ROUND") - _BINARY
#: Those that XNNPACK has for codes; of these ELU for int8 alone.
_OF_CODES = frozenset(("ADD", "DEQUANTIZE", "ELU", "LEAKY_RELU", "LOGISTIC", "MUL", "QUANTIZE", "SUB", "TANH"))
_CODES = (TensorType.INT8, TensorType.UINT8)
#: The largest number of nodes of a chain. Source: XNN_MAX_UNARY_FUSION_NODES.
_MOST = 10
_FUSES = xnnpack("litert-2.1")
#: A tensor by its index, or what an operator computes before its activation, by the index and True.
_Value: TypeAlias = "tuple[int, bool]"


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of XNNPACK: operator `index`, or its activation."""

    index: int
    inputs: tuple[_Value, ...]
    output: _Value


def products(graph: GraphView, profile: Profile) -> frozenset[int]:
    """Return the operators that multiply a tensor of codes by itself inside a chain."""
    return frozenset(_chain(graph, profile))


def together(graph: GraphView, profile: Profile) -> dict[int, tuple[int, ...]]:
    """Return, by operator, those before it with which a profile computes it in one go, with other bits than alone."""
    if profile.runtime.resolver != XNNPACK:
        return {}
    chained = _chain(graph, profile)
    codes = matrices_of_codes(graph, profile)
    found = {
        op.index: (
            *squaring(graph, op.index, profile),
            *((_maker(graph, op.inputs[1]),) if op.index in codes else ()),
            *chained.get(op.index, ()),
        )
        for op in graph.ops
    }
    return {index: others for index, others in found.items() if others}


def _maker(graph: GraphView, tensor: int) -> int:
    maker = graph.maker(tensor)
    assert maker is not None  # matrices_of_codes saw to it
    return maker.index


def _chain(graph: GraphView, profile: Profile) -> Mapping[int, tuple[int, ...]]:
    """Return, by the index of a square of codes in a chain, the operators before it there."""
    if not _FUSES.holds(profile.runtime) or not any(_is_square(graph, op) for op in graph.ops):
        return {}
    found: dict[int, tuple[int, ...]] = {}
    for chain in _chains(graph, list(_nodes(graph, profile))):
        for position, node in enumerate(chain):
            if _is_square(graph, graph.op(node.index)) and len(node.inputs) == 2:
                found[node.index] = tuple(dict.fromkeys(other.index for other in chain[:position]))
    return found


def _nodes(graph: GraphView, profile: Profile) -> Iterator[_Node]:
    """Yield the operators that can be part of a chain, and their activations."""
    operands: dict[int, Operand] = {}
    for op in graph.ops:
        if op.name not in _UNARY | _BINARY or len(op.outputs) != 1 or min(op.inputs) < 0:
            continue
        if not _has_kernel(graph, op) or is_left(graph, op, operands, profile):
            continue
        inputs, clamps = tuple((t, False) for t in op.inputs), op.name in _BINARY and _has_activation(op)
        yield _Node(op.index, inputs, (op.outputs[0], clamps))
        if clamps:
            yield _Node(op.index, ((op.outputs[0], True),), (op.outputs[0], False))


def _chains(graph: GraphView, nodes: list[_Node]) -> Iterator[list[_Node]]:
    """Yield the chains, of two nodes or more, each from codes to codes."""
    readers: dict[_Value, list[_Node]] = {}
    for node in nodes:
        for value in dict.fromkeys(node.inputs):
            readers.setdefault(value, []).append(node)
    fused: set[_Node] = set()
    for first in nodes:
        start = _varying(graph, first, ())
        if first in fused or start is None or graph.tensors[start[0]].type not in _CODES:
            continue
        chain, values, node = [first], {*first.inputs, first.output}, first
        while len(chain) < _MOST and _is_inner(graph, node.output):
            following = readers.get(node.output, ())
            if len(following) != 1 or _varying(graph, following[0], values) is None:
                break
            (node,) = following
            chain.append(node)
            values |= {*node.inputs, node.output}
        while len(chain) > 1 and graph.tensors[chain[-1].output[0]].type not in _CODES:
            chain.pop()
        if len(chain) > 1:
            fused.update(chain)
            yield chain


def _varying(graph: GraphView, node: _Node, values: Collection[_Value]) -> _Value | None:
    """Return the operand on which a node depends, if it is one alone; `values` all depend on the same one."""
    if len(node.inputs) == 1:
        return node.inputs[0]
    one, other = node.inputs
    for varying, fixed in ((other, one), (one, other)):
        data = graph.data(fixed[0])
        if data is not None and prod(graph.tensors[fixed[0]].shape) == 1 and graph.data(varying[0]) is None:
            return varying
    return one if one in values and other in values else None


def _is_inner(graph: GraphView, value: _Value) -> bool:
    """Return whether one operator reads a value, and the graph does not give it out."""
    tensor, is_before_activation = value
    return is_before_activation or (len(graph.readers(tensor)) == 1 and tensor not in graph.outputs)


def _is_square(graph: GraphView, op: OperatorView) -> bool:
    """Return whether an operator multiplies a tensor of codes by itself."""
    if op.name != "MUL" or len(op.inputs) != 2 or op.inputs[0] != op.inputs[1] or op.inputs[0] < 0:
        return False
    return graph.tensors[op.inputs[0]].type in _CODES


def _has_kernel(graph: GraphView, op: OperatorView) -> bool:
    """Return whether XNNPACK has the operator for codes, if it reads or makes any."""
    types = {graph.tensors[t].type for t in (*op.inputs, *op.outputs) if t >= 0}
    if op.name == "ELU" and TensorType.UINT8 in types:
        return False
    return op.name in _OF_CODES or not types & set(_CODES)


def _has_activation(op: OperatorView) -> bool:
    """Return whether an operator has an activation, which XNNPACK makes a node of its own."""
    return op.options is not None and int(op.options.get("fused_activation_function", 0) or 0) > 0
