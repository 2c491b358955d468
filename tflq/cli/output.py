"""Standard output: reports and documents, and a reader that may leave before the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tflq.report.layout import Line


def say(lines: Iterable[Line]) -> None:
    """Print lines of a report."""
    from tflq.report.layout import write

    try:
        write(lines, sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_the_reader()


def say_document(document: Mapping[str, Any]) -> None:
    """Print a JSON document."""
    from tflq.report.json import dumps

    try:
        sys.stdout.write(dumps(document) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_the_reader()


def _forget_the_reader() -> None:
    """Whoever read our output has seen enough (`| head`); that says nothing about the verdict, so go on to the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
