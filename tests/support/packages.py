"""Packages of LiteRT-LM, written for tests."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import flatbuffers

from tflq.model.ir.model import schema

BLOCK = 16 << 10
_STRING_VALUE = 9


def litertlm(
    sections: Sequence[tuple[str, bytes, Mapping[str, str]]], version: tuple[int, int, int] = (1, 7, 0)
) -> bytes:
    """Return a package of sections (kind, content, items)."""
    kinds = schema("litertlm")["sections"]
    body, places = b"", []
    for _, content, _ in sections:
        begin = BLOCK + len(body)
        places.append((begin, begin + len(content)))
        body += content + bytes(-len(content) % BLOCK)
    builder = flatbuffers.Builder()
    objects = []
    for (kind, _, items), (begin, end) in zip(sections, places, strict=True):
        vector = _vector(builder, [_item(builder, key, value) for key, value in items.items()])
        builder.StartObject(4)
        builder.PrependUOffsetTRelativeSlot(0, vector, 0)
        builder.PrependUint64Slot(1, begin, 0)
        builder.PrependUint64Slot(2, end, 0)
        builder.PrependUint8Slot(3, kinds.index(kind), 0)
        objects.append(builder.EndObject())
    metadata = []
    for vector in (_vector(builder, [_item(builder, "author", "tests")]), _vector(builder, objects)):
        builder.StartObject(1)
        builder.PrependUOffsetTRelativeSlot(0, vector, 0)
        metadata.append(builder.EndObject())
    builder.StartObject(2)
    for slot, table in enumerate(metadata):
        builder.PrependUOffsetTRelativeSlot(slot, table, 0)
    builder.Finish(builder.EndObject())
    header = bytes(builder.Output())
    fixed = b"LITERTLM" + struct.pack("<3I4xQ", *version, 32 + len(header))
    return (fixed + header).ljust(BLOCK, b"\0") + body


def _item(builder: flatbuffers.Builder, key: str, value: str) -> int:
    key_at, text = builder.CreateString(key), builder.CreateString(value)
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, text, 0)
    value_at = builder.EndObject()
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(0, key_at, 0)
    builder.PrependUint8Slot(1, _STRING_VALUE, 0)
    builder.PrependUOffsetTRelativeSlot(2, value_at, 0)
    return int(builder.EndObject())


def _vector(builder: flatbuffers.Builder, tables: Sequence[int]) -> int:
    builder.StartVector(4, len(tables), 4)
    for table in reversed(tables):
        builder.PrependUOffsetTRelative(table)
    return int(builder.EndVector())
