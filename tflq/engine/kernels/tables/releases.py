"""Operators that each release registers, and the promises of its floats.

Promises for a runtime's float results if other builds of the same source are known to differ.

The element types of r1.15's kernels, and what is promised of its floats.

Source: TensorFlow r1.15 lite/kernels/register.cc, register_ref.cc, and the checks of each kernel.

Later kernels that the resolvers of each release of TensorFlow Lite and LiteRT register.

Operators and versions are facts (kernels/facts); element types within a version are those of 2.14 before LiteRT.
Source: TensorFlow 2.14 lite/kernels/register.cc, register_ref.cc, and the checks of each kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.fact import ORDER
from tflq.engine.kernels.kernel import Exactness, Kernel, Signature, close
from tflq.engine.kernels.table import KernelTable
from tflq.engine.kernels.validity import RELEASES
from tflq.model.ir import TensorType

#: Operators whose floats are moved, compared or chosen, or made by one operation that IEEE 754 rounds: alike anywhere.
#: Not CEIL, FLOOR and MAX_POOL_2D, whose vector code treats subnormals and NaN in its own way.
ONE_ROUNDING_AT_MOST = frozenset(op for op, fact in OPERATORS.items() if fact.rounds_once)


def floats_are_close(exactness: Exactness, also: Collection[str] = ()) -> Callable[[Kernel], Kernel]:
    """Return the change of a row that promises `exactness` only of floats computed by several operations from floats.

    `also` names operators whose floats are not exact even though they round once.
    """
    exact = ONE_ROUNDING_AT_MOST.difference(also)

    def promised(row: Kernel) -> Kernel:
        is_exact = row.op in exact or not makes_floats_of_floats(row)
        return row if is_exact else replace(row, exactness=exactness)

    return promised


def makes_floats_of_floats(kernel: Kernel) -> bool:
    """Return whether both sides of the row's signature name float32."""
    return kernel.signature.reads(TensorType.FLOAT32) and kernel.signature.makes(TensorType.FLOAT32)


#: Element types that came later; DEQUANTIZE alone took float16.
_LATER = (
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.INT2,
    TensorType.INT4,
    TensorType.UINT4,
    TensorType.UINT16,
    TensorType.UINT32,
    TensorType.UINT64,
)
#: The operators that computed on int16; those that only move elements name it among others.
_ON_INT16 = frozenset(["ADD", "LOGISTIC", "MUL", "SUB", "TANH"])
#: Float operators that select or move, and round nothing.
_ROUNDS_NOTHING = frozenset(
    ["ABS", "FLOOR", "MAXIMUM", "MINIMUM", "NEG", "PAD", "PADV2", "RELU", "RELU6", "RELU_N1_TO_1"]
)
_FLOAT = close("r1.15's float kernels are not modelled: sums go in the order of LiteRT's reference")


def _knows(row: Kernel) -> bool:
    first = row.signature.slots[0]
    if row.op != "DEQUANTIZE" and first.is_only(*_LATER):
        return False
    if first.is_only(TensorType.INT16) and row.op not in _ON_INT16:
        return False
    return not any(type_.label in OPERATORS[row.op].came_after("1.15") for type_ in first.types or ())


def known(row: Kernel) -> Kernel | None:
    """Return the row with its promise, or None if its types came after r1.15."""
    if not _knows(row):
        return None
    is_float = row.signature.starts_with(TensorType.FLOAT32) and row.signature.is_float
    return replace(row, exactness=_FLOAT) if is_float and row.op not in _ROUNDS_NOTHING else row


Known = Callable[[Kernel], Kernel | None]


def register(table: KernelTable, release: str, optimized: bool) -> KernelTable:
    """Return what a resolver of a release has of a table."""
    number = release.partition("-")[2]
    if release in _NEWEST:
        return table
    known, promised = _forms(release, number), table
    if release not in _FLOATS_ALIKE:
        promised = table.each(floats_are_close(_FLOATS, _OTHERWISE))

    def limited(row: Kernel) -> Kernel | None:
        left = known(row)
        if left is None or OPERATORS[row.op].is_custom:
            return left
        low, high = left.versions
        last = min(high, OPERATORS[row.op].highest(number, optimized))
        return replace(left, versions=(low, last)) if low <= last else None

    def has(op: str) -> bool:
        return OPERATORS[op].is_custom or OPERATORS[op].highest(number, optimized) > 0

    return promised.only(has).each(limited)


#: Releases without limits: they register what the newest does.
_NEWEST = RELEASES[-2:]
#: Releases whose floats were modelled, or are described by release_1_15.
_FLOATS_ALIKE = ("tf-1.15", "tflite-2.13", "tflite-2.14", "litert-2.1")
_FLOATS = close("floats of this release were not modelled")
#: Operators of one rounding at most whose floats some release makes otherwise: NaN, subnormal numbers, zeros.
_OTHERWISE = ("ADD", "DIV", "MUL", "REDUCE_MAX", "REDUCE_MIN", "RELU6", "SIGN", "SQRT", "SUB")


def _forms(release: str, number: str) -> Known:
    """Return the change that leaves a row the types that a release had."""
    if release == "tf-1.15":
        return known
    if release.startswith("litert"):
        return partial(_known_in, number)
    return known_in_2_14 if number in ("2.13", "2.14") else _known_in_2_12


#: Forms that are narrower up to a release, or are not there, if that depends on more than one operand's type.
_FORMS: Mapping[tuple[str, Signature], tuple[str, Signature | None]] = {
    (op, Signature.parse(types)): (last, Signature.parse(left) if left else None)
    for last, op, types, left in (
        ("2.0", "BATCH_MATMUL", "int16 int8|int16 -> int16", "int16 int16 -> int16"),
        ("2.0", "CAST", "float32 -> int4", ""),
        ("2.0", "CAST", "float32 -> int4|int2|uint4", ""),
        ("2.14", "DEQUANTIZE", "int8|uint8|int16|int4 -> float32", "int8|uint8|int16 -> float32"),
        ("2.14", "EMBEDDING_LOOKUP", "int32 int8|uint8|int4 -> float32", "int32 int8|uint8 -> float32"),
        ("2.0", "EMBEDDING_LOOKUP", "int32 int8|uint8|int4|int2 -> float32", "int32 int8|uint8 -> float32"),
        ("2.0", "FULLY_CONNECTED", "int16 int16 int32|int64? -> int16", ""),
        ("1.4", "PRELU", "int16 int8 -> int16", ""),
        ("2.0", "QUANTIZE", "float32 -> int8|uint8|int16|int4", "float32 -> int8|uint8|int16"),
        ("2.0", "QUANTIZE", "float32 -> int8|uint8|int16|int4|uint4", "float32 -> int8|uint8|int16"),
        ("2.0", "QUANTIZE", "int8|uint8 -> int8|uint8|int16", "int8|uint8 -> int8|uint8"),
        ("2.14", "TRANSPOSE_CONV", "int32 int8 float32 float32? -> float32", ""),
    )
}
#: Types that no operator had in 2.14.
_NOWHERE = frozenset(
    (TensorType.BFLOAT16, TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2, TensorType.INT2, TensorType.UINT4)
)


def _after(row: Kernel, number: str) -> tuple[TensorType, ...]:
    return tuple(TensorType[name.upper()] for name in OPERATORS[row.op].came_after(number))


def known_in_2_14(row: Kernel) -> Kernel | None:
    """Return the row without the types that came later: anywhere, or in the operands that have the output's types."""
    left = row.signature.without(*_NOWHERE)
    return None if left is None else _known_in("2.14", row.taking(left))


def _known_in(number: str, row: Kernel) -> Kernel | None:
    """Return the row without the types of its data that came after a release, and in the form that it had there."""
    data, later = _data(row.signature), _after(row, number)
    left = row.signature.narrowed(lambda slot: slot.without(later) if slot.types == data else slot)
    if left is None:
        return None
    last, narrower = _FORMS.get((row.op, left), ("", None))
    signature = narrower if last and ORDER[number] <= ORDER[last] else left
    return None if signature is None else row.taking(signature)


def _data(signature: Signature) -> tuple[TensorType, ...] | None:
    """Return the types of the row's data: those of its result or, if that is bool, of its first input."""
    if not signature.outputs:
        return ()
    result = signature.outputs[-1]
    return signature.inputs[0].types if result.is_only(TensorType.BOOL) else result.types


def _without_after(number: str, row: Kernel) -> Kernel | None:
    """Return the row without the element types that came after a release, in any operand."""
    types = _after(row, number)
    signature = row.signature.without(*types) if types else row.signature
    return None if signature is None else row.taking(signature)


def _known_in_2_12(row: Kernel) -> Kernel | None:
    left = known_in_2_14(row)
    return None if left is None else _without_after("2.12", left)
