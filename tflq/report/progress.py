"""A progress bar on a terminal, and nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tflq.escaping import shown


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A callable progress(what, done, total) that draws on standard error while the context lasts.

    A total of 0 stands for one that nobody knows.
    """
    if not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def draw(what: str, done: int, total: int) -> None:
            bar.update(task, description=shown(what), completed=done, total=total or None)

        yield draw


def _nothing(what: str, done: int, total: int) -> None:
    pass
