"""`conform make`, `run`, `pack` and `check`: from a suite and a target to verdicts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tflq.devices.conformance.causes import EXPLAINED, explain
from tflq.devices.conformance.jobs import Job
from tflq.devices.conformance.joint import with_arithmetics
from tflq.devices.conformance.judging import Judged, Verdicts, judge
from tflq.devices.conformance.making import Order, SuiteData, make, restated
from tflq.devices.conformance.places import add_places
from tflq.devices.conformance.progress import watch
from tflq.devices.conformance.records import check_suite, claim, suite_mark
from tflq.devices.conformance.suite import Case, Suite, read_suite, write_suite
from tflq.devices.conformance.targets import Endings, Target, finish
from tflq.diagnosis.joint import NONE, Joint
from tflq.engine.profiles import by_name
from tflq.engine.runtimes.children import temporary_folder
from tflq.errors import InputWarning, TflqError
from tflq.model.storage.archive import Archive, opened
from tflq.progress import Progress, silent
from tflq.statements import Statement

__all__ = ["Order", "any_number", "at_most", "check", "make_suite", "pack", "restate", "run_suite", "share"]

#: Limit on the number of cases that a target may refuse; None: any number, except all.
MostRefused: TypeAlias = "Callable[[Sequence[Case]], int | None]"
#: Search for arithmetics that many failing cases share, on the outputs that a target left.
Naming: TypeAlias = "Callable[[Job, Archive, Sequence[Judged], str, Progress], Joint]"
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


def make_suite(path: str, order: Order, jobs: int = 1, tell: Progress = silent) -> SuiteData:
    """Build a suite of a profile's results in `jobs` processes, and write it to `path`.

    Raises:
        FileAccessError: The path cannot be written.
        UnknownNameError: No profile has that name.
    """
    suite_data = make(order, jobs, tell)
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
    tell: Progress = silent,
    naming: Naming | None = None,
) -> Verdicts:
    """Run a target on a suite and judge it. A signal ends the run, and the cases that are answered are judged.

    Args:
        path: The suite.
        target: The target to judge.
        level: Cases up to this level.
        shard: (i, n): the i-th of n parts.
        work: A folder that keeps the target's outputs, so that an interrupted run can continue. None: none is kept.
        batch: Cases in one call of the target.
        most: The limit on refused cases.
        tell: Is called with the progress.
        naming: The search for arithmetics that many failing cases share. None: they are not searched.

    Raises:
        InputError: The file is not a suite, or the folder holds outputs of another suite or target.
        FileAccessError: The folder cannot be written.
        RuntimeMissing: There is no such target.
    """
    with opened(path) as archive:
        whole, mark = read_suite(archive), suite_mark(archive)
        suite, part = whole.part(level, shard), whole.shard_of(shard)
        if work is not None:
            job = Job(work)
            job.create()
            claim(job, whole, mark, target.identity())
            ran = _run(archive, suite, target, work, batch, tell=tell, naming=naming)
        else:
            ran = judged_cases(archive, suite, target, batch, tell=tell, naming=naming)
        left = len(suite.cases) - len(ran.cases)
        limit = most(suite.cases)
        found = (target.name, suite.profile, suite.level, ran.cases, ran.endings, limit)
        return Verdicts(*found, ran.stop, left, mark, part, ran.joint, seed=whole.seed, version=whole.version)


@dataclass(frozen=True, slots=True)
class Ran:
    """The judged cases of a target, and the errors of its calls after it had answered all of their cases.

    `stop` is the signal that ended the run early. `joint` are arithmetics that many cases share.
    """

    cases: tuple[Judged, ...]
    endings: tuple[str, ...]
    stop: BaseException | None = None
    joint: Joint = NONE


def judged_cases(
    archive: Archive,
    suite: Suite,
    target: Target,
    batch: int,
    groups: int = EXPLAINED,
    tell: Progress = silent,
    naming: Naming | None = None,
    folder: str | None = None,
) -> Ran:
    """Run a target on a suite, or some of its cases; at most `groups` groups of failing cases are explained.

    A new `folder` keeps the target's outputs; None: they are removed.
    """
    with temporary_folder() if folder is None else nullcontext(folder) as place:
        Job(place).create()
        return _run(archive, suite, target, place, batch, groups, tell, naming)


def _run(
    archive: Archive,
    suite: Suite,
    target: Target,
    folder: str,
    batch: int,
    groups: int = EXPLAINED,
    tell: Progress = silent,
    naming: Naming | None = None,
) -> Ran:
    """Run and judge. If a signal arrives, return the cases that the target had answered by then."""
    job = Job(folder)
    judged: list[Judged] = []
    endings: list[str] = []
    part: Sequence[Case] = ()
    try:
        for start in range(0, len(suite.cases), BATCH):
            part = suite.cases[start : start + BATCH]
            with watch(tell, f"running {target.name}", partial(_answer, job, part, start), len(suite.cases)):
                ended = _asked(archive, job, target, part, batch, is_first=start == 0)
            judged += judge(job, archive, part, ended.by_case)
            endings += ended.afterwards
        job.ask_for(suite.cases)
        named, joint = explained(job, archive, judged, suite.profile, groups, tell, naming)
        return Ran(named, tuple(endings), joint=joint)
    except Exception:
        raise
    except BaseException as stop:  # a signal: what is known by now is reported
        answered = [case for case in part if job.is_done(case)] if len(judged) < len(suite.cases) else []
        known = {one.case.id for one in judged}
        judged += judge(job, archive, [case for case in answered if case.id not in known], {})
        return Ran(tuple(judged), tuple(endings), stop)


def explained(
    job: Job,
    archive: Archive,
    judged: Sequence[Judged],
    profile: str,
    groups: int = EXPLAINED,
    tell: Progress = silent,
    naming: Naming | None = None,
) -> tuple[tuple[Judged, ...], Joint]:
    """Add causes of groups, arithmetics that many failing cases share, and places; also return the joint evidence.

    No verdict depends on them: if the suite's profile is gone, a warning names it, and the cases stay as they are.
    """
    try:
        by_name(profile)
    except TflqError as error:
        text = f"no causes are searched: {error}"
        warnings.warn(InputWarning(Statement(text, "no-causes", profile=profile)), stacklevel=2)
        return tuple(judged), NONE
    cases = explain(job, archive, judged, profile, groups, tell)
    if naming is None:
        return cases, NONE
    joint = naming(job, archive, cases, profile, tell)
    return add_places(job, archive, with_arithmetics(cases, joint), profile), joint


def _asked(archive: Archive, job: Job, target: Target, part: Sequence[Case], batch: int, *, is_first: bool) -> Endings:
    """Unpack cases and have the target answer them."""
    job.ask_for(part)
    for case in part:
        job.add(case, archive)
    return finish(target, job, part, max(1, batch), is_first=is_first)


def _answer(job: Job, part: Sequence[Case], before: int) -> int:
    return before + sum(map(job.is_done, part))


def pack(
    path: str,
    folder: str | os.PathLike[str],
    level: str = "standard",
    shard: tuple[int, int] = (1, 1),
    digests: Collection[str] | None = None,
) -> int:
    """Unpack a suite's cases for a device elsewhere, and return their number.

    `digests` are those of the cases to unpack; None: all of the level and shard.

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
        cases = [case for case in suite.cases if digests is None or case.digest in digests]
        job.ask_for(cases)
        for case in cases:
            job.add(case, archive)
        return len(cases)


def check(
    path: str,
    folder: str | os.PathLike[str],
    level: str = "standard",
    shard: tuple[int, int] = (1, 1),
    most: MostRefused = any_number,
    tell: Progress = silent,
    naming: Naming | None = None,
) -> Verdicts:
    """Judge a folder that was packed and that a device filled.

    Raises:
        InputError: The file is not a suite, or the folder's cases belong to another one.
    """
    with opened(path) as archive:
        whole, mark = read_suite(archive), suite_mark(archive)
        suite, part = whole.part(level, shard), whole.shard_of(shard)
        job = Job(folder)
        check_suite(job, mark)
        judged = judge(job, archive, suite.cases, {})
        cases, joint = explained(job, archive, judged, suite.profile, tell=tell, naming=naming)
        found = (f"folder {Path(folder).name}", suite.profile, suite.level, cases, (), most(suite.cases))
        return Verdicts(*found, None, 0, mark, part, joint, seed=whole.seed, version=whole.version)
