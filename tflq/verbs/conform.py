"""`conform`: suites of single-operator models, and devices, compilers and runtimes tested with them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tflq.devices.conformance.changes import RunDiff, compare_runs
from tflq.devices.conformance.judging import Verdicts
from tflq.devices.conformance.making import Order, SuiteData
from tflq.devices.conformance.merging import merge, read_verdicts
from tflq.devices.conformance.requirements import Claim, claim_of, read_exclusions
from tflq.devices.conformance.session import BATCH, MostRefused, any_number, check, pack, restate, run_suite
from tflq.devices.conformance.session import make_suite as make
from tflq.devices.conformance.skeletons import Skeleton, write_skeleton
from tflq.devices.conformance.targets import target_of
from tflq.devices.learning.jointly_observed import causes_of_suite
from tflq.engine.runtimes.children import temporary_folder
from tflq.errors import OptionError
from tflq.progress import Progress, silent

#: A part of a suite, (i, n): the i-th of n.
Shard = tuple[int, int]
WHOLE: Shard = (1, 1)


def make_suite(
    output: str | os.PathLike[str],
    profile: str = "litert-ref",
    *,
    level: str | None = None,
    focus: str | None = None,
    seed: int = 0,
    shard: Shard = WHOLE,
    jobs: int = 1,
    progress: Progress = silent,
) -> SuiteData:
    """Write a suite: single-operator models, their inputs, and a profile's outputs. Equal arguments give equal bytes.

    Args:
        output: The .npz file to write; one that exists is replaced.
        profile: The arithmetic, by name or the path of a profile's file.
        level: Cases up to this level: "smoke", "standard" (the default) or "exhaustive".
        focus: Only the cases of one question, which has no levels: "layout".
        seed: The seed of scales, weights and inputs.
        shard: Only the i-th of n parts.
        jobs: Worker processes.
        progress: Called as progress(what, done, total).

    Raises:
        FileAccessError: The path cannot be written.
        OptionError: Both a level and a focus are given.
        UnknownNameError: No profile or focus has that name.

    Example:
        >>> len(tflq.make_suite("smoke.npz", level="smoke", shard=(1, 400)).suite.cases)
        4
    """
    if focus is not None and level is not None:
        raise OptionError(f"a focus has no levels: leave {level!r:.40} out, or the focus")
    chosen = level or ("standard" if focus is None else "smoke")
    return make(os.fspath(output), Order(profile, chosen, seed, shard=shard, focus=focus), jobs, progress)


def conform(
    suite: str | os.PathLike[str],
    target: str,
    profile: str | None = None,
    *,
    level: str = "standard",
    shard: Shard = WHOLE,
    work: str | os.PathLike[str] | None = None,
    batch: int = BATCH,
    max_refused: MostRefused = any_number,
    jobs: int = 1,
    scheduler: str | None = None,
    python: str | None = None,
    timeout: float = 600.0,
    progress: Progress = silent,
) -> Verdicts:
    """Run a target on every case of a suite and compare its outputs bit by bit.

    A signal ends the run, and the cases that are answered are judged: `stop` is then the signal.

    Args:
        suite: A file that `make_suite` wrote.
        target: A ready target with its settings, such as "openvino precision=bf16" (docs/targets.md), a command
            (docs/target-protocol.md), runtime:NAME or profile:NAME.
        profile: Expect this profile's bits in place of the suite's; `left_out` cases are those that it refuses.
        level: Cases up to this level.
        shard: Only the i-th of n parts.
        work: A folder that keeps the target's outputs, so that an interrupted run can continue. None: none is kept.
        batch: Cases in one call of the target.
        max_refused: A limit on refused cases, by the cases: see `tflq.devices.conformance.session.share`.
        jobs: Processes of this machine.
        scheduler: A Dask scheduler whose workers run the target.
        python: The Python in which the runtime is installed, if not this one.
        timeout: Seconds allowed for a call of the target.
        progress: Called as progress(what, done, total).

    Raises:
        InputError: The file is not a suite, or the folder holds outputs of another suite or target.
        FileAccessError: The folder cannot be written.
        OptionError: `work` is given for several processes.
        RuntimeMissing: There is no such target.

    Example:
        >>> made = tflq.make_suite("smoke.npz", level="smoke", shard=(1, 400))
        >>> tflq.conform("smoke.npz", "profile:litert-ref").verdict.value
        'passes'
    """
    if work is not None and (scheduler is not None or jobs > 1):
        raise OptionError("--work is for one process; for several, use --shard I/N and a folder each")
    system = target_of(target, python, timeout)
    asked, left_out = os.fspath(suite), 0
    kept = None if work is None else os.fspath(work)
    with temporary_folder() as folder:
        if profile is not None:
            whole, asked = asked, os.path.join(folder, "suite.npz")
            left_out = restate(whole, asked, profile, level, shard)
            shard = WHOLE  # the part is the whole of the suite that is asked
        if scheduler is None and jobs == 1:
            found = run_suite(asked, system, level, shard, kept, batch, max_refused, progress, causes_of_suite)
        else:
            from tflq.devices.conformance.spreading import Part, spread

            part = Part(asked, target, python, timeout, level, shard, batch)
            found = spread(part, system.name, jobs, scheduler, max_refused, progress, causes_of_suite)
    return found.leaving_out(left_out)


def new_target(
    name: str, language: str = "python", folder: str | os.PathLike[str] = ".", *, replace: bool = False
) -> Skeleton:
    """Write a target's skeleton: a complete program that runs RESHAPE, and refuses other operators.

    Args:
        name: The name of its file, without ending.
        language: "python", "c" or "node".
        folder: A folder that exists.
        replace: Replace a file that exists.

    Raises:
        OptionError: The name cannot be one of a file, or there is no skeleton in that language.
        FileAccessError: The file exists, or cannot be written.

    Example:
        >>> tflq.new_target("my_npu", "c").command
        './my_npu'
    """
    return write_skeleton(name, language, os.fspath(folder), replace=replace)


def pack_suite(
    suite: str | os.PathLike[str], folder: str | os.PathLike[str], *, level: str = "standard", shard: Shard = WHOLE
) -> int:
    """Unpack a suite's models and inputs into a new folder for a device elsewhere; return the number of cases.

    Raises:
        InputError: The file is not a suite.
        FileAccessError: The folder holds something else, or cannot be written.

    Example:
        >>> made = tflq.make_suite("smoke.npz", level="smoke", shard=(1, 400))
        >>> tflq.pack_suite("smoke.npz", "carried")
        4
    """
    return pack(os.fspath(suite), folder, level, shard)


def check_outputs(
    suite: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    level: str = "standard",
    shard: Shard = WHOLE,
    max_refused: MostRefused = any_number,
    progress: Progress = silent,
) -> Verdicts:
    """Judge the outputs that a device wrote into a folder made by `pack_suite`.

    Raises:
        InputError: The file is not a suite, or the folder's cases belong to another one.

    Example:
        >>> made = tflq.make_suite("smoke.npz", level="smoke", shard=(1, 400))
        >>> packed = tflq.pack_suite("smoke.npz", "carried")
        >>> tflq.check_outputs("smoke.npz", "carried").verdict.value  # the device has written nothing
        'fails'
    """
    return check(os.fspath(suite), folder, level, shard, max_refused, progress, causes_of_suite)


def merge_verdicts(results: Sequence[str | os.PathLike[str]], max_refused: MostRefused = any_number) -> Verdicts:
    """Merge the verdicts on all parts of a suite into one.

    Args:
        results: Files with what `tflq conform run --shard I/N --json` printed.
        max_refused: A limit on refused cases.

    Raises:
        InputError: Parts are missing, or of different targets or suites.

    Example:
        >>> tflq.merge_verdicts([])
        Traceback (most recent call last):
            ...
        tflq.errors.InputError: ...
    """
    return merge([os.fspath(path) for path in results], max_refused)


def diff_verdicts(before: str | os.PathLike[str] | Verdicts, after: str | os.PathLike[str] | Verdicts) -> RunDiff:
    """Compare two runs of a suite, or of two versions of it: which operators, types and options changed bits.

    Args:
        before: A run: what `conform` returned, or a file with what `tflq conform run --json` printed.
        after: Another run, of any target.

    Raises:
        FileAccessError: A file cannot be read.
        InputError: A file is not such a document, or was recorded by a version that kept no digests of outputs.

    Example:
        >>> made = tflq.make_suite("smoke.npz", level="smoke", shard=(1, 400))
        >>> runs = [tflq.conform("smoke.npz", f"profile:{name}") for name in ("litert-ref", "litert-opt")]
        >>> [(kernel.op, len(kernel.changes)) for kernel in tflq.diff_verdicts(*runs).kernels]
        [('CONV_2D', 1), ('FULLY_CONNECTED', 1)]
    """
    sides = (run if isinstance(run, Verdicts) else read_verdicts(os.fspath(run)) for run in (before, after))
    return compare_runs(*sides)


def pack_changes(found: RunDiff, suite: str | os.PathLike[str], folder: str | os.PathLike[str]) -> int:
    """Unpack the smallest changed case of each operator and types into a new folder: its model and inputs.

    Return the number of cases; fewer than there are changes if the suite is of another version than the runs.

    Raises:
        InputError: The file is not a suite.
        FileAccessError: The folder holds something else, or cannot be written.
    """
    digests = {kernel.smallest.after.digest for kernel in found.kernels}
    return pack(os.fspath(suite), folder, "exhaustive", digests=digests)


def claim_conformance(
    verdicts: str | os.PathLike[str] | Verdicts, exclusions: str | os.PathLike[str] | None = None
) -> Claim:
    """Return which levels of conformance a run meets, requirement by requirement.

    Args:
        verdicts: Verdicts, or a document of `conform run --json`.
        exclusions: A file of requirements that the claim leaves out, each with a reason and a date.

    Raises:
        FileAccessError: A file cannot be read.
        InputError: A document is malformed, or an exclusion has no reason or date.

    Example:
        >>> made = tflq.make_suite("smoke.npz", level="smoke", shard=(1, 400))
        >>> tflq.claim_conformance(tflq.conform("smoke.npz", "profile:litert-ref")).met  # three cases are too few
        ''
    """
    found = verdicts if isinstance(verdicts, Verdicts) else read_verdicts(os.fspath(verdicts))
    return claim_of(found, () if exclusions is None else read_exclusions(os.fspath(exclusions)))
