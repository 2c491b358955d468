"""A progress bar on a terminal while kernels are compiled."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tflq.engine.jit.compilations import Compilations, heard
from tflq.face.report.progress import progress_bar

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
    begun: list[float] = []

    def tell(compilations: Compilations) -> None:
        begun.append(time.monotonic())
        if begun[-1] - begun[0] > PATIENCE:  # the bar hears of all that follows
            draw = stack.enter_context(progress_bar())
            draw(f"compiling kernels, once: {compilations.functions}", compilations.functions, 0)

    with heard(tell), ExitStack() as stack:
        yield
