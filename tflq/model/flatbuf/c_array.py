"""Models in C and C++ source: `const unsigned char g_model[] = {0x1c, 0x00, ...}`, as firmware carries them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tflq.errors import FormatError

#: The beginning of an array: its name, extents and attributes; or a std::array, with its extents before its name.
_START = re.compile(
    rb"(?P<name>[A-Za-z_]\w{0,199})\s{0,9}\[[^\]{}]{0,99}\][^={};]{0,200}=\s{0,9}\{"
    rb"|>\s{0,9}(?P<std>\w{1,200})\s{0,9}=?\s{0,9}\{\{?"
)
_SIGNS = re.compile(rb"#\s*(?:include|ifndef|pragma)|\b(?:char|uint8_t|int8_t|array)\b")
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(rb"0[xX][0-9a-fA-F]{1,2}|\d{1,3}")
_IDENTIFIER = b"TFL3"


def is_source(head: bytes) -> bool:
    """Return whether a file may be C source with an array: it is text, and has bytes of an array or an include."""
    return (
        0 not in head
        and re.search(rb"#\s*(?:include|ifndef|pragma)|\b(?:char|uint8_t|int8_t|array)\b", head) is not None
    )


def model_in_source(text: bytes, name: str | None = None) -> bytes | None:
    """Return the bytes of the model in C source; None if it holds none. `name` chooses one of several arrays.

    Raises:
        FormatError: There are several models and none is named, or no array has that name.
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
    for start in _START.finditer(text):
        end = text.find(b"}", start.end())
        body = _COMMENT.sub(b" ", text[start.end() : end if end >= 0 else len(text)])
        words = _NUMBER.findall(body)
        if len(words) < 8 or _NUMBER.sub(b"", body).strip(b" \t\r\n,"):
            continue
        values = [int(word, 16 if word[:2] in (b"0x", b"0X") else 10) for word in words]
        if max(values) < 256:
            yield (start["name"] or start["std"]).decode(), bytes(values)
