"""Operators that XNNPACK fuses, and tensors that it unpacks, before it runs a graph.

Tensors that XNNPACK's delegate unpacks when it is applied, so that no run writes them.

The delegate computes DEQUANTIZE of a float16 or int8 constant, and DENSIFY of a sparse one, once, into memory of its
own. The tensor in the file then is uninitialized memory, even as an output of the graph. If an operator that the
delegate does not take reads the tensor, the interpreter runs the operator instead, and the tensor is written.
Source: LiteRT 2.3 xnnpack_delegate.cc Delegate::PrepareOpsToDelegate, Subgraph::Create; tflite-runtime 2.14 alike.

Operators of a file that XNNPACK computes in one go, with other bits than alone.

*Sums of squares*: a sum that reads nothing but a square of floats may compute both. Source: XNNPACK subgraph.c
optimize_common_subgraphs_mul_to_sqr, optimize_common_subgraphs_reduce_sum_to_square. Such a sum is in the delegate's
same partition.

*Matrices of codes*: a product of floats and a matrix that the file dequantizes first reads the codes instead if
DEQUANTIZE has one scale and a zero point of 0, and nothing else reads its result. Source: XNNPACK subgraph.c
rewrite_dequant_bmm_at, in LiteRT 2.3; 2.1.0 does not have it, 2.1.6 does.

*Chains*: XNNPACK joins operators that depend on one varying operand, from 8-bit codes to 8-bit codes, into a table of
256 codes. It fills the table with the operators' own kernels, so that codes do not change, with one exception: MUL of a
tensor by itself is a product there, not a square (tflq/engine/kernels/mul_xnnpack.py). A tensor that the graph gives
out, or that several operators read, ends a chain. Source: XNNPACK subgraph.c
xnn_subgraph_fuse_unary_quantized_into_lut, run_subgraph_to_make_lut, in LiteRT 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TypeAlias

from tflq.engine.interpreter.binding import node_of, operand_of
from tflq.engine.kernels import delegation
from tflq.engine.kernels.delegation import UNPACKING, VISITED, does_take, is_taken, unpacks
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import Kernel, Node, Operand
from tflq.engine.kernels.table import Rows
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
    return _answer(is_taken, graph, op, operands, profile) is False


def is_delegated(graph: GraphView, op: OperatorView, operands: dict[int, Operand], profile: Profile) -> bool:
    """Return whether XNNPACK takes an operator, in the file's shapes; False also if it cannot be read."""
    rule = partial(delegation.is_delegated, runtime=profile.runtime)
    return _answer(rule, graph, op, operands, profile) is True


def _answer(
    rule: Callable[[Node, Rows], bool | None],
    graph: GraphView,
    op: OperatorView,
    operands: dict[int, Operand],
    profile: Profile,
) -> bool | None:
    """Return the answer of a rule on an operator; None if the rule asks for more than the file has."""
    node = _node(graph, op, operands)
    try:
        return None if node is None else rule(node, profile.kernels.get(op.name, ()))
    except TflqError:
        return None


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


_SINCE_2_1 = xnnpack("litert-2.1")
_CODES = (TensorType.INT8, TensorType.UINT8)


@dataclass(frozen=True, slots=True, eq=False)
class Fusions:
    """The fusions of a graph under a profile, by the index of the operator that computes the others' results, too."""

    squares: Mapping[int, tuple[int, ...]]  # operators whose squares it may sum in one go
    codes: Mapping[int, int]  # the tensor of codes that it may multiply by
    chains: Mapping[int, tuple[int, ...]]  # operators before a square of codes in its chain
    instead: Mapping[int, int]  # the tensor that it may read in place of an operand: what is squared, or codes
    together: Mapping[int, tuple[int, ...]]  # operators before it with which the profile computes it in one go


def fusions(graph: GraphView, profile: Profile) -> Fusions:
    """Return the fusions of a graph under a profile; all are empty under most profiles."""
    squares = _squares(graph, profile)
    codes = _matrices(graph, profile)
    chains = _chained(graph, profile)
    squared = {index: graph.op(others[-1]).inputs[0] for index, others in squares.items()}
    together: dict[int, tuple[int, ...]] = {}
    if profile.runtime.resolver == XNNPACK:
        for index in sorted({*squares, *codes, *chains}):
            makers = (graph.maker(graph.op(index).inputs[1]),) if index in codes else ()
            others = tuple(maker.index for maker in makers if maker is not None)
            together[index] = (*squares.get(index, ()), *others, *chains.get(index, ()))
    return Fusions(squares, codes, chains, {**squared, **codes}, {i: found for i, found in together.items() if found})


def reading_instead(node: Node, kernel: Kernel, instead: Operand) -> Node:
    """Return the node that reads what is squared, or codes; the node itself if the kernel leaves that to others."""
    constant = all(node.input(position).is_constant for position in kernel.shape_operands)
    if kernel.sums_squares and constant and (kernel.takes is None or kernel.takes(node)):
        node = replace(node.with_input(0, instead), is_of_squares=True)
    if kernel.reads_codes and kernel.takes is not None and does_take(kernel, node):
        node = replace(node.with_input(1, instead), is_of_codes=True)
    return node


# --- sums of squares ------------------------------------------------------------------------------------------------


def _squares(graph: GraphView, profile: Profile) -> dict[int, tuple[int, ...]]:
    made: dict[int, tuple[int, ...]] = {}
    for op in graph.ops:
        if _is_square_of_floats(graph, op):
            made[op.outputs[0]] = (*made.get(op.outputs[0], ()), op.index)
    sums = (op for op in graph.ops if op.inputs and op.inputs[0] in made)
    return {
        op.index: made[op.inputs[0]] for op in sums if any(row.sums_squares for row in profile.kernels.get(op.name, ()))
    }


def _is_square_of_floats(graph: GraphView, op: OperatorView) -> bool:
    """Return whether an operator multiplies a float32 tensor by itself, without an activation."""
    if op.name not in ("MUL", "SQUARE") or len(op.outputs) != 1 or len(set(op.inputs)) != 1 or min(op.inputs) < 0:
        return False
    has_function = op.options is not None and int(op.options.get("fused_activation_function", 0)) > 0
    return not has_function and graph.tensor(op.inputs[0]).type == TensorType.FLOAT32


# --- matrices of codes ----------------------------------------------------------------------------------------------


def _matrices(graph: GraphView, profile: Profile) -> dict[int, int]:
    if not _SINCE_2_1.holds(profile.runtime):
        return {}
    products = [op for op in graph.ops if op.name == "BATCH_MATMUL" and len(op.inputs) == 2]
    found = {op.index: _codes(graph, op, profile) for op in products}
    return {index: codes for index, codes in found.items() if codes is not None}


def _codes(graph: GraphView, op: OperatorView, profile: Profile) -> int | None:
    """Return the codes of an operator's second matrix; None if it reads floats."""
    matrix = op.inputs[1]
    maker = graph.maker(matrix)
    if maker is None or maker.name != "DEQUANTIZE" or len(maker.inputs) != 1:
        return None
    if len(graph.readers(matrix)) != 1 or op.inputs[0] == matrix or matrix in graph.outputs:
        return None
    codes = graph.tensors[maker.inputs[0]]
    is_narrow = codes.type == TensorType.INT8 and codes.quantization is not None
    if not is_narrow or codes.quantization is None or not len(codes.quantization.zero_point):
        return None
    if int(codes.quantization.zero_point[0]) or graph.data(maker.inputs[0]) is not None:
        return None
    return None if is_left(graph, maker, {}, profile) else maker.inputs[0]


# --- chains ---------------------------------------------------------------------------------------------------------

#: Operators of one operand, and of two, that can be part of a chain. Source: VisitUnaryNode, VisitBinaryNode.
_BINARY = frozenset(("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "PRELU", "SQUARED_DIFFERENCE", "SUB"))
_UNARY = VISITED & frozenset(op for op, fact in OPERATORS.items() if fact.pointwise or op == "ROUND") - _BINARY
#: Those that XNNPACK has for codes; of these ELU for int8 alone.
_OF_CODES = frozenset(("ADD", "DEQUANTIZE", "ELU", "LEAKY_RELU", "LOGISTIC", "MUL", "QUANTIZE", "SUB", "TANH"))
#: The largest number of nodes of a chain. Source: XNN_MAX_UNARY_FUSION_NODES.
_MOST = 10
#: A tensor by its index, or what an operator computes before its activation, by the index and True.
_Value: TypeAlias = "tuple[int, bool]"


@dataclass(frozen=True, slots=True)
class _ChainNode:
    """A node of XNNPACK: operator `index`, or its activation."""

    index: int
    inputs: tuple[_Value, ...]
    output: _Value


def _chained(graph: GraphView, profile: Profile) -> Mapping[int, tuple[int, ...]]:
    """Return, by the index of a square of codes in a chain, the operators before it there."""
    if not _SINCE_2_1.holds(profile.runtime) or not any(_is_square(graph, op) for op in graph.ops):
        return {}
    found: dict[int, tuple[int, ...]] = {}
    for chain in _chains(graph, list(_nodes(graph, profile))):
        for position, node in enumerate(chain):
            if _is_square(graph, graph.op(node.index)) and len(node.inputs) == 2:
                found[node.index] = tuple(dict.fromkeys(other.index for other in chain[:position]))
    return found


def _nodes(graph: GraphView, profile: Profile) -> Iterator[_ChainNode]:
    """Yield the operators that can be part of a chain, and their activations."""
    operands: dict[int, Operand] = {}
    for op in graph.ops:
        if op.name not in _UNARY | _BINARY or len(op.outputs) != 1 or min(op.inputs) < 0:
            continue
        if not _has_kernel(graph, op) or is_left(graph, op, operands, profile):
            continue
        inputs, clamps = tuple((t, False) for t in op.inputs), op.name in _BINARY and _has_activation(op)
        yield _ChainNode(op.index, inputs, (op.outputs[0], clamps))
        if clamps:
            yield _ChainNode(op.index, ((op.outputs[0], True),), (op.outputs[0], False))


def _chains(graph: GraphView, nodes: list[_ChainNode]) -> Iterator[list[_ChainNode]]:
    """Yield the chains, of two nodes or more, each from codes to codes."""
    readers: dict[_Value, list[_ChainNode]] = {}
    for node in nodes:
        for value in dict.fromkeys(node.inputs):
            readers.setdefault(value, []).append(node)
    fused: set[_ChainNode] = set()
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


def _varying(graph: GraphView, node: _ChainNode, values: Collection[_Value]) -> _Value | None:
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
