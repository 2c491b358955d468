"""`conform make`, `run`, `pack` and `check`: from a suite and a target to verdicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tflq.conformance.causes import EXPLAINED, explained
from tflq.conformance.jobs import Job
from tflq.conformance.judging import Judged, Verdicts, judge
from tflq.conformance.making import Order, SuiteData, make, restated
from tflq.conformance.records import check_suite, claim, suite_mark
from tflq.conformance.suite import Case, Suite, read_suite, write_suite
from tflq.conformance.targets import Target, finish
from tflq.runtimes.children import temporary_folder
from tflq.storage.archive import Archive, opened

__all__ = ["Order", "any_number", "at_most", "check", "make_suite", "pack", "restate", "run_suite", "share"]

#: Limit on the number of cases that a target may refuse; None: any number, except all.
MostRefused: TypeAlias = "Callable[[Sequence[Case]], int | None]"
#: Number of cases that are unpacked and given to a target together.
BATCH = 500


def any_number(_cases: Sequence[Case]) -> int | None:
    """Allow any number of refusals."""
    return None


def share(percent: float) -> MostRefused:
    """Allow a share of the runnable cases to be refused, rounded down."""
    return lambda cases: int(percent * sum(not case.is_refused for case in cases) / 100)


def at_most(count: int) -> MostRefused:
    """Allow a number of refusals."""
    return lambda _cases: count


def make_suite(path: str, order: Order, jobs: int = 1) -> SuiteData:
    """Build a suite of a profile's results in `jobs` processes, and write it to `path`.

    Raises:
        FileAccessError: The path cannot be written.
        UnknownNameError: No profile has that name.
    """
    suite_data = make(order, jobs)
    digests = {d for c in suite_data.suite.cases for d in (c.model, *(d for s in (*c.samples, *c.expected) for d in s))}
    write_suite(path, suite_data.suite, {name: suite_data.data[name] for name in digests})
    return suite_data


def restate(path: str, output: str, profile: str, level: str = "standard", shard: tuple[int, int] = (1, 1)) -> int:
    """Write a suite of another profile's results on a part of a suite; return the number of cases left out.

    Raises:
        InputError: The file is not a suite.
        UnknownNameError: No profile has that name.
    """
    with opened(path) as archive:
        suite_data = restated(archive, read_suite(archive).part(level, shard), profile)
    write_suite(output, suite_data.suite, suite_data.data)
    return suite_data.left_out


def run_suite(
    path: str,
    target: Target,
    level: str = "standard",
    shard: tuple[int, int] = (1, 1),
    work: str | None = None,
    batch: int = BATCH,
    most: MostRefused = any_number,
) -> Verdicts:
    """Run a target on a suite and judge it.

    Args:
        path: The suite.
        target: The target to judge.
        level: Cases up to this level.
        shard: (i, n): the i-th of n parts.
        work: A folder that keeps the target's outputs, so that an interrupted run can continue. None: none is kept.
        batch: Cases in one call of the target.
        most: The limit on refused cases.

    Raises:
        InputError: The file is not a suite, or the folder holds outputs of another suite or target.
        FileAccessError: The folder cannot be written.
        RuntimeMissing: There is no such target.
    """
    with opened(path) as archive:
        whole = read_suite(archive)
        suite = whole.part(level, shard)
        if work is not None:
            job = Job(work)
            job.create()
            claim(job, whole, suite_mark(archive), target.identity())
            ran = _run(archive, suite, target, work, batch)
        else:
            ran = judged_cases(archive, suite, target, batch)
        return Verdicts(target.name, suite.profile, suite.level, ran.cases, ran.endings, most(suite.cases))


@dataclass(frozen=True, slots=True)
class Ran:
    """The judged cases of a target, and the errors of its calls after it had answered all of their cases."""

    cases: tuple[Judged, ...]
    endings: tuple[str, ...]


def judged_cases(archive: Archive, suite: Suite, target: Target, batch: int, groups: int = EXPLAINED) -> Ran:
    """Run a target on a suite, or some of its cases; at most `groups` groups of failing cases are explained."""
    with temporary_folder() as folder:
        Job(folder).create()
        return _run(archive, suite, target, folder, batch, groups)


def _run(archive: Archive, suite: Suite, target: Target, folder: str, batch: int, groups: int = EXPLAINED) -> Ran:
    job = Job(folder)
    judged: list[Judged] = []
    endings: list[str] = []
    for start in range(0, len(suite.cases), BATCH):
        part = suite.cases[start : start + BATCH]
        job.ask_for(part)
        for case in part:
            job.add(case, archive)
        ended = finish(target, job, part, max(1, batch))
        judged += judge(job, archive, part, ended.by_case)
        endings += ended.afterwards
    job.ask_for(suite.cases)
    return Ran(explained(job, archive, judged, suite.profile, groups), tuple(endings))


def pack(path: str, folder: str | os.PathLike[str], level: str = "standard", shard: tuple[int, int] = (1, 1)) -> int:
    """Unpack a suite's cases for a device elsewhere, and return their number.

    Raises:
        InputError: The file is not a suite.
        FileAccessError: The folder holds something else, or cannot be written.
    """
    with opened(path) as archive:
        whole = read_suite(archive)
        suite = whole.part(level, shard)
        job = Job(folder)
        job.create()
        claim(job, whole, suite_mark(archive), None)
        job.ask_for(suite.cases)
        for case in suite.cases:
            job.add(case, archive)
        return len(suite.cases)


def check(
    path: str,
    folder: str | os.PathLike[str],
    level: str = "standard",
    shard: tuple[int, int] = (1, 1),
    most: MostRefused = any_number,
) -> Verdicts:
    """Judge a folder that was packed and that a device filled.

    Raises:
        InputError: The file is not a suite, or the folder's cases belong to another one.
    """
    with opened(path) as archive:
        suite = read_suite(archive).part(level, shard)
        job = Job(folder)
        check_suite(job, suite_mark(archive))
        judged = judge(job, archive, suite.cases, {})
        name = f"folder {Path(folder).name}"
        return Verdicts(
            name, suite.profile, suite.level, explained(job, archive, judged, suite.profile), (), most(suite.cases)
        )
