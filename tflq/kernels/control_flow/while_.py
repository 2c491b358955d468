"""WHILE: runs a subgraph on its own outputs for as long as another says so.

| operand | shape | types | quantization   |
|---------|-------|-------|----------------|
| x ...   | any   | any   | passed by      |
| y ...   | as the body makes them; x where it never runs | as x | the body's |

The declared type of an output must be the body's: LiteRT puts the body's in its place, which is refused here.
Options: cond_subgraph_index (x ... -> one bool), body_subgraph_index (x ... -> as many, of the same types).
A body that hands inputs on in another order meets a fault of LiteRT: its outputs are copied one after the other over
the loop's values, which are its inputs, so that a later output may be what an earlier one has just overwritten.
Source: LiteRT 2.3, while.cc Prepare_impl, Eval_static, Eval_dynamic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.ir import TensorType
from tflq.kernels.families.subgraph_calls import callee, present
from tflq.kernels.kernel import Array, Callee, Kernel, Node, Prepared, Session, Shape
from tflq.kernels.operands import require_same_type
from tflq.numerics.arithmetic import Arithmetic

_OPTIONS = ("cond_subgraph_index", "body_subgraph_index")


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """`forwarded[i]` is the input that output i of the body is, or -1. `fixed` holds (shape inside the loop, shape
    outside) of each value, or is empty where shapes may change from round to round.
    """

    cond: int
    body: int
    forwarded: tuple[int, ...]
    fixed: tuple[tuple[Shape, Shape], ...]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Shapes are fixed if the body gives them back as it got them; a scalar and a vector of one element are alike."""
    arguments = present(node)
    cond_index, body_index = (int(node.options[option]) for option in _OPTIONS)
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
    fixed = _fixed(node, body)
    data = OpData(cond_index, body_index, _forwarded(body), fixed)
    shapes = tuple(outside for _, outside in fixed) if fixed else (None,) * len(arguments)
    return Prepared(shapes, data, eval_while)


def _fixed(node: Node, body: Callee) -> tuple[tuple[Shape, Shape], ...]:
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


def _forwarded(body: Callee) -> tuple[int, ...]:
    position = {operand.index: i for i, operand in enumerate(body.inputs)}
    return tuple(position.get(operand.index, -1) for operand in body.outputs)


def eval_while(data: OpData, session: Session, *values: Array) -> tuple[Array, ...]:
    """Source: Eval_static and Eval_dynamic. The condition sees the body's outputs as they were made."""
    cond, body = session.enter(data.cond), session.enter(data.body)
    carried, tested = values, values
    while _holds(cond(tested)[0]):
        tested = body(carried)
        if data.fixed:
            tested = tuple(x.reshape(inside) for x, (inside, _) in zip(tested, data.fixed, strict=True))
        carried = _copied_in_turn(data, carried, tested)
    if data.fixed:
        return tuple(x.reshape(outside) for x, (_, outside) in zip(carried, data.fixed, strict=True))
    return carried


def _holds(condition: Array) -> bool:
    if condition.shape not in ((), (1,)):
        raise UndefinedResultError("while", f"the condition has shape {list(condition.shape)}, not one element")
    return bool(condition.flat[0])


def _copied_in_turn(data: OpData, carried: tuple[Array, ...], results: tuple[Array, ...]) -> tuple[Array, ...]:
    """The loop's values after the body: an output that is an input has what lies there when its turn comes."""
    result = list(results)
    for i, source in enumerate(data.forwarded):
        if source >= 0 and carried[source].shape != results[source].shape:
            raise UndefinedResultError("while", f"output {i} is an input whose memory is given back before it is read")
        if 0 <= source < i:
            result[i] = result[source]
    return tuple(result)


KERNELS = (Kernel("WHILE", "any* -> any*", prepare, (1, 1), session=True, calls=_OPTIONS),)
