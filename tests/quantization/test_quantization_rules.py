"""The table of operators against the kernel table and against TensorFlow's own version table."""

from __future__ import annotations

from support.each import each
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.fact import Needs
from tflq.engine.kernels.facts.rules import CONVERSIONS, FIXED, KEPT_FLOAT, READS_SHAPES, RULES, TABLES
from tflq.engine.profiles import by_name
from tflq.model.ir import TensorType

KERNELS = by_name("litert-ref").kernels
INTEGERS = {TensorType.INT8, TensorType.UINT8, TensorType.INT16}


def takes(op: str, wanted: set[TensorType]) -> bool:
    """Whether a kernel takes an input of one of those types, and does not take any type at all."""
    slots = [slot for kernel in KERNELS.get(op, ()) for slot in kernel.signature.inputs]
    return any(slot.names(type_) for slot in slots for type_ in wanted)


def in_float(op: str) -> bool:
    return takes(op, {TensorType.FLOAT32})


@each("op", sorted(KERNELS))
def test_every_operator_with_an_integer_kernel_has_a_rule_or_a_reason(op: str) -> None:
    named = op in RULES or op in KEPT_FLOAT or op in READS_SHAPES | CONVERSIONS
    assert named or not (takes(op, INTEGERS) and in_float(op))


@each("op", sorted(RULES))
def test_every_rule_is_of_an_operator_with_an_integer_kernel(op: str) -> None:
    assert takes(op, INTEGERS) or op in ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")  # these take any type
    assert op not in KEPT_FLOAT


def test_the_other_tables_name_operators_that_have_rules() -> None:
    assert {op for op, _ in FIXED} <= set(RULES)
    assert set(TABLES) <= set(RULES)
    assert {op for op, fact in OPERATORS.items() if fact.needs != Needs()} <= set(RULES)
