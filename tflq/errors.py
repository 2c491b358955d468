"""Every error that leaves the public API.

    TflqError
    ├── FileAccessError (OSError, ValueError)  a path cannot be read or written
    ├── FormatError (ValueError)               the bytes are not a valid file of their kind: offset, table, field
    │   └── LimitError (RuntimeError)          valid so far, but exceeds an explicit limit
    ├── ModelError (ValueError, RuntimeError)  well-formed, but no kernel could accept it: operator, tensor
    ├── UnsupportedError (NotImplementedError, ValueError)  operator, version, types, nearest supported form
    ├── InputError (ValueError)                an argument from the caller does not fit
    │   ├── ResizeError (RuntimeError)         a shape that a tensor cannot be given
    │   ├── ShapeError                         tensor, expected shape, got shape
    │   ├── TypeMismatchError                  tensor, expected type, got type
    │   ├── UnknownNameError                   no tensor, signature, profile ... of that name
    │   │   └── ArgumentError (TypeError)      a public function takes no argument of that name
    │   ├── OptionError                        an option that cannot be honoured
    │   └── CalibrationError                   calibration data: sample, tensor, what is wrong
    ├── StateError (RuntimeError, ValueError)  calls in the wrong order; LiteRT raises one or the other
    ├── UndefinedResultError (ArithmeticError, RuntimeError)  the original aborts, or its result is undefined
    ├── OperatorFailed (RuntimeError)          an operator raised while it was prepared or run
    ├── GoldenError (ValueError)               a golden file does not belong to this model, or lacks requested data
    └── LiveRuntimeError                       a real runtime
        ├── RuntimeMissing                     is not installed in the Python that was searched
        └── RuntimeFailed                      refused the model, raised, aborted or timed out

Each class stores its facts as fields and composes its text from them. LiteRT raises the other
built-in classes at the same calls, so `except` clauses written for LiteRT also catch tflq's errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from tflq.texts import printable, quoted, shown

E = TypeVar("E", bound="TflqError")


def _again(kind: type[TflqError], args: tuple[Any, ...], facts: dict[str, Any]) -> TflqError:
    """Return an error from another process."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


def from_process(kind: str, facts: dict[str, Any]) -> TflqError | None:
    """Return an error from its class and its fields, as another process reports them; None for other errors.

    Fields that are no plain values come as text.
    """
    found = globals().get(kind)
    if not (isinstance(found, type) and issubclass(found, TflqError)) or "statement" not in facts:
        return None
    return _again(found, (f"{facts.get('place', '')}{facts['statement']}",), facts)


class TflqError(Exception):
    """Root of every error that tflq raises on purpose. Its text is printable for any names in files.

    The text consists of `place`, which names the operator if there is one, and `statement`, the problem.
    """

    def __init__(self, statement: object = "", *, place: str = "") -> None:
        self.place, self.statement = printable(place), printable(str(statement))
        super().__init__(self.place + self.statement)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the form for pickling: error classes take other arguments than BaseException.args."""
        return _again, (type(self), self.args, dict(self.__dict__))

    def opening(self: E, wording: str) -> E:
        """Return this error with LiteRT's wording before its own text, for clients that search messages."""
        start = printable(wording)
        self.args = (f"{start} {self}" if start.endswith((".", "!")) else f"{start}: {self}",)
        return self

    def advising(self: E, remedy: str) -> E:
        """Return this error with a remedy after its text."""
        self.args = (f"{self}; {printable(remedy)}",)
        return self


class FileAccessError(TflqError, OSError, ValueError):
    """A path cannot be read or written."""

    def __init__(self, path: object, reason: str) -> None:
        self.path, self.reason = str(path), reason
        super().__init__(f"{self.path}: {reason}")

    def __str__(self) -> str:
        return str(self.args[0])


class FormatError(TflqError, ValueError):
    """The bytes are not a valid file. `offset` is a byte position in it, or None; `path` is the file's, if known."""

    def __init__(
        self, reason: str, *, offset: int | None = None, table: str = "", field: str = "", path: str = ""
    ) -> None:
        self.reason, self.offset, self.table, self.field, self.path = reason, offset, table, field, path
        place = ".".join(part for part in (table, field) if part)
        where = ", ".join(part for part in (f"byte {offset}" if offset is not None else "", place) if part)
        text = f"{reason} (at {where})" if where else reason
        super().__init__(f"{path}: {text}" if path else text)

    def of(self, path: str) -> FormatError:
        """Return this error with the path of its file."""
        return type(self)(self.reason, offset=self.offset, table=self.table, field=self.field, path=path)


class LimitError(FormatError, RuntimeError):
    """A count or a size exceeds an explicit limit of the reader, the writer or a plan, or the machine's memory."""


def out_of_memory(what: str, error: MemoryError) -> LimitError:
    """Return the error for a MemoryError in `what`."""
    return LimitError(f"{what} takes more memory than this machine has ({error or 'no details'})")


@contextmanager
def memory_named(what: str) -> Iterator[None]:
    """Raise a LimitError that names `what` if the block raises a MemoryError."""
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(what, error) from error


class ModelError(TflqError, ValueError, RuntimeError):
    """A well-formed model that the operator's kernel cannot accept."""

    def __init__(
        self,
        reason: str,
        *,
        op: str = "",
        index: int | None = None,
        tensor: str = "",
        expected: object = None,
        got: object = None,
    ) -> None:
        self.reason, self.op, self.index, self.tensor = reason, op, index, tensor
        self.expected, self.got = expected, got
        text = reason
        if tensor:
            text += f" (tensor {quoted(tensor)})"
        if expected is not None or got is not None:
            text += f": expected {expected}, got {got}"
        super().__init__(text, place=_place(op, index))


class UnsupportedError(TflqError, NotImplementedError, ValueError):
    """No kernel of the profile takes this operator in this form."""

    def __init__(
        self,
        op: str,
        *,
        version: int | None = None,
        types: str = "",
        reason: str = "",
        nearest: str = "",
        index: int | None = None,
        profile: str = "",
    ) -> None:
        self.op, self.version, self.types, self.reason = op, version, types, reason
        self.nearest, self.index, self.profile = nearest, index, profile
        text = "unsupported"
        if version is not None:
            text += f", version {version}"
        if types:
            text += f", types {types}"
        if profile:
            text += f", under profile {profile}"
        if reason:
            text += f": {reason}"
        if nearest:
            text += f"; nearest supported form: {nearest}"
        super().__init__(text, place=_place(op, index))


def brief(error: TflqError) -> str:
    """Return an error's text without the profile's name and the forms that it supports."""
    text = str(error).split(", under profile")[0]
    if isinstance(error, UnsupportedError) and error.profile and error.reason:
        return f"{text}: {error.reason}"
    return text


class InputError(TflqError, ValueError):
    """An argument from the caller that does not fit."""

    def __init__(self, reason: str, *, name: str = "", expected: object = None, got: object = None) -> None:
        self.reason, self.name, self.expected, self.got = reason, name, expected, got
        text = f"{shown(name)}: {reason}" if name else reason
        told = (("expected", expected), ("got", got))
        parts = ", ".join(f"{word} {value}" for word, value in told if value is not None)
        super().__init__(f"{text}: {parts}" if parts else text)


class InputWarning(UserWarning):
    """An input is valid, but probably not what was meant."""


class ShapeError(InputError):
    """An array's shape is not the tensor's."""

    def __init__(self, name: str, expected: Sequence[int], got: Sequence[int]) -> None:
        super().__init__("shape does not match", name=name, expected=list(expected), got=list(got))


class ResizeError(InputError, RuntimeError):
    """A shape that an input of a graph cannot be given."""


class TypeMismatchError(InputError):
    """An array's element type is not the tensor's."""

    def __init__(self, name: str, expected: object, got: object) -> None:
        super().__init__("element type does not match", name=name, expected=expected, got=got)


class UnknownNameError(InputError):
    """There is no such tensor, signature, profile or runtime; `known` lists the existing ones."""

    def __init__(self, kind: str, name: object, known: Sequence[object] = (), *, meant: str = "") -> None:
        self.kind, self.known = kind, tuple(known)
        names, more = ", ".join(shown(str(k)) for k in self.known[:20]), ""
        if isinstance(known, range) and len(known) > 1:
            names = f"{known[0]} to {known[-1]}"
        elif len(self.known) > 20:
            more = f", ... ({len(self.known)} in all)"
        lower = {str(k).lower(): str(k) for k in self.known}
        near = [meant] if meant else get_close_matches(str(name), lower.values(), 1)
        near = near or get_close_matches(str(name).lower(), lower, 1)
        meant = f"; did you mean {shown(lower.get(near[0], near[0]))}?" if near else ""
        super().__init__(f"no {kind} {quoted(name)}{meant}" + (f"; there are: {names}{more}" if self.known else ""))
        self.name = str(name)


#: Names of arguments with one meaning. No function has two of one line.
_ARGUMENTS = (
    ("evidence", "dump", "dumps"),
    ("inputs", "calibration", "data", "samples", "x"),
    ("output", "path", "folder", "out", "file"),
    ("against", "golden", "runtime"),
)


class ArgumentError(UnknownNameError, TypeError):
    """A public function takes no argument of that name; `known` lists its arguments."""

    def __init__(self, function: str, name: str, known: Sequence[str]) -> None:
        same = {word for words in _ARGUMENTS if name in words for word in words}
        meant = next((word for word in known if word in same), "")
        super().__init__(f"argument of tflq.{function}", name, known, meant=meant)


def checking_arguments(function: FunctionType) -> Callable[..., Any]:
    """Return a public function with its signature, which raises ArgumentError for names of arguments that it lacks."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def checked(*words: Any, **named: Any) -> Any:
        for name in named:
            if name not in known:
                raise ArgumentError(function.__name__, name, known)
        return function(*words, **named)

    checked.__module__, checked.__qualname__ = "tflq", function.__name__  # where pickle finds it
    return checked


class OptionError(InputError):
    """An option, or a combination of options, that cannot be honoured."""


class CalibrationError(InputError):
    """Calibration data that cannot define a model's ranges; `sample` counts from 0, `name` is the tensor's."""

    def __init__(
        self, reason: str, *, sample: int | None = None, name: str = "", expected: object = None, got: object = None
    ) -> None:
        self.sample = sample
        place = "calibration data" if sample is None else f"calibration sample {sample}"
        super().__init__(reason, name=f"{place}, {name}" if name else place, expected=expected, got=got)
        self.name = name


class StateError(TflqError, RuntimeError, ValueError):
    """Calls in an order that has no meaning, such as invoke before allocate_tensors."""


class UndefinedResultError(TflqError, ArithmeticError, RuntimeError):
    """The original code aborts, or its result is undefined, for these values."""

    def __init__(self, function: str, reason: str, *, op: str = "", index: int | None = None) -> None:
        self.function, self.reason, self.op, self.index = function, reason, op, index
        super().__init__(f"{function}: {reason}", place=_place(op, index))


class OperatorFailed(TflqError, RuntimeError):
    """An operator raised while it was prepared or run; `__cause__` is the original error."""

    def __init__(self, op: str, index: int, phase: str, reason: str) -> None:
        self.op, self.index, self.phase, self.reason = op, index, phase, reason
        super().__init__(f"{phase} failed: {reason}", place=_place(op, index))


class GoldenError(TflqError, ValueError):
    """A golden file does not belong to this model, or lacks requested data."""


class LiveRuntimeError(TflqError, RuntimeError):
    """An error of a real runtime; `runtime` names it."""

    def __init__(self, runtime: str, reason: str) -> None:
        self.runtime, self.reason = runtime, reason
        super().__init__(f"{runtime}: {' / '.join(reason.split(chr(10)))}")


class RuntimeMissing(LiveRuntimeError):
    """The runtime is not installed in the Python that was searched."""


class RuntimeFailed(LiveRuntimeError):
    """The runtime refused the model, raised, aborted or timed out."""


def _place(op: str, index: int | None) -> str:
    if index is None:
        return f"{op}: " if op else ""
    return f"operator {index} {op}: ".replace("  ", " ")
