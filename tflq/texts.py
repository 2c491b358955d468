"""Text from files prepared for display, and sentences with their values.

Text from files, prepared for display: unprintable characters escaped, long text shortened.

Sentences for people that carry what they state as fields for programs.

Classes of results that a console and a notebook display by a report.

Results are made in rooms that know nothing of formatting, so a class names the builder of its report, which is imported
when a result is first displayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, ClassVar, TypedDict, TypeVar

from tflq.interrupts import import_whole

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


class Statement(str):
    """A sentence, its kind for programs, and the values that it states.

    `kind` names all sentences of one meaning, and stays if their wording changes. `facts` has plain values.
    """

    kind: str
    facts: dict[str, Any]

    def __new__(cls, text: str, kind: str = "note", **facts: Any) -> Statement:
        """Return the sentence with its values."""
        made = super().__new__(cls, text)
        made.kind, made.facts = kind, facts
        return made

    def of(self, place: str) -> Statement:
        """Return this sentence with the place that it is about before it; itself if there is none."""
        return Statement(f"{place}: {self}", self.kind, **{**self.facts, "place": place}) if place else self


def subject_of(sentence: str) -> tuple[str, str]:
    """Return what a sentence is about: its kind and the name in its values; its text if it names nothing."""
    named = isinstance(sentence, Statement) and sentence.facts.get("name")
    return (sentence.kind, str(named)) if isinstance(sentence, Statement) and named else ("", str(sentence))


class FactDocument(TypedDict):
    """A sentence as an entry of a document."""

    kind: str
    message: str
    values: dict[str, Any]


def facts_of(sentences: Iterable[str]) -> list[FactDocument]:
    """Return a row for each sentence: its kind, its text and its values. A plain text is a note without values."""
    rows: list[FactDocument] = []
    for sentence in sentences:
        stated = sentence if isinstance(sentence, Statement) else Statement(sentence)
        rows.append({"kind": stated.kind, "message": str(stated), "values": dict(stated.facts)})
    return rows


class Documented:
    """A result of a public function, as the document that the command prints with --json.

    A result does not know its files: there, the document holds null, an empty text, MODEL or DUMP.
    """

    __slots__ = ()
    _document: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the document in terms of JSON; NaN and infinities are texts, as `schemas/` describes them."""
        document: dict[str, Any] = import_whole("tflq.face.report.json").json_value(_call(self._document, self))
        return document


class Tabular(Documented):
    """A result whose document holds a table."""

    __slots__ = ()
    _table: ClassVar[str] = ""

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame. A column of a nested value has the names of its keys, with dots.

        Raises:
            OptionError: pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            option_error: type[Exception] = import_whole("tflq.errors").OptionError
            raise option_error("to_pandas() needs the extra pandas: pip install 'tflq[pandas]'") from error
        return pandas.json_normalize(self.to_dict(), self._table.split("."))


T = TypeVar("T")


def display_by(builder: str, document: str = "", table: str = "") -> Callable[[type[T]], type[T]]:
    """Give a class `__repr__` (three lines), `_repr_html_` (a card for notebooks), and its document if it has one.

    Args:
        builder: "module:function" below `tflq.face.report.verbs`; the function returns the `Report` of a result.
        document: The function that returns the document, of that module or as "module:function"; the class is
            `Documented`.
        table: The key of the document that holds the table of a `Tabular` result, with dots for keys inside.
    """

    def displaying(cls: type[T]) -> type[T]:
        if document:
            module = builder.partition(":")[0]
            cls._document = document if ":" in document else f"{module}:{document}"  # type: ignore[attr-defined]
            cls._table = table  # type: ignore[attr-defined]
        cls.__repr__ = lambda self: _text(builder, self)  # type: ignore[method-assign]
        cls._repr_html_ = lambda self: _render("card_html", builder, self)  # type: ignore[attr-defined]
        return cls

    return displaying


def _text(builder: str, result: object) -> str:
    """Return the three lines of a result, or the error of its report: `repr` is called while errors are written."""
    try:
        return _render("card_text", builder, result)
    except Exception as error:
        return f"<{type(result).__name__}, whose report failed: {type(error).__name__}: {error}>"


def _render(renderer: str, builder: str, result: object) -> str:
    return str(getattr(import_whole("tflq.face.report.render.html"), renderer)(_call(builder, result)))


def _call(builder: str, result: object) -> Any:
    module, _, function = builder.partition(":")
    return getattr(import_whole(f"tflq.face.report.verbs.{module}"), function)(result)
