"""Check output files of verbs before the work begins, and write them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.output import say_written

if TYPE_CHECKING:
    from tflq.face.report.blocks import Report

force_option = click.option("-f", "--force", is_flag=True, help="Replace output files that exist.")


def check_files(outputs: Iterable[str | None], sources: Iterable[str | None], *, force: bool) -> None:
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


def golden_place(text: str) -> str | Path:
    """Return the place of a golden: a path, even one with the name of a runtime, or a URL."""
    from tflq.model.storage.remote import is_url, local_path

    place = local_path(text)
    return place if is_url(place) else Path(place)


def check_golden(path: str, sources: Iterable[str | None], *, force: bool) -> None:
    """Refuse golden outputs; see check_files."""
    from tflq.comparison.verification.goldens import check_golden_output
    from tflq.model.storage.remote import is_url

    present = [source for source in sources if source is not None and (is_url(source) or os.path.exists(source))]
    check_golden_output(path, present, replaces=force)


def write_text(path: str, text: str) -> None:
    """Write UTF-8 text with the same line ends on every system."""
    from tflq.escaping import valid
    from tflq.model.storage.output import write_file

    write_file(path, valid(text).encode())


def write_page(
    path: str, report: Report, model: Any = None, profile: Any = "litert-ref", signature: str | None = None
) -> None:
    """Write a report as an HTML page; with `model`, the page draws its operators as prepared under `profile`.

    Those are the operators of a signature, by default of the first.
    """
    from tflq.face.report.graph.standard import view_of
    from tflq.face.report.render.html import page_of

    write_html(path, page_of(report, None if model is None else view_of(model, profile, signature)))


def write_html(path: str, page: str) -> None:
    """Write an HTML page, and name the file."""
    write_text(path, page)
    say_written(path, "HTML page")


def write_junit(path: str, text: str) -> None:
    """Write JUnit XML, and name the file with its counts."""
    from tflq.face.report.junit import counts_text

    write_text(path, text)
    say_written(path, f"JUnit, {counts_text(text)}")


def write_overlay(path: str, colourings: Iterable[Any]) -> None:
    """Write the first colouring of operators as node data for Model Explorer.

    Raises:
        InputError: There is none: no operator was compared alone.
    """
    from tflq.errors import InputError
    from tflq.face.report.verbs.view.overlay import overlay

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
    from tflq.model.storage.reading import read_bytes

    try:
        return [line.strip() for line in read_bytes(path).decode().splitlines()]
    except UnicodeDecodeError as error:
        raise FileAccessError(path, str(error)) from error


def write_arrays(path: str, arrays: Mapping[str, Any]) -> dict[str, str]:
    """Write an `.npz` archive, to standard output if the path is "-"; return the key of each name.

    Strings are stored as bytes, to avoid pickles.
    """
    import numpy as np

    from tflq.model.storage import archive

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
