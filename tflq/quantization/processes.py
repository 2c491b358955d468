"""Pieces of work that hang on nothing but what is known before, in several processes.

A process begins as a copy of this one (fork), so that work may read everything that is at hand here, and what it leaves
behind beside its result is lost. No result hangs on how many there are.
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
from tflq.quantization.progress import Progress

T = TypeVar("T")
R = TypeVar("R")
#: work(item, progress) gives the item's result.
Work: TypeAlias = "Callable[[T, Progress | None], R]"

#: Seconds between two tidings of one process.
_INTERVAL = 0.5


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


def _reduced(proxy: MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    """Return how a read-only mapping travels between processes: pickle alone knows no way."""
    return _read_only, (dict(proxy),)


ForkingPickler.register(MappingProxyType, _reduced)


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that there cannot be.

    Raises:
        OptionError: It is below 1, or above 1 on a system whose processes cannot be copied.
    """
    if jobs < 1:
        raise OptionError(f"jobs: expected a number from 1 on, got {jobs}")
    if jobs > 1 and "fork" not in multiprocessing.get_all_start_methods():
        raise OptionError(f"jobs: {jobs} processes need fork, which this system has not; take 1")


def available() -> int:
    """Return how many processes are of use on this machine: its processors that this one may run on."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(work: Work[T, R], items: Sequence[T], jobs: int, progress: Progress | None) -> Generator[R, None, None]:
    """Yield the results of all items in order, at most `jobs` of them made at the same time.

    Where a process ends without a result, whatever the reason, its work is done here, which raises what it raised.
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
                    _heard(connection, workers, finished, progress)
            result = finished.pop(number)
            yield work(items[number], progress) if result is None else result[0]
    finally:
        for connection, (_, process) in workers.items():
            process.kill()
            process.join()
            connection.close()


def _begun(work: Work[T, R], item: T, *, quiet: bool) -> tuple[Connection, ForkProcess]:
    """Return a new process at work on an item, and the connection to it."""
    context: ForkContext = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, item, sender, quiet), daemon=True)
    process.start()
    sender.close()
    return receiver, process


def _work(work: Work[T, R], item: T, sender: Connection, quiet: bool) -> None:
    """Send what there is to tell about an item on the way, at last its result; nothing more where that fails."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that waits for it ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    last = time.monotonic()

    def tell(what: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > _INTERVAL:
            last = time.monotonic()
            sender.send((what, done, total))

    try:
        result = work(item, None if quiet else tell)
    except Exception:  # it is met again, and raised, by who waits
        return
    sender.send((result,))


def _heard(
    connection: Connection,
    workers: dict[Connection, tuple[int, ForkProcess]],
    finished: dict[int, tuple[R] | None],
    progress: Progress | None,
) -> None:
    """Take one message of a process: what it tells, or its result, with which it ends."""
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
