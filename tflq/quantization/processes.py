"""Run work whose inputs are known up front in several processes.

A process begins as a copy of this one (fork), so work can read everything in this process's memory. Only its result is
sent back. No result depends on the number of processes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, ForkProcess
from multiprocessing.reduction import ForkingPickler
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from tflq.errors import OptionError
from tflq.progress import Progress

T = TypeVar("T")
R = TypeVar("R")
#: work(item, progress) gives the item's result.
Work: TypeAlias = "Callable[[T, Progress | None], R]"

#: Seconds between two progress messages of one worker process.
_INTERVAL = 0.5


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


def _reduced(proxy: MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    """Return how to pickle a read-only mapping, which pickle does not support by itself."""
    return _read_only, (dict(proxy),)


ForkingPickler.register(MappingProxyType, _reduced)


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that is not possible.

    Raises:
        OptionError: It is below 1, or above 1 on a system without fork.
    """
    if jobs < 1:
        raise OptionError(f"jobs: expected at least 1, got {jobs}")
    if jobs > 1 and "fork" not in multiprocessing.get_all_start_methods():
        raise OptionError(f"jobs: {jobs} processes need fork, which this system lacks; use 1")


def available() -> int:
    """Return the useful number of processes: the processors that this process may run on."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(work: Work[T, R], items: Sequence[T], jobs: int, progress: Progress | None) -> Generator[R, None, None]:
    """Yield the results of all items in order; at most `jobs` of them are computed at the same time.

    If a process ends without a result, its work is repeated here, which raises the original error.
    """
    if jobs == 1 or len(items) < 2:
        yield from (work(item, progress) for item in items)
        return
    workers: dict[Connection, tuple[int, ForkProcess]] = {}
    finished: dict[int, tuple[R] | None] = {}
    waiting = iter(enumerate(items))
    try:
        for number in range(len(items)):
            while number not in finished:
                while len(workers) < jobs and (entry := next(waiting, None)) is not None:
                    connection, process = _begun(work, entry[1], quiet=progress is None)
                    workers[connection] = entry[0], process
                ready = wait(list(workers))
                for connection in [c for c in workers if c in ready]:
                    _handle_message(connection, workers, finished, progress)
            result = finished.pop(number)
            yield work(items[number], progress) if result is None else result[0]
    finally:
        for connection, (_, process) in workers.items():
            process.kill()
            process.join()
            connection.close()


def _begun(work: Work[T, R], item: T, *, quiet: bool) -> tuple[Connection, ForkProcess]:
    """Start a process for an item; return the process and the connection to it."""
    context: ForkContext = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, item, sender, quiet), daemon=True)
    process.start()
    sender.close()
    return receiver, process


def _work(work: Work[T, R], item: T, sender: Connection, quiet: bool) -> None:
    """Send progress messages for an item, then its result; if the work fails, send nothing more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    last = time.monotonic()

    def tell(what: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > _INTERVAL:
            last = time.monotonic()
            sender.send((what, done, total))

    try:
        result = work(item, None if quiet else tell)
    except Exception:  # the parent repeats the work and raises the error
        return
    sender.send((result,))


def _handle_message(
    connection: Connection,
    workers: dict[Connection, tuple[int, ForkProcess]],
    finished: dict[int, tuple[R] | None],
    progress: Progress | None,
) -> None:
    """Handle one message of a worker process: progress, or the result that ends it."""
    try:
        message = connection.recv()
    except EOFError:
        message = None
    if message is not None and len(message) == 3:
        if progress is not None:
            progress(*message)
        return
    number, process = workers.pop(connection)
    finished[number] = message
    connection.close()
    process.join()
