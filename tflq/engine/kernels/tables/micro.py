"""Operators of TensorFlow Lite Micro: those that its Python package registers, in the forms that its kernels take.

Its registrations have no versions, so that every version is taken. An operand with several scales is read as one with
the first of them where a kernel reads one.
Source: tflite-micro (October 2026), python_ops_resolver.cc; the type switches of its kernels; micro_allocator.cc
InitializeTfLiteTensorFromFlatbuffer; micro_interpreter_graph.cc CheckDynamicTensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, update_wrapper

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.families.activation import any_activation
from tflq.engine.kernels.families.legacy_scales import first_scale
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.signature import Signature, Slot
from tflq.engine.kernels.table import Rows
from tflq.engine.kernels.tables.micro_checks import CHECKS, check_constants, without_checks
from tflq.engine.kernels.tables.micro_forms import CONSTANT, FORMS
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import TensorType

Prepare = Callable[[Node, Arithmetic], Prepared]
#: The operators that it registers.
REGISTERED = frozenset(op for op, fact in OPERATORS.items() if fact.micro)
_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: Versions of an operator: all.
_VERSIONS = (0, 2**31 - 1)


def accept(row: Kernel) -> Kernel | None:
    """Return the row without uint8 where that is refused; None if nothing of it is left."""
    if row.op == "QUANTIZE":  # of other types, all of them among its own
        return None
    signature = row.signature
    words = OPERATORS[row.op].micro.split()
    if "-hybrid" in words and signature.is_float and signature.reads(*_CODES):
        return None
    first = signature.inputs[0].without(_refuse(words)) if signature.inputs else None
    if signature.inputs and first is None:
        return None
    left: Signature | None = signature if first is None else replace(signature, inputs=(first, *signature.inputs[1:]))
    if left is not None and "uint8" not in words:
        left = left.without(TensorType.UINT8)
    return None if left is None else row.taking(left)


def _refuse(words: list[str]) -> list[TensorType]:
    """Return the types of the first operand that the operator refuses when it runs."""
    return [TensorType[word[1:].upper()] for word in words if word.startswith("-") and word != "-hybrid"]


def of_forms(rows: Rows) -> Rows:
    """Return the rows in the forms that are taken, for every version, as its interpreter prepares them."""
    return tuple(prepared(replace(row, versions=_VERSIONS)) for row in _narrow(rows))


def _narrow(rows: Rows) -> Iterator[Kernel]:
    """Yield the rows with the types of every form of their operator; whole if all of its forms are taken."""
    for row in rows:
        forms = FORMS.get(row.op)
        if forms is None:
            yield row
            continue
        for form in map(Signature.parse, forms):
            left = narrow(row.signature, form)
            if left is not None:
                yield row.taking(left)


def narrow(signature: Signature, form: Signature) -> Signature | None:
    """Return the types of a signature that a form has, too; None if none are left. What is open in one is the other's.

    A repeated operand of the form covers all that follow.
    """
    inputs = _all(signature.inputs, form.inputs)
    outputs = _all(signature.outputs, form.outputs)
    return None if inputs is None or outputs is None else Signature(inputs, outputs)


def _all(slots: tuple[Slot, ...], limits: tuple[Slot, ...]) -> tuple[Slot, ...] | None:
    made = []
    for place, slot in enumerate(slots):
        if place >= len(limits) and not (limits and limits[-1].repeated):
            if not slot.optional:
                return None
            continue
        left = _both(slot, limits[min(place, len(limits) - 1)])
        if left is None:
            return None
        made.append(left)
    return tuple(made)


def _both(slot: Slot, limit: Slot) -> Slot | None:
    if limit.types is None:
        return slot
    if slot.types is None:
        return replace(slot, types=limit.types)
    types = tuple(type_ for type_ in slot.types if type_ in limit.types)
    return replace(slot, types=types) if types else None


def prepared(row: Kernel) -> Kernel:
    """Return the row, prepared as the interpreter presents its operands, without what it refuses.

    It waits for no value of an operand that must be constant: a computed one is refused when the model is prepared.
    """
    awaited = tuple(position for position in row.shape_operands if position not in CONSTANT.get(row.op, ()))
    return replace(row, prepare=_present(row.prepare, row.op == "FULLY_CONNECTED"), shape_operands=awaited)


@cache
def _present(inner: Prepare, is_dense: bool) -> Prepare:
    """Return one function for each `inner`, so that tables which share a row still share it."""
    bound = any_activation(inner) if is_dense else inner

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        _check(node)
        made = bound(without_checks(with_first_scales(node)), arithmetic)
        for shape, y in zip(made.shapes, node.outputs, strict=False):
            if shape is not None and 0 in shape and len(shape) > 1:
                node.reject("an output without elements counts as dynamic", y, expected="elements", got=list(shape))
        return made

    return update_wrapper(prepare, inner, assigned=())


def _check(node: Node) -> None:
    check_constants(node)
    for check in CHECKS.get(node.op, ()):
        check(node)


def with_first_scales(node: Node) -> Node:
    """Return the node with the first scale and zero point alone, except in weights that have one a channel."""
    weights = _weights(node.op)
    inputs = tuple(
        operand if operand is None or position in weights else first_scale(operand)
        for position, operand in enumerate(node.inputs)
    )
    return replace(node, inputs=inputs, outputs=tuple(map(first_scale, node.outputs)))


def _weights(op: str) -> tuple[int, ...]:
    """Return the positions of weights and bias that have scales for channels."""
    fact = OPERATORS[op]
    weights = None if fact.quantize is None else fact.quantize.weights
    if weights is None or not fact.by_channel:
        return ()
    return (weights.weights,) if weights.bias is None else (weights.weights, weights.bias)
