"""Every operator is in every table that it belongs to; a failure lists what is missing, and where."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import MappingProxyType

import tflq
from opfuzz.case import Case
from opfuzz.families import SPECS
from opfuzz.session import draw_case, numbers
from support import suites
from support.each import each
from tflq.diagnosis.element.trace import trace_element
from tflq.engine.interpreter import make_plan
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.rules import CONVERSIONS, KEPT_FLOAT, READS_SHAPES, RULES
from tflq.engine.kernels.tables.rows import table_of
from tflq.engine.kernels.validity import RuntimeConditions
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.ir.model import enum

REFERENCE = table_of(RuntimeConditions())
OPERATORS_PAGE = (suites.ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
BUILTIN = frozenset(enum("BuiltinOperator"))
INTEGERS = frozenset({"INT8", "UINT8", "INT16"})
#: Operators of which a model of one operator cannot be drawn: state, strings, subgraphs, custom options. They have
#: tests that build models by hand.
BUILT_BY_HAND = frozenset(
    {
        "ASSIGN_VARIABLE",
        "AudioSpectrogram",
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        "CALL_ONCE",
        "DENSIFY",
        "HASHTABLE",
        "HASHTABLE_FIND",
        "HASHTABLE_IMPORT",
        "HASHTABLE_SIZE",
        "IF",
        "LSH_PROJECTION",
        "Mfcc",
        "NumericVerify",
        "READ_VARIABLE",
        "SKIP_GRAM",
        "STABLEHLO_CASE",
        "STABLEHLO_COMPOSITE",
        "STABLEHLO_GATHER",
        "STABLEHLO_REDUCE_WINDOW",
        "STABLEHLO_SCATTER",
        "TFLite_Detection_PostProcess",
        "VAR_HANDLE",
        "WHILE",
        "aeq.hadamard_rotation",
    }
)


#: Drawn models that are looked at for one with 8-bit data.
DRAWN = 60


def is_known_to_the_schema(op: str) -> bool:
    return op in BUILTIN or op != op.upper()  # custom operators carry names of their own


def has_a_kernel(op: str) -> bool:
    return bool(REFERENCE[op])


def has_a_quantization_rule(op: str) -> bool:
    """Return whether the quantizer has a rule for it, if it has a kernel for integers and one for floats."""
    if op in RULES or op in KEPT_FLOAT or op in READS_SHAPES | CONVERSIONS:
        return True
    names = [slot.types for row in REFERENCE[op] for slot in row.signature.inputs]
    taken = {type_.name for types in names if types is not None for type_ in types}
    return not (taken & INTEGERS and "FLOAT32" in taken)


def can_be_drawn(op: str) -> bool:
    return (op in SPECS) != (op in BUILT_BY_HAND)


def is_documented(op: str) -> bool:
    return f"| {op} |" in OPERATORS_PAGE


def makes_bytes(op: str) -> bool:
    """Return whether some row of it has outputs of int8 or uint8."""
    return any(
        slot.types is not None and {type_.name for type_ in slot.types} & {"INT8", "UINT8"}
        for row in REFERENCE[op]
        for slot in row.signature.outputs
    )


def drawn_in_bytes(op: str) -> Iterator[Case]:
    """Drawn models of the operator whose result is bytes, and not empty."""
    for number in itertools.islice(numbers(3, [op]), DRAWN):
        case = draw_case(3, number)
        if case.outputs[0].type in ("int8", "uint8") and 0 not in case.outputs[0].shape:
            yield case


def element_is_told(case: Case) -> bool:
    """Return whether the trace of its first element has steps; False if the model is refused."""
    try:
        plan = make_plan(tflq.load(case.model()), by_name("litert-ref"))
        inputs = dict(zip(plan.inputs, case.samples[0], strict=True))
        return trace_element(plan, inputs, (0,) * len(case.outputs[0].shape)).is_told
    except TflqError:
        return False


#: A check of every operator -> the file to fix.
TABLES = MappingProxyType(
    {
        is_known_to_the_schema: "schemas/tflite.json: BuiltinOperator",
        has_a_kernel: "tflq/engine/kernels/facts: room",
        has_a_quantization_rule: "tflq/engine/kernels/facts: quantize, or kept_float with the reason",
        can_be_drawn: "tools/opfuzz/families/: SPECS, or BUILT_BY_HAND in this test",
        is_documented: "docs/operators.md: python tools/op_matrix.py",
    }
)


@each("op", sorted(REFERENCE))
def test_an_operator_stands_in_every_table(op: str) -> None:
    missing = [place for holds, place in TABLES.items() if not holds(op)]
    assert not missing, f"{op} is missing in:\n" + "\n".join(f"  {place}" for place in missing)


def test_a_forgotten_table_is_named() -> None:
    """Check that an unknown operator is missing everywhere except in the registry, which cannot be asked for it."""
    unknown = "FORGOTTEN_OPERATOR"
    assert not is_known_to_the_schema(unknown)
    assert not can_be_drawn(unknown)
    assert not is_documented(unknown)


@each("op", [op for op in sorted(SPECS) if makes_bytes(op)])
def test_an_element_is_worked_out_or_only_shown(op: str) -> None:
    """Check that one element's trace shows steps of an 8-bit operator, unless its facts have `traced=False`."""
    told = any(element_is_told(case) for case in itertools.islice(drawn_in_bytes(op), 6))
    assert told == OPERATORS[op].traced, (
        f"{op}: tflq/diagnosis/element/trace.py, or `traced` in tflq/engine/kernels/facts"
    )
