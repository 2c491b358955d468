"""CALL_ONCE, IF, WHILE, STABLEHLO_CASE: operators that run subgraphs.

| operator            | operands                              | outputs                                       |
|---------------------|---------------------------------------|-----------------------------------------------|
| CALL_ONCE           |                                       |                                               |
| IF                  | condition: one bool; x ...: any       | y ...: the branch's                           |
| WHILE               | x ...: any                            | y ...: as the body makes them, x if it never  |
|                     |                                       | runs; the body's quantization                 |
| STABLEHLO_CASE      | index: one int32; x ...: any          | y ...: the branch's                           |

CALL_ONCE: option init_subgraph_index. It runs once in an interpreter's life: allocations and resizes do not count.
IF: options then_subgraph_index, else_subgraph_index; both take x ... and give y ... .
WHILE: options cond_subgraph_index (x ... -> one bool), body_subgraph_index (x ... -> as many, of the same types). The
declared type of an output must be the body's: LiteRT puts the body's in its place, which is refused here. A body that
hands inputs on in another order meets a fault of LiteRT: its outputs are copied one after the other over the loop's
values, which are its inputs, so that a later output may be what an earlier one has just overwritten.
STABLEHLO_CASE: option branch_subgraph_indices; an index outside of them takes the last. LiteRT overwrites the
quantization of the branches' inputs and outputs with the caller's: branches that have another are refused. BUILTIN_REF
lacks it: the kernel is that of the full resolver.
Source: LiteRT 2.3, call_once.cc; if.cc Prepare, Eval_static, Eval_dynamic; while.cc Prepare_impl, Eval_static,
Eval_dynamic; stablehlo_case.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.subgraph_calls import (
    Branches,
    callee,
    eval_call_once,
    prepare_branches,
    present,
    single_value,
    take,
)
from tflq.engine.kernels.kernel import Callee, Kernel, Node, Prepared, Session, Shape
from tflq.engine.kernels.operands import integers_option, require_same_quantization, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array

_ONCE = "init_subgraph_index"


def prepare_call_once(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require a subgraph without inputs and outputs."""
    subgraph = int(node.options[_ONCE])
    callee(node, subgraph, (), 0)
    return Prepared((), subgraph, eval_call_once)


_IF = ("then_subgraph_index", "else_subgraph_index")


def prepare_if(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Bind both branches to the inputs' shapes."""
    single_value(node, node.input(0))
    branches, shapes = prepare_branches(node, [int(node.options[option]) for option in _IF], 1)
    return Prepared(shapes, branches, eval_if)


def eval_if(data: Branches, session: Session, condition: Array, *values: Array) -> tuple[Array, ...]:
    """Source: if.cc Eval. Only the branch taken is run."""
    return take(data, session, 0 if condition.flat[0] else 1, values)


_WHILE = ("cond_subgraph_index", "body_subgraph_index")


@dataclass(frozen=True, slots=True, eq=False)
class WhileData:
    """`forwarded[i]` is the input that output i of the body is, or -1. `fixed` holds (shape inside the loop, shape
    outside) of each value, or is empty where shapes may change from round to round.
    """

    cond: int
    body: int
    forwarded: tuple[int, ...]
    fixed: tuple[tuple[Shape, Shape], ...]


def prepare_while(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Fix shapes if the body keeps them; a scalar and a vector of one element are alike."""
    arguments = present(node)
    cond_index, body_index = (int(node.options[option]) for option in _WHILE)
    node.check(cond_index != body_index, "condition and body are the same subgraph", got=cond_index)
    cond = callee(node, cond_index, arguments, 1)
    node.check(cond.outputs[0].type == TensorType.BOOL, "element type", cond.outputs[0], expected="bool")
    node.check(cond.shapes[0] in (None, (), (1,)), "shape of the condition", expected="one bool", got=cond.shapes[0])
    body = callee(node, body_index, arguments, len(arguments))
    for value, result in zip(arguments, body.outputs, strict=True):
        node.check(value.type == result.type, "element type", result, expected=value.type.label, got=result.type.label)
    node.check(len(node.outputs) == len(arguments), "number of outputs", expected=len(arguments), got=len(node.outputs))
    for y, result in zip(node.outputs, body.outputs, strict=True):
        require_same_type(node, result, y)
    fixed = _fix(node, body)
    data = WhileData(cond_index, body_index, _forward(body), fixed)
    shapes = tuple(outside for _, outside in fixed) if fixed else (None,) * len(arguments)
    return Prepared(shapes, data, eval_while)


def _fix(node: Node, body: Callee) -> tuple[tuple[Shape, Shape], ...]:
    pairs = []
    for operand, computed in zip(body.inputs, body.shapes, strict=True):
        declared = operand.shape
        if computed is None or (declared != computed and sum(declared[:1]) + sum(computed[:1]) != 1):
            return ()
        node.check(
            np.prod(declared) == np.prod(computed), "number of elements", operand, expected=declared, got=computed
        )
        pairs.append((declared, computed))
    return tuple(pairs)


def _forward(body: Callee) -> tuple[int, ...]:
    position = {operand.index: i for i, operand in enumerate(body.inputs)}
    return tuple(position.get(operand.index, -1) for operand in body.outputs)


def eval_while(data: WhileData, session: Session, *values: Array) -> tuple[Array, ...]:
    """Source: Eval_static and Eval_dynamic. The condition sees the body's own outputs."""
    cond, body = session.enter(data.cond), session.enter(data.body)
    carried, tested = values, values
    while _holds(cond(tested)[0]):
        tested = body(carried)
        if data.fixed:
            tested = tuple(x.reshape(inside) for x, (inside, _) in zip(tested, data.fixed, strict=True))
        carried = _copy_in_turn(data, carried, tested)
    if data.fixed:
        return tuple(x.reshape(outside) for x, (_, outside) in zip(carried, data.fixed, strict=True))
    return carried


def _holds(condition: Array) -> bool:
    if condition.shape not in ((), (1,)):
        raise UndefinedResultError("while", f"the condition has shape {list(condition.shape)}, not one element")
    return bool(condition.flat[0])


def _copy_in_turn(data: WhileData, carried: tuple[Array, ...], results: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the loop's values: an output that is an input has the value that lies there at its turn."""
    result = list(results)
    for i, source in enumerate(data.forwarded):
        if source >= 0 and carried[source].shape != results[source].shape:
            raise UndefinedResultError("while", f"output {i} is an input whose memory is given back before it is read")
        if 0 <= source < i:
            result[i] = result[source]
    return tuple(result)


def prepare_case(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Bind all branches to the inputs' shapes."""
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
    Kernel("CALL_ONCE", "->", prepare_call_once, (1, 1), session=True, calls=(_ONCE,)),
    Kernel("IF", "bool any* -> any*", prepare_if, (1, 1), session=True, calls=_IF),
    Kernel("WHILE", "any* -> any*", prepare_while, (1, 1), session=True, calls=_WHILE),
    Kernel(
        "STABLEHLO_CASE", "int32 any* -> any*", prepare_case, (1, 1), session=True, calls=("branch_subgraph_indices",)
    ),
)
