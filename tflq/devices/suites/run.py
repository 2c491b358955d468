"""`conform make`, `run`, `pack` and `check`, in one process or in many.

Progress of long work: a callable, and a thread that calls it while one call lasts.

`conform make`, `run`, `pack` and `check`: from a suite and a target to verdicts.

Run a suite in parts, in processes or on a Dask cluster. Each case is judged exactly once, even if workers die.

Merge the verdicts on parts of a suite: documents of `conform run --json` and `conform check --json`.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

from tflq.comparison.inspection.difference import Difference, First
from tflq.devices.suites.causes import EXPLAINED, add_places, explain, with_arithmetics
from tflq.devices.suites.jobs import CaseFolder, check_suite, claim, suite_mark
from tflq.devices.suites.judge import CaseResult, Judged, Verdicts, judge
from tflq.devices.suites.make import LEVELS, Case, Suite, SuiteData, SuiteOrder, make, read_suite, restated, write_suite
from tflq.devices.suites.target import Target, finish, target_of
from tflq.diagnosis.siblings import NONE, Joint
from tflq.engine.profiles import by_name
from tflq.engine.runtimes.process import temporary_folder
from tflq.errors import InputError, InputWarning, OptionError, RuntimeFailed, TflqError
from tflq.interrupts import Progress, silent
from tflq.model.storage.arrays import Archive, opened
from tflq.model.storage.documents import read_json
from tflq.model.storage.kinds import read_bytes
from tflq.texts import Statement

#: Seconds between two looks.
_LOOK = 1.0


@contextmanager
def watch(tell: Progress, what: str, done: Callable[[], int], total: int) -> Iterator[None]:
    """Report done() of `total` every second while the context lasts."""
    if tell is silent:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK):
            tell(what, done(), total)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


__all__ = ["SuiteOrder", "any_number", "at_most", "check", "make_suite", "pack", "restate", "run_suite", "share"]

#: Limit on the number of cases that a target may refuse; None: any number, except all.
MostRefused: TypeAlias = "Callable[[Sequence[Case]], int | None]"
#: Search for arithmetics that many failing cases share, on the outputs that a target left.
Naming: TypeAlias = "Callable[[CaseFolder, Archive, Sequence[Judged], str, Progress], Joint]"
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


def make_suite(path: str, order: SuiteOrder, jobs: int = 1, tell: Progress = silent) -> SuiteData:
    """Build a suite of a profile's results in `jobs` processes, and write it to `path`.

    Raises:
        FileAccessError: The path cannot be written.
        UnknownNameError: No profile has that name.
    """
    suite_data = make(order, jobs, tell)
    digests = {d for c in suite_data.suite.cases for d in (c.model, *(d for s in (*c.samples, *c.expected) for d in s))}
    write_suite(path, suite_data.suite, {name: suite_data.data[name] for name in digests})
    return suite_data


def restate(
    path: str,
    output: str,
    profile: str,
    level: str = "standard",
    shard: tuple[int, int] = (1, 1),
    ops: Collection[str] = (),
) -> int:
    """Write a suite of another profile's results on a part of a suite; return the number of cases left out.

    Raises:
        InputError: The file is not a suite.
        UnknownNameError: No profile has that name.
    """
    with opened(path) as archive:
        suite_data = restated(archive, read_suite(archive).part(level, shard, ops), profile)
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
    ops: Collection[str] = (),
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
        ops: Only cases of these operators; empty: of all.

    Raises:
        InputError: The file is not a suite, or the folder holds outputs of another suite or target.
        FileAccessError: The folder cannot be written.
        RuntimeMissing: There is no such target.
        UnknownNameError: There is no such operator, or the suite has no case of it.
    """
    with opened(path) as archive:
        whole, mark = read_suite(archive), suite_mark(archive)
        suite, part = whole.part(level, shard, ops), whole.shard_of(shard)
        if work is not None:
            job = CaseFolder(work)
            job.create()
            claim(job, whole, mark, target.identity())
            ran = _run(archive, suite, target, work, batch, tell=tell, naming=naming)
        else:
            ran = judged_cases(archive, suite, target, batch, tell=tell, naming=naming)
        return verdicts_of(suite, mark, part, target.name, ran, most)


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """The judged cases of a target, and the errors of its calls after it had answered all of their cases.

    `stop` is the signal that ended the run early. `joint` are arithmetics that many cases share.
    """

    cases: tuple[Judged, ...]
    endings: tuple[str, ...]
    stop: BaseException | None = None
    joint: Joint = NONE


def verdicts_of(
    suite: Suite, mark: str, shard: tuple[int, int], target: str, ran: SuiteRun, most: MostRefused
) -> Verdicts:
    """Return the verdicts on a run of `suite`, which is the part `shard` of the one with that mark."""
    return Verdicts(
        target=target,
        profile=suite.profile,
        level=suite.level,
        cases=ran.cases,
        endings=ran.endings,
        most_refused=most(suite.cases),
        stop=ran.stop,
        left=len(suite.cases) - len(ran.cases),
        suite=mark,
        shard=shard,
        joint=ran.joint,
        seed=suite.seed,
        version=suite.version,
        ops=suite.ops,
    )


def judged_cases(
    archive: Archive,
    suite: Suite,
    target: Target,
    batch: int,
    groups: int = EXPLAINED,
    tell: Progress = silent,
    naming: Naming | None = None,
    folder: str | None = None,
) -> SuiteRun:
    """Run a target on a suite, or some of its cases; at most `groups` groups of failing cases are explained.

    A new `folder` keeps the target's outputs; None: they are removed.
    """
    with temporary_folder() if folder is None else nullcontext(folder) as place:
        CaseFolder(place).create()
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
) -> SuiteRun:
    """Run and judge. If a signal arrives, return the cases that the target had answered by then."""
    job = CaseFolder(folder)
    judged: list[Judged] = []
    endings: list[str] = []
    part: Sequence[Case] = ()
    try:
        for start in range(0, len(suite.cases), BATCH):
            part = suite.cases[start : start + BATCH]
            with watch(tell, f"running {target.name}", partial(_answer, job, part, start), len(suite.cases)):
                ended = finish(target, job, archive, part, max(1, batch), is_first=start == 0, alone=start == 0)
            judged += judge(job, archive, part, ended.by_case)
            endings += ended.afterwards
        job.ask_for(suite.cases)
        return explained(SuiteRun(tuple(judged), tuple(endings)), job, archive, suite.profile, groups, tell, naming)
    except Exception:
        raise
    except BaseException as stop:  # a signal: what is known by now is reported
        answered = [case for case in part if job.is_done(case)] if len(judged) < len(suite.cases) else []
        known = {one.case.id for one in judged}
        judged += judge(job, archive, [case for case in answered if case.id not in known], {})
        return SuiteRun(tuple(judged), tuple(endings), stop)


def explained(
    ran: SuiteRun,
    job: CaseFolder,
    archive: Archive,
    profile: str,
    groups: int = EXPLAINED,
    tell: Progress = silent,
    naming: Naming | None = None,
) -> SuiteRun:
    """Return a run with causes of groups, arithmetics that many failing cases share with their evidence, and places.

    No verdict depends on them: if the suite's profile is gone, a warning names it, and the cases stay as they are.
    """
    try:
        by_name(profile)
    except TflqError as error:
        text = f"no causes are searched: {error}"
        warnings.warn(InputWarning(Statement(text, "no-causes", profile=profile)), stacklevel=2)
        return ran
    cases = explain(job, archive, ran.cases, profile, groups, tell)
    if naming is None:
        return replace(ran, cases=cases)
    joint = naming(job, archive, cases, profile, tell)
    cases = add_places(job, archive, with_arithmetics(cases, joint), profile)
    return replace(ran, cases=cases, joint=joint)


def _answer(job: CaseFolder, part: Sequence[Case], before: int) -> int:
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
        job = CaseFolder(folder)
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
        job = CaseFolder(folder)
        check_suite(job, mark)
        ran = SuiteRun(judge(job, archive, suite.cases, {}), ())
        ran = explained(ran, job, archive, suite.profile, tell=tell, naming=naming)
        return verdicts_of(suite, mark, part, f"folder {Path(folder).name}", ran, most)


#: Number of cases of a part, and of parts that a cluster holds at a time.
_PART, _AHEAD = 100, 64


@dataclass(frozen=True, slots=True)
class SuitePart:
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
    ops: tuple[str, ...] = ()


def parts_of(whole: SuitePart, size: int = _PART) -> list[SuitePart]:
    """Return the whole suite in parts.

    Raises:
        InputError: The file is not a suite.
    """
    with opened(whole.suite) as archive:
        count = len(read_suite(archive).part(whole.level, whole.shard, whole.ops).cases)
    starts = range(0, count, size)
    each = max(1, EXPLAINED // max(1, len(starts)))
    return [replace(whole, start=start, stop=min(start + size, count), groups=each) for start in starts]


def do(part: SuitePart) -> SuiteRun:
    """Run the target on a part. Its outputs are judged here, so that only verdicts travel.

    Raises:
        FileAccessError: The suite cannot be read.
        InputError: The file is not a suite.
        RuntimeMissing: There is no such target.
    """
    target = target_of(part.target, part.python, part.timeout)
    opened = _open_suite(part.suite, _stamp(part.suite))
    suite = opened.suite.part(part.level, part.shard, part.ops)
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


def in_processes(parts: Sequence[SuitePart], jobs: int) -> Iterator[SuiteRun]:
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
    whole: SuitePart,
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
    with opened(whole.suite) as archive, temporary_folder() as folder:
        read, mark = read_suite(archive), suite_mark(archive)
        suite = read.part(whole.level, whole.shard, whole.ops)
        if scheduler is not None:
            ran = _gathered(name, parts, on_cluster(parts, scheduler), tell)
        else:
            kept = [replace(part, groups=0, folder=os.path.join(folder, str(part.start))) for part in parts]
            ran = _gathered(name, kept, in_processes(kept, jobs), tell)
            if ran.stop is None:
                job = _joined(kept, os.path.join(folder, "all"))
                ran = explained(ran, job, archive, suite.profile, tell=tell, naming=naming)
        return verdicts_of(suite, mark, read.shard_of(whole.shard), name, ran, most)


def _joined(parts: Sequence[SuitePart], folder: str) -> CaseFolder:
    """Return a new folder with the outputs of all parts, which are moved there."""
    job = CaseFolder(folder)
    job.create()
    for part in parts:
        for place in filter(Path.is_dir, Path(str(part.folder)).iterdir()):
            place.rename(job.folder / place.name)
    return job


def _gathered(name: str, parts: Sequence[SuitePart], done: Iterator[SuiteRun], tell: Progress) -> SuiteRun:
    """Return the run of all parts that are done before a signal."""
    total = sum(part.stop - part.start for part in parts)
    ran: list[SuiteRun] = []
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
    return SuiteRun(tuple(judged), endings, stop)


#: The schema of these documents.
SCHEMA = "tflq/conform/1"
#: The origin of a suite, in older documents.
_UNKNOWN = {"seed": None, "version": ""}
#: Missing parts that an error lists.
_LISTED = 5


def merge(paths: Sequence[str], most: MostRefused = any_number) -> Verdicts:
    """Return the verdicts on a whole suite from the documents of all its parts.

    Raises:
        FileAccessError: A document cannot be read.
        InputError: A document is malformed; or parts are missing, occur twice, or belong to different runs.
    """
    if not paths:
        raise InputError("number of results", expected="at least 1", got=0)
    parts = [read_verdicts(path) for path in paths]
    first = parts[0]
    for path, part in zip(paths, parts, strict=True):
        for name, ours, theirs in (
            ("target", first.target, part.target),
            ("profile", first.profile, part.profile),
            ("level", first.level, part.level),
            ("seed of the suite", first.seed, part.seed),
            ("version of the suite", first.version, part.version),
            ("number of parts", first.shard[1], part.shard[1]),
            ("choice of operators", ", ".join(first.ops), ", ".join(part.ops)),
        ):
            if ours != theirs:
                raise InputError(f"is of another {name} than {paths[0]}", name=path, expected=ours, got=theirs)
    _check_parts(paths, parts)
    cases = sorted((one for part in parts for one in part.cases), key=lambda one: one.case.id)
    endings = tuple(ending for part in parts for ending in part.endings)
    limit, left = most([one.case for one in cases]), sum(part.left for part in parts)
    return replace(first, cases=tuple(cases), endings=endings, most_refused=limit, left=left, shard=(1, 1))


def _check_parts(paths: Sequence[str], parts: Sequence[Verdicts]) -> None:
    """Raise an InputError unless the parts are all of one suite, each once."""
    count = parts[0].shard[1]
    numbers = [part.shard[0] for part in parts]
    twice = [path for position, path in enumerate(paths) if numbers[position] in numbers[:position]]
    if twice:
        part = parts[paths.index(twice[0])]
        raise InputError("is a part that another document holds", name=twice[0], got=f"{part.shard[0]}/{count}")
    missing = [f"{number}/{count}" for number in range(1, count + 1) if number not in numbers]
    if missing:
        listed = ", ".join(missing[:_LISTED]) + (f" and {len(missing) - _LISTED} more" if missing[_LISTED:] else "")
        raise InputError(f"give the documents of all {count} parts; missing: {listed}", name=paths[0])
    marks = {part.suite for part in parts}
    if len(marks) not in (1, len(parts)):  # one suite that was run in parts, or parts that were made
        raise InputError("are of different suites", name=", ".join(paths))
    known: set[str] = set()
    for path, part in zip(paths, parts, strict=True):
        ids = [one.case.id for one in part.cases]
        again = [name for name in ids if name in known]
        if again or len(set(ids)) != len(ids):
            raise InputError("holds a case that occurs twice", name=path, got=(again or ids)[0])
        known |= set(ids)


def read_verdicts(path: str) -> Verdicts:
    """Return the verdicts of a document, without their evidence of joint causes.

    Raises:
        FileAccessError: The document cannot be read.
        InputError: It is malformed, or another document.
    """
    document = read_json(read_bytes(path), path)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError("is no document of tflq conform run --json", name=path, expected=SCHEMA)
    try:
        return _verdicts(document)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"is a malformed document: {type(error).__name__}: {error}", name=path) from error


def _verdicts(document: Mapping[str, Any]) -> Verdicts:
    level = _text(document["level"])
    number, count = (_number(n) for n in document["shard"])
    if level not in LEVELS or not 1 <= number <= count:
        raise ValueError(f"level {level}, shard {number}/{count}")
    made = document.get("made", _UNKNOWN)
    return Verdicts(
        target=_text(document["target"]),
        profile=_text(document["profile"]),
        level=level,
        cases=tuple(map(_judge, document["cases"])),
        endings=tuple(map(_text, document["endings"])),
        left=_number(document["left"]),
        suite=_text(document["suite"]),
        shard=(number, count),
        seed=None if made["seed"] is None else _number(made["seed"]),
        version=_text(made["version"]),
        ops=tuple(map(_text, document.get("ops", ()))),
    )


def _judge(row: Mapping[str, Any]) -> Judged:
    name, op, types, level, aim = (_text(row[key]) for key in ("id", "op", "types", "level", "aim"))
    tells, causes = (tuple(map(_text, row[name])) for name in ("tells", "causes"))
    expected: tuple[tuple[str, ...], ...] = () if row["must_be_refused"] else ((),)
    case = Case(name, op, types, level, aim, tells, "", (), expected)
    return Judged(
        case,
        CaseResult(row["result"]),
        (row["reason"] and _text(row["reason"])) or "",
        None if row["sample"] is None else _number(row["sample"]),
        None if row["difference"] is None else _difference(row["difference"]),
        causes,
        is_explained=row["is_explained"] is True,
        fault=(row["fault"] and _text(row["fault"])) or "",
        mark=_text(row["mark"]),
        digest=_text(row.get("digest") or ""),
        outputs=_text(row.get("outputs") or ""),
        size=_number(row.get("size") or 0),
        place=_text(row.get("place") or ""),
    )


def _difference(row: Mapping[str, Any]) -> Difference:
    first = row["first"]
    place = first and First(
        _number(first["sample"]), tuple(map(_number, first["index"])), first["expected"], first["got"]
    )
    elements, differing, largest = (_number(row[name]) for name in ("elements", "differing", "largest"))
    return Difference(elements, differing, _text(row["unit"]), largest, first=place or None)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r:.40}")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"expected a number, got {value!r:.40}")
    return value
