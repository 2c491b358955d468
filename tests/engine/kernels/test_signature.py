"""Signatures: what the text of a row means, what fits it, and what is left of it without some types."""

from __future__ import annotations

import pytest

from tflq.engine.kernels.kernel import Signature, Slot
from tflq.engine.profiles import PROFILES
from tflq.model.ir import TensorType

F32, I8, U8, I16, I32 = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32)
parse = Signature.parse


@pytest.mark.parametrize("profile", ["litert-ref", "tflm", "tf-1.15-ref"])
def test_every_signature_prints_as_it_was_written(profile: str) -> None:
    for rows in PROFILES[profile].kernels.values():
        for row in rows:
            assert str(row.signature) == row.types
            assert parse(str(row.signature)) == row.signature


def test_alternatives_are_equal_in_any_order() -> None:
    assert parse("int8|uint8 int32? -> int8") == parse("uint8|int8  int32?  ->  int8")
    assert hash(parse("int8|uint8 -> int8")) == hash(parse("uint8|int8 -> int8"))
    assert parse("int8 -> int8") != parse("int8? -> int8")
    assert parse("int8 -> int8") != parse("int8* -> int8")
    assert parse("int8 -> int8") != parse("any -> int8")


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(KeyError):
        parse("int7 -> int8")


@pytest.mark.parametrize(
    ("text", "inputs", "outputs", "mismatches"),
    [
        ("int8 int8 int32? -> int8", [I8, I8, I32], [I8], 0),
        ("int8 int8 int32? -> int8", [I8, I8, None], [I8], 0),
        ("int8 int8 int32? -> int8", [I8, I8], [I8], 0),
        ("int8 int8 int32? -> int8", [I8, None, I32], [I8], 1),
        ("int8 int8 int32? -> int8", [I8, I16, I32, I32], [U8], 3),
        ("int8|uint8* -> any", [U8, I8, U8], [I16], 0),
        ("int8|uint8* -> any", [U8, I8, I16], [I16], 1),
        ("int8|uint8* -> any*", [], [], 0),
        ("->", [], [], 0),
        ("->", [I8], [I8], 2),
    ],
)
def test_operands_that_do_not_fit_are_counted(
    text: str, inputs: list[TensorType | None], outputs: list[TensorType], mismatches: int
) -> None:
    assert parse(text).mismatches(inputs, outputs) == mismatches


def test_types_are_left_out_of_every_operand() -> None:
    signature = parse("int8|uint8 any uint8|int16* -> uint8|float32")
    assert signature.without(U8) == parse("int8 any int16* -> float32")
    assert signature.without(U8, F32) is None
    assert parse("uint8? -> int8").without(U8) is None


def test_what_a_row_reads_and_makes() -> None:
    hybrid = parse("float32 int8|uint8 float32? -> float32")
    assert hybrid.is_float
    assert hybrid.reads(I8)
    assert hybrid.reads(I16, U8)
    assert not hybrid.makes(I8)
    assert hybrid.starts_with(F32)
    assert not hybrid.starts_with(F32, I8)  # it takes uint8, too
    assert hybrid.has_integers
    assert not parse("float32 -> float32").has_integers
    assert not parse("any -> any").reads(I8)  # any type, none by name
    assert not parse("float32 -> int8|float32").is_float


def test_alternatives_one_by_one() -> None:
    assert Slot.parse("int8|uint8?").choices == (Slot((I8,)), Slot((U8,)))
    assert Slot.parse("any*").choices == (Slot(None),)
