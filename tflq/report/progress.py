"""Progress on standard error: a bar on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tflq.escaping import shown
from tflq.jit.compilations import Compilations, heard

#: Called as progress(what, done, total) while work goes on.
Told = Callable[[str, int, int], None]
#: Seconds between two lines.
INTERVAL = 10.0


@contextmanager
def progress_bar(*, lines: bool = False, quiet: bool = False) -> Iterator[Told]:
    """Yield a callable progress(what, done, total) that writes to standard error while the context lasts.

    A total of 0 means that it is unknown. Without a terminal, it writes a line every ten seconds if `lines` is
    True; with `quiet` it writes nothing.
    """
    if quiet or not (lines or sys.stderr.isatty()):
        yield _nothing
        return
    if not sys.stderr.isatty():
        yield Lines(time.monotonic, lambda line: print(line, file=sys.stderr, flush=True))
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )

    def compiles(compilations: Compilations) -> None:
        bar.update(task, description=f"compiling kernels, once: {compilations.functions}")

    with Progress(*columns, console=Console(stderr=True), transient=True) as bar, heard(compiles):
        task = bar.add_task("", total=None)

        def draw(what: str, done: int, total: int) -> None:
            bar.update(task, description=shown(what), completed=done, total=total or None)

        yield draw


class Lines:
    """Progress as lines, one every INTERVAL seconds of `clock`: the task, its share done, seconds gone and left.

    Seconds left are guessed from the share that is done since the total was last another one.
    """

    def __init__(self, clock: Callable[[], float], write: Callable[[str], None]) -> None:
        self._clock, self._write = clock, write
        self._start = self._last = self._began = clock()
        self._total = self._first = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Write a line if INTERVAL seconds have passed since the last."""
        now = self._clock()
        if total != self._total:
            self._total, self._began, self._first = total, now, done
        if now - self._last < INTERVAL:
            return
        self._last = now
        text = f"tflq: {shown(what)}, {now - self._start:.0f} s gone"
        if total and done > self._first:
            left = (now - self._began) * (total - done) / (done - self._first)
            text += f", {done / total:.0%} done, about {left:.0f} s left"
        self._write(text)


def _nothing(what: str, done: int, total: int) -> None:
    pass
