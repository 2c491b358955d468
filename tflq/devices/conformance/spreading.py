"""Run a suite in parts, in processes or on a Dask cluster. Each case is judged exactly once, even if workers die."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tflq.devices.conformance.causes import EXPLAINED
from tflq.devices.conformance.jobs import Job
from tflq.devices.conformance.judging import Verdicts
from tflq.devices.conformance.records import suite_mark
from tflq.devices.conformance.session import MostRefused, Naming, Ran, any_number, explained, judged_cases
from tflq.devices.conformance.suite import Suite, read_suite
from tflq.devices.conformance.targets import target_of
from tflq.engine.runtimes.children import temporary_folder
from tflq.errors import OptionError, RuntimeFailed
from tflq.model.storage.archive import Archive, opened
from tflq.progress import Progress, silent

#: Number of cases of a part, and of parts that a cluster holds at a time.
_PART, _AHEAD = 100, 64


@dataclass(frozen=True, slots=True)
class Part:
    """Cases `start` to `stop` - 1 of a suite's level and shard, and the target that is judged on them.

    `groups` is the number of groups of failing cases that are explained. Every worker must reach the suite and the
    target under these names. `folder` keeps the target's outputs; None: they are removed.
    """

    suite: str
    target: str
    python: str | None = None
    timeout: float = 600.0
    level: str = "standard"
    shard: tuple[int, int] = (1, 1)
    batch: int = 500
    start: int = 0
    stop: int = 0
    groups: int = EXPLAINED
    folder: str | None = None


def parts_of(whole: Part, size: int = _PART) -> list[Part]:
    """Return the whole suite in parts.

    Raises:
        InputError: The file is not a suite.
    """
    with opened(whole.suite) as archive:
        count = len(read_suite(archive).part(whole.level, whole.shard).cases)
    starts = range(0, count, size)
    each = max(1, EXPLAINED // max(1, len(starts)))
    return [replace(whole, start=start, stop=min(start + size, count), groups=each) for start in starts]


def do(part: Part) -> Ran:
    """Run the target on a part. Its outputs are judged here, so that only verdicts travel.

    Raises:
        FileAccessError: The suite cannot be read.
        InputError: The file is not a suite.
        RuntimeMissing: There is no such target.
    """
    target = target_of(part.target, part.python, part.timeout)
    opened = _open_suite(part.suite, _stamp(part.suite))
    suite = opened.suite.part(part.level, part.shard)
    chosen = replace(suite, cases=suite.cases[part.start : part.stop])
    return judged_cases(opened.archive, chosen, target, part.batch, part.groups, folder=part.folder)


@dataclass(frozen=True, slots=True)
class _OpenSuite:
    """A suite's open archive, which closes with the last of its `reading`, and its cases."""

    archive: Archive
    suite: Suite
    reading: ExitStack


@lru_cache(maxsize=1)
def _open_suite(path: str, stamp: tuple[int, ...]) -> _OpenSuite:
    """Return the suite at a path, which this process keeps open for the next part; another stamp is another suite."""
    with ExitStack() as stack:
        archive = stack.enter_context(opened(path, streamed=True))
        return _OpenSuite(archive, read_suite(archive), stack.pop_all())


def _stamp(path: str) -> tuple[int, ...]:
    """Return the key that distinguishes a file from its replacement; empty if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def in_processes(parts: Sequence[Part], jobs: int) -> Iterator[Ran]:
    """Yield the results of parts, in order, from `jobs` processes of this machine.

    Raises:
        RuntimeFailed: A process was killed.
    """
    try:
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            yield from pool.map(do, parts)
    except BrokenProcessPool as error:
        raise RuntimeFailed("--jobs", "a process of tflq was killed; was there enough memory?") from error


def on_cluster(parts: Sequence[Any], scheduler: str, work: Any = do) -> Iterator[Any]:
    """Yield the results of parts on the workers of a Dask cluster, in order of completion.

    If a worker dies, another one does its part. The cluster holds a few parts at a time, and results are forgotten once
    they are yielded. So neither the cluster nor this process grows with their number.

    Raises:
        OptionError: The extra `cluster` is not installed.
        RuntimeFailed: The scheduler cannot be reached, or a part killed several workers.
    """
    try:
        from distributed import Client, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise OptionError("--scheduler needs the extra cluster: pip install 'tflq[cluster]'") from error
    try:
        client = Client(scheduler, set_as_default=False, name="tflq")
    except (OSError, ValueError) as error:
        raise RuntimeFailed(scheduler, f"no Dask scheduler: {error}") from error
    with client:
        waiting = iter(parts)
        done = as_completed(with_results=True, loop=client.loop)
        flying = 0
        try:
            while True:
                for part in waiting:
                    done.add(client.submit(work, part, pure=False))
                    flying += 1
                    if flying >= _AHEAD:
                        break
                if not flying:
                    return
                _, result = next(done)
                flying -= 1
                yield result
        except KilledWorker as error:
            raise RuntimeFailed(scheduler, f"a part killed its workers: {error}") from error


def spread(
    whole: Part,
    name: str,
    jobs: int = 1,
    scheduler: str | None = None,
    most: MostRefused = any_number,
    tell: Progress = silent,
    naming: Naming | None = None,
) -> Verdicts:
    """Judge a target, reported as `name`, on a suite: on a cluster, or in `jobs` processes.

    Processes of this machine give what one process gives, with the arithmetics that `naming` finds. On a cluster, each
    part explains its own failing cases.

    Raises:
        InputError: The file is not a suite.
        OptionError: The extra `cluster` is not installed.
        RuntimeFailed: A process was killed, or the scheduler cannot be reached.
        RuntimeMissing: There is no such target.
    """
    parts = parts_of(whole)
    if scheduler is not None:
        return _gathered(whole, name, parts, on_cluster(parts, scheduler), most, tell)
    with temporary_folder() as folder:
        kept = [replace(part, groups=0, folder=os.path.join(folder, str(part.start))) for part in parts]
        found = _gathered(whole, name, kept, in_processes(kept, jobs), most, tell)
        if found.stop is not None:
            return found
        job = Job(os.path.join(folder, "all"))
        job.create()
        for part in kept:
            for place in filter(Path.is_dir, Path(str(part.folder)).iterdir()):
                place.rename(job.folder / place.name)
        with opened(whole.suite) as archive:
            cases, joint = explained(job, archive, found.cases, found.profile, tell=tell, naming=naming)
        return replace(found, cases=cases, joint=joint)


def _gathered(
    whole: Part, name: str, parts: Sequence[Part], done: Iterator[Ran], most: MostRefused, tell: Progress
) -> Verdicts:
    """Return the verdicts of all parts that are done before a signal."""
    total = sum(part.stop - part.start for part in parts)
    ran: list[Ran] = []
    stop: BaseException | None = None
    try:
        for one in done:
            ran.append(one)
            tell(f"running {name}", sum(len(part.cases) for part in ran), total)
    except Exception:
        raise
    except BaseException as signal:  # what is known by now is reported
        stop = signal
    judged = sorted((one for part in ran for one in part.cases), key=lambda one: one.case.id)
    endings = tuple(ending for part in ran for ending in part.endings)
    with opened(whole.suite) as archive:
        suite, mark = read_suite(archive), suite_mark(archive)
    found = (name, suite.profile, whole.level, tuple(judged), endings, most([one.case for one in judged]))
    part = suite.shard_of(whole.shard)
    return Verdicts(*found, stop, total - len(judged), mark, part, seed=suite.seed, version=suite.version)
