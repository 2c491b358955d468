"""Long work: progress reports, ends of threads, and Ctrl-C held back while imports run.

Delay Ctrl-C while modules are imported or functions are compiled.

If an import is interrupted, Python removes the module, but not the registrations of numba, llvmlite and others. A
second import then fails, and the process can no longer compute.

The callback of progress that all rooms share.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, TypeAlias

#: Handlers are restored in this order; the last one may raise.
_NUMBERS = (signal.SIGTERM, signal.SIGINT)


class _Pending:
    """A handler that keeps the first signal for later."""

    def __init__(self) -> None:
        self.signals: list[tuple[int, FrameType | None]] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.signals.append((number, frame))


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back SIGINT and SIGTERM until the context ends, then pass the first one to its handler.

    Signals without a handler in Python act at once. Does nothing in other threads, which no signal interrupts.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending, before = _Pending(), {number: signal.getsignal(number) for number in _NUMBERS}
    held: dict[int, Any] = {n: h for n, h in before.items() if callable(h) and not isinstance(h, _Pending)}
    try:
        for number in reversed([n for n in _NUMBERS if n in held]):
            signal.signal(number, pending)
        yield
    finally:
        for held_number, handler in held.items():
            signal.signal(held_number, handler)
        if pending.signals:
            came, frame = pending.signals[0]
            held[came](came, frame)


def import_whole(name: str) -> ModuleType:
    """Import a module, or return it if it is imported already; see `uninterrupted`."""
    known = sys.modules.get(name)
    if known is not None and not getattr(getattr(known, "__spec__", None), "_initializing", False):
        return known
    with uninterrupted():
        return import_module(name)


#: Called as progress(what, done, total) while work goes on; a total of 0 means that it is unknown.
Progress: TypeAlias = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Ignore progress."""


#: Threads whose work is not waited for any longer.
_LEFT: set[int] = set()
_LEAVING = threading.Lock()


class LeftAlone(BaseException):
    """Ends a thread whose work is not waited for any longer."""


def checkpoint() -> None:
    """End this thread if its work is not waited for any longer. Called between parts of long work."""
    if _LEFT and threading.get_ident() in _LEFT:
        raise LeftAlone


def leave(threads: Iterable[threading.Thread]) -> None:
    """Let threads that `leavable` runs in end at their next checkpoint."""
    with _LEAVING:
        _LEFT.update(thread.ident for thread in threads if thread.ident is not None and thread.is_alive())


@contextmanager
def leavable() -> Iterator[None]:
    """Run what a thread does until it is left alone."""
    try:
        yield
    except LeftAlone:
        pass
    finally:
        with _LEAVING:
            _LEFT.discard(threading.get_ident())
