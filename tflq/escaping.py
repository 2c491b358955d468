"""Text from files, prepared for display: unprintable characters escaped, long text shortened."""

from __future__ import annotations

#: Maximum length of a name, and of a whole line or message; the middle of a longer one is left out.
NAME, TEXT = 300, 4000

_ESCAPED_BYTES = range(0xDC80, 0xDD00)  # Python's "surrogateescape" form of bytes that are not UTF-8


def printable(text: str, most: int = TEXT) -> str:
    """Return `text` on one line, without control characters, at most about `most` characters long.

    Unprintable characters become backslash escapes: `\\x1b`, `\\n`, `\\u202e`; a byte that was not UTF-8 is `\\xff`.
    """
    if len(text) > most:
        kept = most // 2
        text = f"{text[:kept]} ... ({len(text) - 2 * kept:,} characters left out) ... {text[-kept:]}"
    return text if text.isprintable() else "".join(map(_escape, text))


def shown(name: str) -> str:
    """Return a name from a file, escaped and short enough for a table."""
    return printable(name, NAME)


def quoted(name: object) -> str:
    """Return a name in quotes, as in `shown`; a number without."""
    return f"'{shown(name)}'" if isinstance(name, str) else shown(repr(name))


def valid(text: str) -> str:
    """Return `text` with lone surrogates escaped, so that it can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(_escape(c) if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if code in _ESCAPED_BYTES else character.encode("unicode_escape").decode()
