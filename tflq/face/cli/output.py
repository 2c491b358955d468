"""Standard output and standard error: reports, documents, errors, and readers that leave early."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from tflq.errors import FileAccessError
from tflq.escaping import printable
from tflq.statements import facts_of, subject_of

if TYPE_CHECKING:
    from tflq.face.report.blocks import Report

#: The path that printing errors name.
STANDARD_OUTPUT = "standard output"
#: Where a command keeps the warnings that it has printed.
_WARNED = "tflq.warnings"
#: Where a command keeps the path of the file that gives defaults, until it is named.
CONFIGURATION = "tflq.configuration"
#: Where a command keeps the lines on the files that it wrote beside its answer.
_WRITTEN = "tflq.written"


def say(report: Report) -> None:
    """Print a report; with --quiet only its verdict, or its first line if it has none."""
    from tflq.face.report.render.line import Line
    from tflq.face.report.render.text import fit, lines_of, text_of, wants_colour

    lines = lines_of(report)
    _say_defaults()
    if is_quiet():
        verdict = report.verdict
        lines = islice(lines, 1) if verdict is None else iter([Line(verdict.line, verdict.style)])
    _print(text_of(fit(lines), coloured=sys.stdout is not None and wants_colour(sys.stdout)))


def is_quiet() -> bool:
    """Return whether --quiet was given: only the verdict is printed, and no progress."""
    return bool(_context().get("tflq.quiet"))


def _say_defaults() -> None:
    """Print the options that pyproject.toml gives, once."""
    import click
    from click.core import ParameterSource

    context = click.get_current_context(silent=True)
    path = "" if context is None else context.meta.pop(CONFIGURATION, "")
    if context is None or not path or is_quiet():
        return
    given = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
            values = context.lookup_default(name)
            given += [f"{parameter.opts[0]} {v}" for v in (values if isinstance(values, list) else [values])]
    if given:
        say_error(printable(f"{path}: {', '.join(given)}"))


def _context() -> dict[str, Any]:
    """Return what the parts of this command share; outside of a command, an empty table."""
    import click

    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta


def say_document(document: Mapping[str, Any]) -> None:
    """Print a JSON document, in ASCII unless standard output is UTF-8.

    Warnings that were printed on standard error are rows of its `facts`, too.
    """
    from tflq.face.report.json import dumps

    if warned := _context().get(_WARNED):
        document = {**document, "facts": [*document.get("facts", ()), *facts_of(warned)]}
    encoding = getattr(sys.stdout, "encoding", None) or ""
    _print(dumps(document, ascii_only=encoding.lower().replace("-", "") != "utf8") + "\n")


def say_text(text: str) -> None:
    """Print text unchanged, and end its last line."""
    _print(text + "\n")


def say_warning(warning: str) -> None:
    """Print a warning on standard error, once for each kind and input, and keep it for the document of --json."""
    warned = _context().setdefault(_WARNED, [])
    if subject_of(warning) not in map(subject_of, warned):
        warned.append(warning)
        say_error(f"tflq: warning: {printable(str(warning))}")


def say_written(path: str, what: str) -> None:
    """Name a file that was written beside the answer, on standard error when the command ends; not with --quiet.

    Streams are not named: they may be standard error itself.

    Args:
        path: The file.
        what: Its form, and how much it holds.
    """
    import click

    from tflq.model.storage.output import is_stream

    context = click.get_current_context(silent=True)
    if context is None or is_quiet() or is_stream(path):
        return
    if _WRITTEN not in context.meta:
        lines: dict[str, str] = {}
        context.meta[_WRITTEN] = lines
        context.call_on_close(lambda: say_lines(lines.values()))
    context.meta[_WRITTEN][path] = printable(f"wrote {path} ({what})")


def say_lines(lines: Iterable[str]) -> None:
    """Print lines on standard error, if they can be written."""
    for line in lines:
        say_error(line)


def say_error(line: str) -> None:
    """Print one line on standard error, if it can be written."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def accept_all_text() -> None:
    """Let standard output and error escape characters that their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def forget_the_reader() -> None:
    """Discard everything still to be printed, so that Python's final flush cannot fail."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end_output() -> None:
    """Flush standard output, if it can still be written."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        forget_the_reader()


def _print(text: str) -> None:
    """Print text. A reader that has left (`| head`) is not an error, so the exit code still gives the verdict.

    Raises:
        FileAccessError: Standard output is closed or full.
    """
    if sys.stdout is None:
        raise FileAccessError(STANDARD_OUTPUT, "is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        forget_the_reader()
    except (OSError, ValueError) as error:
        forget_the_reader()
        raise FileAccessError(STANDARD_OUTPUT, getattr(error, "strerror", None) or str(error)) from error
