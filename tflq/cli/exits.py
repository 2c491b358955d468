"""Exit codes, and which error leads to which."""

from __future__ import annotations

from enum import IntEnum

import click

from tflq.errors import LiveRuntimeError, OperatorFailed, TflqError, UndefinedResultError, UnsupportedError


class Exit(IntEnum):
    """What the process says when it ends."""

    SAME = 0
    DIFFERS = 1
    MISUSE = 2
    UNSUPPORTED = 3
    RUNTIME_FAILED = 4
    CLOSE = 5  # not the same bits, but within what the profile promises
    INTERRUPTED = 130


#: The first class that fits decides.
_EXITS: tuple[tuple[type[BaseException], Exit], ...] = (
    (UnsupportedError, Exit.UNSUPPORTED),
    (UndefinedResultError, Exit.UNSUPPORTED),
    (OperatorFailed, Exit.UNSUPPORTED),
    (LiveRuntimeError, Exit.RUNTIME_FAILED),
    (TflqError, Exit.MISUSE),
    (click.ClickException, Exit.MISUSE),
    (MemoryError, Exit.UNSUPPORTED),
    (KeyboardInterrupt, Exit.INTERRUPTED),
)


def exit_of(error: BaseException) -> Exit | None:
    """The exit code for an error; None for one that nobody foresaw, which should be seen in full."""
    return next((code for kind, code in _EXITS if isinstance(error, kind)), None)
