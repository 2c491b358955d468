"""Models inside of other files: C source, and LiteRT-LM packages.

Models in C and C++ source: `const unsigned char g_model[] = {0x1c, 0x00, ...}`, as firmware carries them.

Elements are bytes, signed or unsigned, 32-bit words in the order of the processor (little-endian), or a string.

The sections of a LiteRT-LM package (`.litertlm`).

Source: LiteRT-LM 0.18, schema/core/litertlm_read.cc ReadHeaderFromLiteRTLM: eight bytes "LITERTLM", three uint32 of a
version, four bytes of padding, the header's end as uint64, and the header, a FlatBuffer. Sections follow in blocks of
16 KiB; the header names the bytes of each.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tflq.errors import FormatError
from tflq.model.flatbuf.reader import Readable, read_record
from tflq.model.ir import Record
from tflq.model.ir.model import schema

#: The beginning of an array: its name, extents and attributes; or a std::array, with its extents before its name.
_START = re.compile(
    rb"(?P<name>[A-Za-z_]\w{0,199})\s{0,9}\[[^\]{}]{0,99}\][^={};\"]{0,200}=?\s{0,9}(?:\{|(?P<string>(?=\")))"
    rb"|>\s{0,9}(?P<std>\w{1,200})\s{0,9}=?\s{0,9}\{\{?"
)
_SIGNS = re.compile(
    rb"\s*(?:\xef\xbb\xbf)?\s*/[/*]|#\s*(?:include|ifndef|pragma)|\b(?:u?int(?:8|32)_t|char|array|byte)\b"
)
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_NUMBER = re.compile(rb"-?(?:0[xX][0-9a-fA-F]{1,8}|\d{1,10})(?:[uU][lL]{0,2}|[lL]{1,2})?")
#: An element of an array of std::byte.
_BYTE_OF = re.compile(rb"(?:std::)?byte\{(\w{1,9})\}")
_STRING = re.compile(rb"\s*\"((?:[^\"\\\n]|\\.)*)\"")
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{1,2})|\\([0-7]{1,3})|\\(.)|([^\\])", re.DOTALL)
_ESCAPED = {b"n": 10, b"t": 9, b"r": 13, b"a": 7, b"b": 8, b"f": 12, b"v": 11}
_IDENTIFIER = b"TFL3"


def is_source(head: bytes) -> bool:
    """Return whether a file may be C source with an array: it is text, and has a type, an include or a comment."""
    return 0 not in head and (found := _SIGNS.search(head)) is not None and (b"/" not in found[0] or not found.start())


def model_in_source(text: bytes, name: str | None = None) -> bytes | None:
    """Return the bytes of the model in C source; None if it holds none. `name` chooses one of several arrays.

    Raises:
        FormatError: There are several models and none is named, no array has that name, or the file ends inside one.
    """
    found = dict(_arrays(text))
    models = {key: data for key, data in found.items() if data[4:8] == _IDENTIFIER}
    if name is not None:
        if name not in models:
            raise FormatError(f"no array {name!r} is a model; there are: {', '.join(models) or 'none'}")
        return models[name]
    if len(models) > 1:
        raise FormatError(f"holds {len(models)} models; name one, as in FILE:{next(iter(models))}")
    return next(iter(models.values()), None)


def _arrays(text: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the arrays of bytes with their names; other arrays are left out."""
    text = text if b'"' in text and b"TFL3" in text else _COMMENT.sub(b" ", text)  # a string may hold // and /*
    text = _BYTE_OF.sub(rb"\1", text)
    for start in _START.finditer(text):
        name = (start["name"] or start["std"]).decode()
        if start["string"] is not None:
            yield name, _of_string(text, start.end())
            continue
        end = text.find(b"}", start.end())
        body = text[start.end() : end if end >= 0 else len(text)]
        data = _of_numbers(body)
        if end < 0 and data[4:8] == _IDENTIFIER:
            raise FormatError(f"the array {name} has no closing brace: the file is cut")
        yield name, data


def _of_numbers(body: bytes) -> bytes:
    """Return the bytes that the elements of an array are; empty if they are no bytes and no words."""
    words = _NUMBER.findall(body)
    if len(words) < 8 or _NUMBER.sub(b"", body).strip(b" \t\r\n,"):
        return b""
    values = [int(word.rstrip(b"uUlL"), 0 if b"x" in word.lower() else 10) for word in words]
    if min(values) >= -128 and max(values) < 256:
        return bytes(value & 255 for value in values)
    if min(values) < 0 or max(values) >= 1 << 32:
        return b""
    return b"".join(value.to_bytes(4, "little") for value in values)


def _of_string(text: bytes, at: int) -> bytes:
    """Return the bytes of the strings that begin at `at`, one after the other."""
    data = bytearray()
    while (part := _STRING.match(text, at)) is not None:
        for found in _ESCAPE.finditer(part[1]):
            if found[1] or found[2]:
                data.append(int(found[1] or found[2], 16 if found[1] else 8) & 255)
            else:
                data += found[4] or bytes([_ESCAPED.get(found[3], found[3][0])])
        at = part.end()
    return bytes(data)


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
class PackageHeader:
    """The version of a package ("1.7.0"), its entries with text values, and its sections."""

    version: str
    entries: Mapping[str, str]
    places: tuple[Place, ...]


def read_header(data: Readable) -> PackageHeader:
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
    return PackageHeader(version, _texts(_entries(record)), tuple(_places(objects, end, size)))


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
