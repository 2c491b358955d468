"""The sections of a LiteRT-LM package (`.litertlm`).

Source: LiteRT-LM 0.18, schema/core/litertlm_read.cc ReadHeaderFromLiteRTLM: eight bytes "LITERTLM", three uint32 of a
version, four bytes of padding, the header's end as uint64, and the header, a FlatBuffer. Sections follow in blocks of
16 KiB; the header names the bytes of each.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tflq.errors import FormatError
from tflq.model.flatbuf.reader import Readable, read_record
from tflq.model.ir import Record
from tflq.model.ir.schema import schema

MAGIC = b"LITERTLM"
_FIXED = struct.Struct("<8s3I4xQ")
_MAJOR = 1
#: Most bytes of a header that are read: LiteRT-LM (runtime/util/litert_lm_loader.cc) reads the first 16 KiB.
_LARGEST_HEADER = 16 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """The bytes [begin, end) of a section, its kind as LiteRT-LM names it, and its items with text values."""

    kind: str
    begin: int
    end: int
    items: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Header:
    """The version of a package ("1.7.0"), its entries with text values, and its sections."""

    version: str
    entries: Mapping[str, str]
    places: tuple[Place, ...]


def read_header(data: Readable) -> Header:
    """Return the header of a package. Every section lies behind it and inside `data`.

    Raises:
        FormatError, LimitError: The bytes are not a LiteRT-LM package of version 1.
    """
    size = len(data)
    if size < _FIXED.size:
        raise FormatError("too short for a LiteRT-LM package", offset=size)
    magic, major, minor, patch, end = _FIXED.unpack_from(data, 0)
    if magic != MAGIC:
        raise FormatError(f"not a LiteRT-LM package: it begins with {magic!r}", offset=0)
    version = f"{major}.{minor}.{patch}"
    if major != _MAJOR:
        raise FormatError(f"LiteRT-LM package of version {version}; version {_MAJOR} is read", offset=len(MAGIC))
    if not _FIXED.size < end <= min(size, _LARGEST_HEADER):
        raise FormatError(f"the header cannot end at byte {end} of {size}", offset=_FIXED.size - 8)
    record = read_record(_bytes(data)[_FIXED.size : end], "litertlm")
    sections = record["section_metadata"]
    objects = (sections and sections["objects"]) or ()
    return Header(version, _texts(_entries(record)), tuple(_places(objects, end, size)))


def _bytes(data: Readable) -> memoryview:
    return memoryview(data) if isinstance(data, mmap.mmap) else memoryview(data).cast("B")


def _entries(record: Record) -> tuple[Record, ...]:
    system = record["system_metadata"]
    return (system and system["entries"]) or ()


def _places(objects: tuple[Record, ...], header_end: int, size: int) -> Iterator[Place]:
    kinds = schema("litertlm")["sections"]
    for number, section in enumerate(objects):
        begin, end, kind = section["begin_offset"], section["end_offset"], section["data_type"]
        if not header_end <= begin <= end <= size:
            raise FormatError(f"section {number} cannot have bytes {begin} to {end} of {size}", table="SectionObject")
        name = kinds[kind] if kind < len(kinds) else f"kind {kind}"
        yield Place(name, begin, end, _texts(section["items"] or ()))


def _texts(items: tuple[Record, ...]) -> Mapping[str, str]:
    """Return the items with text values; numbers are not read."""
    found = {
        item["key"].lower(): item["value"]["value"]
        for item in items
        if item["key"] and item["value"] is not None and item["value"].table == "StringValue" and item["value"]["value"]
    }
    return MappingProxyType(found)
