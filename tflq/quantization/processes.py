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
from concurrent.futures import Future, ProcessPoolExecutor, wait
from multiprocessing.queues import SimpleQueue
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
#: The work of this process, if it is a worker, its items, and where it sends progress.
_task: tuple[Work[Any, Any], Sequence[Any], Progress | None]


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


def _reduce(proxy: MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    """Return how to pickle a read-only mapping, which pickle does not support by itself."""
    return _read_only, (dict(proxy),)


ForkingPickler.register(MappingProxyType, _reduce)


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

    If a process fails or ends without a result, its work is repeated here, which raises the original error.
    """
    if jobs == 1 or len(items) < 2:
        yield from (work(item, progress) for item in items)
        return
    context = multiprocessing.get_context("fork")
    messages = context.SimpleQueue()
    others = multiprocessing.active_children()
    begun = (work, items, messages if progress else None)  # a fork inherits them; nothing is pickled
    pool = ProcessPoolExecutor(min(jobs, len(items)), context, _begin, begun)
    try:
        futures: list[Future[R]] = [pool.submit(_compute, number) for number in range(len(items))]
        for item, future in zip(items, futures, strict=True):
            while not future.done():
                wait([future], _INTERVAL if progress else None)
                while progress is not None and not messages.empty():
                    progress(*messages.get())
            yield work(item, progress) if future.exception() else future.result()
    finally:
        for process in multiprocessing.active_children():
            if process not in others:
                process.kill()
        pool.shutdown(cancel_futures=True)


def _begin(work: Work[Any, Any], items: Sequence[Any], messages: SimpleQueue[Any] | None) -> None:
    """Make this process a worker."""
    global _task
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    last = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        if messages is not None and time.monotonic() - last > _INTERVAL:
            last = time.monotonic()
            messages.put((what, done, total))

    _task = work, items, None if messages is None else report


def _compute(number: int) -> Any:
    work, items, progress = _task
    return work(items[number], progress)
