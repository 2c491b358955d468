"""`conform` and `learn`: devices tested by suites, and learned by questions.

`conform`: suites of single-operator models, and devices, compilers and runtimes tested with them.

`learn`: a device's arithmetic, learned by questions or from dumps, as a profile.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from tflq.devices.learning.asking import KeptAnswers
from tflq.devices.learning.candidates import Effort
from tflq.devices.learning.findings import LearnFindings
from tflq.devices.learning.joint import causes_of_suite
from tflq.devices.learning.learner import learn as learn_target
from tflq.devices.learning.learner import learn_from_dumps
from tflq.devices.learning.questions import known_operators, subjects
from tflq.devices.suites.changes import Claim, RunDiff, claim_of, compare_runs, read_exclusions
from tflq.devices.suites.judge import Verdicts
from tflq.devices.suites.make import SuiteData, SuiteOrder, operators_named
from tflq.devices.suites.run import (
    BATCH,
    MostRefused,
    any_number,
    check,
    merge,
    pack,
    read_verdicts,
    restate,
    run_suite,
)
from tflq.devices.suites.run import make_suite as make
from tflq.devices.suites.target import Skeleton, target_of, write_skeleton
from tflq.diagnosis.localization import only_dumps
from tflq.engine.api.files import subject
from tflq.engine.runtimes.process import temporary_folder
from tflq.errors import OptionError, UnknownNameError
from tflq.interrupts import Progress, silent

#: A part of a suite, (i, n): the i-th of n.
Shard = tuple[int, int]
WHOLE: Shard = (1, 1)


def make_suite(
    output: str | os.PathLike[str],
    profile: str = "litert-ref",
    *,
    level: str | None = None,
    focus: str | None = None,
    ops: Collection[str] = (),
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
        ops: Only cases of these operators, such as ("CONV_2D", "ADD"). Empty: of all.
        seed: The seed of scales, weights and inputs.
        shard: Only the i-th of n parts.
        jobs: Worker processes.
        progress: Called as progress(what, done, total).

    Raises:
        FileAccessError: The path cannot be written.
        OptionError: Both a level and a focus are given.
        UnknownNameError: No profile, focus or operator has that name, or the suite has no case of an operator.

    Example:
        >>> len(tflq.make_suite("smoke.npz", level="smoke", shard=(1, 400)).suite.cases)
        4
    """
    if focus is not None and level is not None:
        raise OptionError(f"a focus has no levels: leave {level!r:.40} out, or the focus")
    chosen = level or ("standard" if focus is None else "smoke")
    order = SuiteOrder(profile, chosen, seed, shard=shard, focus=focus, ops=operators_named(ops))
    return make(os.fspath(output), order, jobs, progress)


def conform(
    suite: str | os.PathLike[str],
    target: str,
    profile: str | None = None,
    *,
    level: str = "standard",
    ops: Collection[str] = (),
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
        ops: Only cases of these operators. Empty: of all.
        shard: Only the i-th of n parts.
        work: A folder that keeps the target's outputs, so that an interrupted run can continue. None: none is kept.
        batch: Cases in one call of the target.
        max_refused: A limit on refused cases, by the cases: see `tflq.devices.suites.run.share`.
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
        UnknownNameError: There is no such operator, or the suite has no case of it.

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
            left_out = restate(whole, asked, profile, level, shard, ops)
            shard = WHOLE  # the part is the whole of the suite that is asked
        if scheduler is None and jobs == 1:
            found = run_suite(asked, system, level, shard, kept, batch, max_refused, progress, causes_of_suite, ops)
        else:
            from tflq.devices.suites.run import SuitePart, spread

            part = SuitePart(asked, target, python, timeout, level, shard, batch, ops=tuple(ops))
            found = spread(part, system.name, jobs, scheduler, max_refused, progress, causes_of_suite)
    return found.leaving_out(left_out)


def new_target(
    name: str, language: str = "python", output: str | os.PathLike[str] = ".", *, replace: bool = False
) -> Skeleton:
    """Write a target's skeleton: a complete program that runs RESHAPE, and refuses other operators.

    Args:
        name: The name of its file, without ending.
        language: "python", "c" or "node".
        output: A folder that exists.
        replace: Replace a file that exists.

    Raises:
        OptionError: The name cannot be one of a file, or there is no skeleton in that language.
        FileAccessError: The file exists, or cannot be written.

    Example:
        >>> tflq.new_target("my_npu", "c").command
        './my_npu'
    """
    return write_skeleton(name, language, os.fspath(output), replace=replace)


def pack_suite(
    suite: str | os.PathLike[str], output: str | os.PathLike[str], *, level: str = "standard", shard: Shard = WHOLE
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
    return pack(os.fspath(suite), output, level, shard)


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


#: Types of codes whose arithmetic can be learned.
TYPES = ("int8", "uint8", "int16")


def learn(
    target: str | None = None,
    *,
    evidence: Sequence[str | os.PathLike[str]] = (),
    models: Sequence[str | os.PathLike[str]] = (),
    operators: Collection[str] = (),
    types: Collection[str] = (),
    seed: int = 0,
    fresh: int = Effort().fresh,
    most: int = 100_000,
    work: str | os.PathLike[str] | None = None,
    keep: bool = True,
    python: str | None = None,
    timeout: float = 600.0,
    progress: Progress = silent,
) -> LearnFindings:
    """Learn a device's arithmetic; `tflq.devices.learning.words.text_of` writes what was found as a profile.

    Ctrl-C ends the questions, and what is known by then is returned.

    Args:
        target: A ready target (docs/targets.md), a command that runs single-operator models (docs/target-protocol.md),
            runtime:NAME or profile:NAME.
        evidence: Instead of a target, dumps of a device.
        models: The model of each dump.
        operators: The operators to learn. Empty: all that can be learned.
        types: The types of codes: "int8", "uint8", "int16". Empty: int8.
        seed: The seed of scales, weights and inputs.
        fresh: Number of fresh models on which each answer is checked.
        most: The number of models after which nothing more is asked.
        work: A folder that keeps answers, so that an interrupted run can go on. None: none is kept.
        keep: Keep the folder when the run has ended and everything was asked.
        python: The Python in which the runtime is installed, if not this one.
        timeout: Seconds allowed for a call of the target.
        progress: Called as progress(what, done, total).

    Raises:
        InputError: A dump does not fit its model.
        OptionError: Neither a target nor dumps are given, or not a model for each dump.
        UnknownNameError: There is no operator or type of that name that can be learned.
        RuntimeMissing, RuntimeFailed: There is no such target, or it cannot be started.

    Example:
        >>> dump = "golden/dumps/digits_mobilenet_int8.cmsis_single.npz"
        >>> found = tflq.learn(evidence=[dump], models=["golden/models/digits_mobilenet_int8.tflite"])
        >>> len(found.operators) > 0
        True
    """
    if (target is None) == (not evidence) or len(evidence) != len(models):
        raise OptionError("expected --target CMD, or --dump PATH and --model FILE once for each dump")
    if target is None:
        parts = [only_dumps(subject(m).model, os.fspath(d)) for d, m in zip(evidence, models, strict=True)]
        return learn_from_dumps(
            [(p.model, samples) for p, samples in parts], ", ".join(os.fspath(path) for path in evidence)
        )
    for word in types:
        if word not in TYPES:
            raise UnknownNameError("type of codes", word, TYPES)
    named = tuple(word.upper() for word in operators)
    for word in named:
        if word not in known_operators():
            raise UnknownNameError("operator that can be learned", word, known_operators())
    system = target_of(target, python, timeout)
    wanted = subjects(tuple(types) or ("int8",), named)
    if not wanted:
        raise OptionError(f"no operator named has the types {', '.join(types)}")
    kept = None if work is None else KeptAnswers(os.fspath(work), system.identity())
    found = learn_target(system, wanted, Effort(fresh=fresh, seed=seed), most=most, progress=progress, kept=kept)
    if kept is not None and not keep and not found.is_partial:
        kept.remove()
    return found
