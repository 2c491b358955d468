"""Exit codes, and the exit code of each error."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum

import click

from tflq.errors import (
    LiveRuntimeError,
    OperatorFailed,
    RuntimeMissing,
    TflqError,
    UndefinedResultError,
    UnsupportedError,
)


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
