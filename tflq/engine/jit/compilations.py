"""Notification of compilations, which take seconds once: a context can count them and have a callback called."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Compilations:
    """The functions compiled while a context lasts, for how many argument types each, and the seconds it took.

    `tell` is called with this object whenever a compilation begins or ends; without it, the enclosing context's is
    called.
    """

    def __init__(self, tell: Callable[[Compilations], None] | None, around: Compilations | None) -> None:
        self.functions, self.seconds = 0, 0.0
        self._tell, self._around = tell, around
        self._depth, self._start = 0, 0.0

    def begin(self) -> None:
        """Note that a function begins to be compiled, perhaps for another one that is being compiled."""
        now = time.monotonic()
        for listening in self._and_around():
            listening._start = now if listening._depth == 0 else listening._start
            listening._depth += 1
        self._say()

    def end(self) -> None:
        """Note that the function that began last is done."""
        now = time.monotonic()
        for listening in self._and_around():
            listening.functions += 1
            listening._depth -= 1
            listening.seconds += now - listening._start if listening._depth == 0 else 0.0
        self._say()

    def _and_around(self) -> Iterator[Compilations]:
        listening: Compilations | None = self
        while listening is not None:
            yield listening
            listening = listening._around

    def _say(self) -> None:
        told = next((listening for listening in self._and_around() if listening._tell is not None), None)
        if told is not None and told._tell is not None:
            told._tell(told)


_HEARD: ContextVar[Compilations | None] = ContextVar("compilations", default=None)


@contextmanager
def heard(tell: Callable[[Compilations], None] | None = None) -> Iterator[Compilations]:
    """Yield the compilations of this thread while the context lasts, those within inner contexts included."""
    compilations = Compilations(tell, _HEARD.get())
    token = _HEARD.set(compilations)
    try:
        yield compilations
    finally:
        _HEARD.reset(token)


def listener() -> Compilations | None:
    """Return the object that receives this thread's compilations now."""
    return _HEARD.get()
