"""Models in C and C++ source: `const unsigned char g_model[] = {0x1c, 0x00, ...}`, as firmware carries them.

Elements are bytes, signed or unsigned, 32-bit words in the order of the processor (little-endian), or a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tflq.errors import FormatError

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
