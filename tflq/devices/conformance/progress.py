"""Progress of long work: a callable, and a thread that calls it while one call lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tflq.progress import Progress, silent

#: Seconds between two looks.
_LOOK = 1.0


@contextmanager
def watch(tell: Progress, what: str, done: Callable[[], int], total: int) -> Iterator[None]:
    """Report done() of `total` every second while the context lasts."""
    if tell is silent:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK):
            tell(what, done(), total)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
