"""What the schema data does not name is kept, and carried to another file where that can be done faithfully."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from flatbuffers import Builder

from support import flatbuf_models as models
from support.flatbuf_structure import differences
from tflq.errors import FormatError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, OperatorCode, Record

Fill = Callable[[Builder], None]


def model_with(fill: Fill, slots: int = 32) -> bytes:
    """A file whose only table is a Model of version 3, with the slots that `fill` adds."""
    builder = Builder(64)
    builder.StartObject(slots)
    fill(builder)
    builder.PrependUint32Slot(0, 3, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TFL3")
    return bytes(builder.Output())


def operator_with(union_type: int, slot: int) -> bytes:
    """A file with one operator whose options are of `union_type`: a table of one int32, 77."""
    builder = Builder(64)
    builder.StartObject(1)
    builder.PrependInt32Slot(0, 77, 0)
    options = builder.EndObject()
    builder.StartObject(14)
    builder.PrependUOffsetTRelativeSlot(slot, options, 0)
    builder.PrependUint8Slot(slot - 1, union_type, 0)
    operator = builder.EndObject()
    operators = _vector(builder, operator)
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(3, operators, 0)
    subgraphs = _vector(builder, builder.EndObject())
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(2, subgraphs, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _vector(builder: Builder, table: int) -> int:
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(table)
    return int(builder.EndVector())


@pytest.mark.parametrize(
    ("fill", "value"),
    [
        (lambda b: b.PrependBoolSlot(31, True, False), 1),
        (lambda b: b.PrependInt8Slot(31, -2, 0), 0xFE),
        (lambda b: b.PrependInt16Slot(31, 300, 0), 300),
        (lambda b: b.PrependInt32Slot(31, 77, 0), 77),
        (lambda b: b.PrependInt32Slot(31, -1, 0), 0xFFFFFFFF),
        (lambda b: b.PrependFloat32Slot(31, 1.5, 0.0), struct.unpack("<I", struct.pack("<f", 1.5))[0]),
        (lambda b: b.PrependInt64Slot(31, -(1 << 40), 0), (1 << 64) - (1 << 40)),
    ],
)
def test_an_unknown_scalar_is_kept_and_carried(fill: Fill, value: int) -> None:
    model = read(model_with(fill))
    (kept,) = model.unknown
    assert (kept.table, kept.id, kept.scalar) == ("Model", 31, True)
    assert int.from_bytes(kept.inline, "little") == value
    assert model.version == 3
    again = read(write(model))
    assert not list(differences(model, again))


def test_several_unknown_scalars_are_carried_beside_known_fields() -> None:
    def fill(builder: Builder) -> None:
        for slot, value in [(31, 5), (12, 9), (20, 255)]:
            builder.PrependInt8Slot(slot, value - 256 if value > 127 else value, 0)
        builder.PrependInt16Slot(30, 1001, 0)

    model = read(model_with(fill))
    again = read(write(model))
    assert not list(differences(model, again))
    assert {u.id: u.inline[0] for u in again.unknown} == {12: 9, 20: 255, 30: 1001 & 255, 31: 5}


def test_an_unknown_field_that_may_be_an_offset_is_kept_but_not_carried() -> None:
    builder = Builder(64)
    text = builder.CreateString("a string of a later schema")
    builder.StartObject(32)
    builder.PrependUint32Slot(0, 3, 0)
    builder.PrependUOffsetTRelativeSlot(25, text, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TFL3")
    model = read(bytes(builder.Output()))
    (kept,) = model.unknown
    assert (kept.id, kept.scalar) == (25, False)
    with pytest.raises(FormatError, match=r"Model\.id 25"):
        write(model)
    assert read(write(model, drop_unknown=True)).unknown == ()


@pytest.mark.parametrize(("union", "slot", "number"), [("BuiltinOptions", 4, 200), ("BuiltinOptions2", 12, 99)])
def test_an_unknown_option_table_is_kept_but_not_carried(union: str, slot: int, number: int) -> None:
    model = read(operator_with(number, slot))
    operator = model.subgraphs[0].operators[0]
    options = operator.options if slot == 4 else operator.options_2
    assert options is not None
    assert options.table == f"{union}#{number}"
    assert options.unknown[0].position > 0
    with pytest.raises(FormatError, match=rf"{union}#{number}"):
        write(model)
    dropped = read(write(model, drop_unknown=True)).subgraphs[0].operators[0]
    assert dropped.options is dropped.options_2 is None


def test_a_known_option_table_with_a_later_field_keeps_it() -> None:
    # AbsOptions, number 78 of the union, has no fields here: its int32 is unknown.
    model = read(operator_with(78, 4))
    options = model.subgraphs[0].operators[0].options
    assert isinstance(options, Record)
    assert options.table == "AbsOptions"
    assert int.from_bytes(options.unknown[0].inline, "little") == 77
    assert not list(differences(model, read(write(model))))


def test_a_field_of_a_pair_that_would_be_lost_is_not_dropped_silently() -> None:
    builder = Builder(64)
    builder.StartObject(9)
    builder.PrependUint32Slot(1, 4, 0)
    builder.PrependInt8Slot(8, 3, 0)
    metadata = _vector(builder, builder.EndObject())
    builder.StartObject(7)
    builder.PrependUOffsetTRelativeSlot(6, metadata, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TFL3")
    model = read(bytes(builder.Output()))
    assert model.metadata == ((None, 4),)
    with pytest.raises(FormatError, match=r"Metadata\.id 8"):
        write(model)
    assert read(write(model, drop_unknown=True)).metadata == ((None, 4),)


@pytest.mark.parametrize("number", [210, 100_000, 2**31 - 1])
def test_an_unknown_operator_keeps_its_number(number: int) -> None:
    model = Model(3, (OperatorCode(number, f"BUILTIN_{number}", 5),), (), ())
    assert read(write(model)).operator_codes == model.operator_codes


def test_unknown_enum_values_stay_numbers() -> None:
    options = models.record("Conv2DOptions", padding=99, fused_activation_function=-128)
    model = models.convolution()
    subgraph = model.subgraphs[0]
    import dataclasses

    operator = dataclasses.replace(subgraph.operators[0], options=options)
    model = dataclasses.replace(model, subgraphs=(dataclasses.replace(subgraph, operators=(operator,)),))
    read_options = read(write(model)).subgraphs[0].operators[0].options
    assert read_options is not None
    assert (read_options["padding"], read_options["fused_activation_function"]) == (99, -128)
