"""Print an answer, write its files, and end with its exit code.

Exit codes, and the exit code of each error.

Standard output and standard error: reports, documents, errors, and readers that leave early.

Check output files of verbs before the work begins, and write them.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from tflq.errors import (
    FileAccessError,
    LiveRuntimeError,
    OperatorFailed,
    RuntimeMissing,
    TflqError,
    UndefinedResultError,
    UnsupportedError,
)
from tflq.face.cli.options import F, html_option, json_option, overlay_option
from tflq.texts import facts_of, printable, subject_of

if TYPE_CHECKING:
    from tflq.face.report.blocks import Report


class Exit(IntEnum):
    """The exit codes of the process."""

    SAME = 0
    DIFFERS = 1
    MISUSE = 2
    UNSUPPORTED = 3
    RUNTIME_FAILED = 4
    CLOSE = 5  # not the same bits, but within the profile's promise
    EXPLAINED = 6  # differs exactly as two known runtimes do
    UNFORESEEN = 70  # an error in tflq itself; the number is EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130  # 128 and the number of SIGINT
    TERMINATED = 143  # 128 and the number of SIGTERM


#: The first class that matches decides.
_EXITS: tuple[tuple[type[BaseException], Exit], ...] = (
    (UnsupportedError, Exit.UNSUPPORTED),
    (UndefinedResultError, Exit.UNSUPPORTED),
    (OperatorFailed, Exit.UNSUPPORTED),
    (LiveRuntimeError, Exit.RUNTIME_FAILED),
    (TflqError, Exit.MISUSE),
    (click.ClickException, Exit.MISUSE),
    (OSError, Exit.MISUSE),  # of the system: a full disk, too many files
    (MemoryError, Exit.MISUSE),  # as a LimitError
    (KeyboardInterrupt, Exit.INTERRUPTED),
)


def exit_of(error: BaseException) -> Exit:
    """Return the exit code for an error."""
    return next((code for kind, code in _EXITS if isinstance(error, kind)), Exit.UNFORESEEN)


#: The exit code of each verdict of each verb, by the verdict's value.
VERDICTS: dict[str, Exit] = {
    # verify, explain, golden diff
    "same": Exit.SAME,
    "close": Exit.CLOSE,
    "differs": Exit.DIFFERS,
    "explained": Exit.EXPLAINED,
    "accepted": Exit.SAME,
    "incomplete": Exit.UNSUPPORTED,
    "nothing compared": Exit.UNSUPPORTED,
    # conform
    "passes": Exit.SAME,
    "fails": Exit.DIFFERS,
    "refuses too much": Exit.UNSUPPORTED,
    "target failed": Exit.RUNTIME_FAILED,
    "interrupted": Exit.INTERRUPTED,
    # fit
    "fits": Exit.SAME,
    "mix": Exit.DIFFERS,
    "partly": Exit.DIFFERS,
    "none": Exit.DIFFERS,
    "nothing": Exit.UNSUPPORTED,
    "cannot tell": Exit.UNSUPPORTED,
    # session
    "compared": Exit.SAME,
    # prove
    "equal": Exit.SAME,
    "not decided": Exit.UNSUPPORTED,
    # prove --check
    "holds": Exit.SAME,
    "void": Exit.DIFFERS,
    # lint
    "clean": Exit.SAME,
    "findings": Exit.DIFFERS,
}


def exit_of_verdict(verdict: Enum | str) -> Exit:
    """Return the exit code of a verdict; the only conversion between them. An exit code is its own."""
    if isinstance(verdict, Exit):
        return verdict
    return VERDICTS[verdict.value if isinstance(verdict, Enum) else verdict]


def exit_of_check(verdict: str | None, error: Exception | None) -> Exit:
    """Return the exit code of a verification; without a verdict it met an error, or LiteRT is missing."""
    if verdict is not None:
        return exit_of_verdict(verdict)
    return Exit.SAME if error is None or isinstance(error, RuntimeMissing) else exit_of(error)


#: The first of these exit codes that occurs is the command's.
_GRAVEST = (
    Exit.INTERRUPTED,
    Exit.DIFFERS,
    Exit.UNFORESEEN,
    Exit.RUNTIME_FAILED,
    Exit.MISUSE,
    Exit.UNSUPPORTED,
    Exit.EXPLAINED,
    Exit.CLOSE,
    Exit.SAME,
)


def gravest(codes: Iterable[Exit]) -> Exit:
    """Return the exit code for several models."""
    occurring = set(codes)
    return next(code for code in _GRAVEST if code in occurring)


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
    from tflq.face.report.render.text import StyledLine, fit, lines_of, text_of, wants_colour

    lines = lines_of(report)
    _say_defaults()
    if is_quiet():
        verdict = report.verdict
        lines = islice(lines, 1) if verdict is None else iter([StyledLine(verdict.line, verdict.style)])
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


def say_answer(report: Report, document: Callable[[], Mapping[str, Any]], *, as_json: bool) -> None:
    """Print the answer of a command: its report, or with --json the document."""
    if as_json:
        say_document(document())
    else:
        say(report)


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


force_option = click.option("-f", "--force", is_flag=True, help="Replace output files that exist.")


def check_files(outputs: Iterable[str | None], sources: Iterable[str | None] = (), *, force: bool) -> None:
    """Refuse outputs that cannot be written, that exist without --force, or that are sources. None: not given.

    Every file that another word of the command line names is a source, too: a profile, labels, a baseline.
    """
    from tflq.model.storage.output import check_outputs

    written = [path for path in outputs if path is not None]
    present = [path for path in sources if path is not None and os.path.exists(path)]
    check_outputs(written, [*present, *_other_files(written)], replace=force)


def _other_files(written: Iterable[str]) -> Iterator[str]:
    """Yield the files that words of the command line name, alone or as NAME=FILE, without one word for each output."""
    context = click.get_current_context(silent=True)
    words: list[object] = [] if context is None else list(context.params.values())
    words = [inner for word in words for inner in (word if isinstance(word, tuple) else (word,))]
    for path in written:
        if path in words:
            words.remove(path)
    for word in words:
        if isinstance(word, str):
            yield from (path for path in (word, word.rpartition("=")[2]) if os.path.isfile(path))


@dataclass(frozen=True)
class Delivery:
    """How a verb's answer is given: as text or a document on standard output, and as files beside it."""

    html: str | None
    overlay: str | None
    force: bool
    as_json: bool

    def check(self, *outputs: str | None) -> None:
        """Refuse files that cannot be written, before the work begins: the page, the node data, and `outputs`."""
        check_files([self.html, self.overlay, *outputs], force=self.force)

    def give(
        self,
        verdict: Enum | str,
        report: Report,
        document: Callable[[], Mapping[str, Any]],
        drawn: tuple[Any, ...] = (),
        colourings: Callable[[], Iterable[Any]] = tuple,
    ) -> Exit:
        """Write the files that are asked for, print the answer, and return the exit code of its verdict.

        Args:
            verdict: The verdict, or an exit code.
            report: The answer as text and page.
            document: Makes the answer as a document, for --json.
            drawn: What the page draws, if anything: a model, a profile, a signature.
            colourings: Makes the colourings of the drawn operators, of which --overlay takes the first.
        """
        if self.html is not None:
            write_page(self.html, report, *drawn)
        if self.overlay is not None:
            write_overlay(self.overlay, colourings())
        say_answer(report, document, as_json=self.as_json)
        return exit_of_verdict(verdict)


def delivery_options(function: F) -> F:
    """Add --html, --force and --json, passed on together as `out`: a Delivery."""

    @functools.wraps(function)
    def delivered(
        *words: Any, html: str | None, force: bool, as_json: bool, overlay: str | None = None, **options: Any
    ) -> Any:
        return function(*words, out=Delivery(html, overlay, force, as_json), **options)

    return html_option(force_option(json_option(cast(F, delivered))))


def drawing_options(function: F) -> F:
    """Add the options of `delivery_options`, and --overlay."""
    return overlay_option(delivery_options(function))


def golden_place(text: str) -> str | Path:
    """Return the place of a golden: a path, even one with the name of a runtime, or a URL."""
    from tflq.model.storage.stores import is_url, local_path

    place = local_path(text)
    return place if is_url(place) else Path(place)


def check_golden(path: str, sources: Iterable[str | None], *, force: bool) -> None:
    """Refuse golden outputs; see check_files."""
    from tflq.comparison.goldens.stored import check_golden_output
    from tflq.model.storage.stores import is_url

    present = [source for source in sources if source is not None and (is_url(source) or os.path.exists(source))]
    check_golden_output(path, present, replaces=force)


def write_text(path: str, text: str) -> None:
    """Write UTF-8 text with the same line ends on every system."""
    from tflq.model.storage.output import write_file
    from tflq.texts import valid

    write_file(path, valid(text).encode())


def write_page(
    path: str, report: Report, model: Any = None, profile: Any = "litert-ref", signature: str | None = None
) -> None:
    """Write a report as an HTML page; with `model`, the page draws its operators as prepared under `profile`.

    Those are the operators of a signature, by default of the first. Warnings that were printed are on the page, too.
    """
    from tflq.face.report.blocks import FactLine
    from tflq.face.report.graph.drawing import view_of
    from tflq.face.report.render.html import page_of

    warned = [FactLine(f"warning: {warning}", "warning") for warning in _context().get(_WARNED, ())]
    report = replace(report, blocks=[*report.blocks, *warned])
    write_html(path, page_of(report, None if model is None else view_of(model, profile, signature)))


def write_html(path: str, page: str) -> None:
    """Write an HTML page, and name the file."""
    write_text(path, page)
    say_written(path, "HTML page")


def write_overlay(path: str, colourings: Iterable[Any]) -> None:
    """Write the first colouring of operators as node data for Model Explorer.

    Raises:
        InputError: There is none: no operator was compared alone.
    """
    from tflq.errors import InputError
    from tflq.face.report.verbs.view import overlay

    first = next(iter(colourings), None)
    if first is None:
        raise InputError("--overlay: there are no results of single operators; isolated mode compares each")
    write_node_data(path, overlay(first))


def write_node_data(path: str, document: Mapping[str, Any]) -> None:
    """Write node data for Model Explorer, and name the file."""
    from tflq.face.report.json import dumps

    write_text(path, dumps(document))
    say_written(path, "node data for Model Explorer")


def read_words(path: str) -> list[str]:
    """Return the lines of a text file, such as names of classes."""
    from tflq.errors import FileAccessError
    from tflq.model.storage.kinds import read_bytes

    try:
        return [line.strip() for line in read_bytes(path).decode().splitlines()]
    except UnicodeDecodeError as error:
        raise FileAccessError(path, str(error)) from error


def write_arrays(path: str, arrays: Mapping[str, Any]) -> dict[str, str]:
    """Write an `.npz` archive, to standard output if the path is "-"; return the key of each name.

    Strings are stored as bytes, to avoid pickles.
    """
    import numpy as np

    from tflq.model.storage import arrays as archive

    if path == "-":
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "out.npz")
            keys = write_arrays(file, arrays)
            with open(file, "rb") as data:
                shutil.copyfileobj(data, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return keys
    plain = {name: value.astype(np.bytes_) if value.dtype.kind == "O" else value for name, value in arrays.items()}
    return archive.write_arrays(path, plain)
