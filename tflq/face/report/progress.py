"""Progress on standard error, and a bar while kernels are compiled.

Progress on standard error: a bar on a terminal, elsewhere a line every ten seconds.

A progress bar on a terminal while kernels are compiled.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from tflq.interrupts import Progress, silent
from tflq.texts import shown

if TYPE_CHECKING:
    from tflq.engine.jit.compiled import Compilations

#: Seconds between two lines.
INTERVAL = 10.0


@contextmanager
def progress_bar(*, lines: bool = False, quiet: bool = False) -> Iterator[Progress]:
    """Yield a callable progress(what, done, total) that writes to standard error while the context lasts.

    A total of 0 means that it is unknown. Without a terminal, it writes a line every ten seconds if `lines` is
    True; with `quiet` it writes nothing.
    """
    if quiet or not (lines or sys.stderr.isatty()):
        yield silent
        return
    if not sys.stderr.isatty():
        told = Lines(time.monotonic, lambda line: print(line, file=sys.stderr, flush=True))
        with _repeat(told):
            yield told
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

    from tflq.engine.jit.compiled import heard

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

    Seconds left are estimated from the share that is done since the total was last another one. The first estimate of a
    total is written after a second if it is longer than INTERVAL. Threads may share it.
    """

    def __init__(self, clock: Callable[[], float], write: Callable[[str], None]) -> None:
        self._clock, self._write = clock, write
        self._start = self._last = self._began = clock()
        self._total = self._first = 0
        self._is_estimated = False
        self._told: tuple[str, int, int] | None = None
        self._lock = threading.Lock()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Write a line if INTERVAL seconds have passed since the last."""
        with self._lock:
            self._told = what, done, total
            self._line(what, done, total)

    def again(self) -> None:
        """Write the last line once more if INTERVAL seconds have passed: the work takes long."""
        with self._lock:
            if self._told:
                self._line(*self._told)

    def _line(self, what: str, done: int, total: int) -> None:
        now = self._clock()
        if total != self._total:
            self._total, self._began, self._first, self._is_estimated = total, now, done, False
        left = (now - self._began) * (total - done) / (done - self._first) if total and done > self._first else None
        is_new = left is not None and left > INTERVAL and now - self._began >= 1 and not self._is_estimated
        if now - self._last < INTERVAL and not is_new:
            return
        self._last = now
        text = f"tflq: {shown(what)}, {now - self._start:.0f} s gone"
        if left is not None:
            self._is_estimated = True
            text += f", {done / total:.0%} done, about {left:.0f} s left"
        self._write(text)


@contextmanager
def _repeat(told: Lines) -> Iterator[None]:
    """Have a thread write the last line again every INTERVAL seconds, however long a step takes."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(INTERVAL / 10):
            told.again()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


#: Seconds after the first function until the bar is shown.
PATIENCE = 0.5


@contextmanager
def compiling(*, quiet: bool = False) -> Iterator[None]:
    """Show a bar on standard error while functions are compiled: on a terminal only, and after half a second.

    If the work has a bar of its own, that bar shows it.
    """
    if quiet or sys.stderr is None or sys.stderr.closed or not sys.stderr.isatty():
        yield
        return
    from tflq.engine.jit.compiled import heard

    begun: list[float] = []

    def tell(compilations: Compilations) -> None:
        begun.append(time.monotonic())
        if begun[-1] - begun[0] > PATIENCE:  # the bar hears of all that follows
            draw = stack.enter_context(progress_bar())
            draw(f"compiling kernels, once: {compilations.functions}", compilations.functions, 0)

    with heard(tell), ExitStack() as stack:
        yield
