"""`conform make`, `run`, `pack` and `check`: from a suite and a target to verdicts."""

from __future__ import annotations

import os
from pathlib import Path

from tflq.conformance.causes import EXPLAINED, explained
from tflq.conformance.jobs import Job
from tflq.conformance.judging import Judged, Verdicts, judge
from tflq.conformance.making import Order, SuiteData, make
from tflq.conformance.suite import Suite, read_suite, write_suite
from tflq.conformance.targets import Target, finish
from tflq.runtimes.children import temporary_folder
from tflq.storage.archive import Archive, opened

__all__ = ["Order", "check", "make_suite", "pack", "run_suite"]

#: Cases that are unpacked and handed to a target together.
BATCH = 500


def make_suite(path: str, order: Order, jobs: int = 1) -> SuiteData:
    """Make a suite of what a profile computes, in so many processes, and write it to `path`.

    Raises:
        FileAccessError: The path cannot be written.
        UnknownNameError: No profile has that name.
    """
    suite_data = make(order, jobs)
    digests = {d for c in suite_data.suite.cases for d in (c.model, *(d for s in (*c.samples, *c.expected) for d in s))}
    write_suite(path, suite_data.suite, {name: suite_data.data[name] for name in digests})
    return suite_data


def run_suite(
    path: str,
    target: Target,
    level: str = "standard",
    shard: tuple[int, int] = (1, 1),
    work: str | None = None,
    batch: int = BATCH,
) -> Verdicts:
    """Hold a target against a suite.

    Args:
        path: The suite.
        target: What is held against it.
        level: Cases up to this level.
        shard: (i, n): the i-th of n parts.
        work: A folder that keeps what the target did, so that a run which was interrupted goes on. None: none is kept.
        batch: Cases in one call of the target.

    Raises:
        InputError: The file is no suite.
        FileAccessError: The folder cannot be written.
        RuntimeMissing: There is no such target.
    """
    with opened(path) as archive:
        suite = read_suite(archive).part(level, shard)
        if work is not None:
            judged = _run(archive, suite, target, work, batch)
        else:
            judged = judged_cases(archive, suite, target, batch)
        return Verdicts(target.name, suite.profile, suite.level, judged)


def judged_cases(
    archive: Archive, suite: Suite, target: Target, batch: int, groups: int = EXPLAINED
) -> tuple[Judged, ...]:
    """Hold a target against a suite, or some of its cases; at most so many `groups` of failing cases are explained."""
    with temporary_folder() as folder:
        return _run(archive, suite, target, folder, batch, groups)


def _run(
    archive: Archive, suite: Suite, target: Target, folder: str, batch: int, groups: int = EXPLAINED
) -> tuple[Judged, ...]:
    job = Job(folder)
    job.create()
    judged: list[Judged] = []
    for start in range(0, len(suite.cases), BATCH):
        part = suite.cases[start : start + BATCH]
        job.ask_for(part)
        for case in part:
            job.add(case, archive)
        ended = finish(target, job, part, max(1, batch))
        judged += judge(job, archive, part, ended)
    job.ask_for(suite.cases)
    return explained(job, archive, judged, suite.profile, groups)


def pack(path: str, folder: str | os.PathLike[str], level: str = "standard", shard: tuple[int, int] = (1, 1)) -> int:
    """Unpack a suite's cases for a device that is elsewhere. Returns how many there are.

    Raises:
        InputError: The file is no suite.
        FileAccessError: The folder holds something else, or cannot be written.
    """
    with opened(path) as archive:
        suite = read_suite(archive).part(level, shard)
        job = Job(folder)
        job.create()
        job.ask_for(suite.cases)
        for case in suite.cases:
            job.add(case, archive)
        return len(suite.cases)


def check(
    path: str, folder: str | os.PathLike[str], level: str = "standard", shard: tuple[int, int] = (1, 1)
) -> Verdicts:
    """Judge a folder that was packed and that a device filled.

    Raises:
        InputError: The file is no suite.
    """
    with opened(path) as archive:
        suite = read_suite(archive).part(level, shard)
        job = Job(folder)
        judged = judge(job, archive, suite.cases, {})
        name = f"folder {Path(folder).name}"
        return Verdicts(name, suite.profile, suite.level, explained(job, archive, judged, suite.profile))
