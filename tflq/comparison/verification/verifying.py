"""`verify` and `record`: from a model and a runtime to a report, or to a golden file."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias, cast

from tflq.comparison.evidence.dumps import golden_at
from tflq.comparison.goldens.golden import Golden, Tolerance, counterpart, fit, match, own_profile, runnable
from tflq.comparison.goldens.record import observe
from tflq.comparison.goldens.stored import check_golden_output, load_golden, require_model, save_golden
from tflq.comparison.inputs.prepare import InputPreparation, Numbers, preparation
from tflq.comparison.inputs.read import Feed, Feeds, InputSource, make_feeds, make_inputs
from tflq.comparison.results import CompareMode, OperatorResult, Status, TensorResult, Verdict, apart
from tflq.comparison.verification.report import Verification, guards, known_changes
from tflq.comparison.verification.walk import compared
from tflq.engine.api.files import Source, Subject, subject
from tflq.engine.profiles import Profile
from tflq.engine.profiles import by_name as profile_by_name
from tflq.engine.profiles.history import ReleaseChange
from tflq.engine.runtimes import FOREIGN, RUNTIMES, Runtime
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.errors import GoldenError, OptionError, UnknownNameError
from tflq.interrupts import Progress
from tflq.model.ir import Model, Signed, signed, view
from tflq.model.ir.model import enum
from tflq.model.storage.stores import is_url
from tflq.texts import Statement

#: Number of samples that a runtime runs together, and approximate limit on bytes of their tensors.
_MOST_SAMPLES, _MOST_BYTES = 256, 256 << 20
MODES = tuple(mode.value for mode in CompareMode)
#: A runtime's name, a runtime, a golden file's path, or a golden.
Against: TypeAlias = "str | os.PathLike[str] | Runtime | Golden"


def verify(
    model: Source | Model,
    against: Against = "litert-ref",
    inputs: Feed = None,
    mode: str | CompareMode | None = None,
    profile: str | Profile | None = None,
    samples: int = 1,
    seed: int = 0,
    python: str | None = None,
    progress: Progress | None = None,
    tolerances: Mapping[str, int] | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    quantize_inputs: bool = False,
    bgr: bool = False,
    signature: str | None = None,
) -> Verification:
    """Compare every tensor of every operator, bit by bit, with a real runtime or a golden file.

    Args:
        model: A path, the bytes of a file, or a Model.
        against: A runtime's name ("litert-ref", "litert-xnnpack", "tflm" ...), a Runtime, or a golden file.
        inputs: A generator ("random", "smooth", "extremes"), a file, or arrays by name or position.
        mode: "isolated" feeds each operator the runtime's own inputs; "cumulative" runs end to end. None: isolated,
            or cumulative for a golden that holds outputs only.
        profile: The arithmetic to compute; None for that of the runtime, or of the golden file's runtime.
        samples: The number of inputs to generate.
        seed: The seed of the generator.
        python: The path of a Python that has the runtime installed, if not this one.
        progress: Called as progress(what, done, total).
        tolerances: By operator, "CONV_2D" or its index "12" or "*" for all: the bound in LSB, or ULP of floats, on its
            differences. The verdict is then CLOSE, never SAME.
        mean, std: Inputs are (stored - mean) / std for numbers in images and arrays; one number, or one per channel.
        quantize_inputs: Floats for integer inputs are real values, which become codes.
        bgr: Channels of images enter in the order blue, green, red.
        signature: The only signature to compare; None for all.

    Example:
        >>> report = tflq.verify("golden/models/digits_mobilenet_int8.tflite", against="litert-ref")
        >>> report.verdict.value, report.differing
        ('same', 0)

    Raises:
        UnsupportedError: In cumulative mode, an operator that the profile cannot run; in isolated mode such an operator
            is reported as not compared.
        RuntimeMissing, RuntimeFailed: The runtime is not installed, or it refused or crashed.
        GoldenError: The golden file is for another model, or has no tensors for isolated mode.
    """
    if mode is not None and mode not in MODES:
        raise UnknownNameError("mode", mode, MODES)
    chosen = None if profile is None else profile_by_name(profile)
    report_progress = progress or _silent
    target = subject(model)
    how = preparation(mean, std, quantize_inputs, bgr)
    every, parts = signed(target.model), signed(target.model, signature)
    with _expectation(target, parts, against, inputs, samples, seed, python, report_progress, how) as (golden, path):
        require_model(path or "golden", golden.model_sha256, target.facts.sha256)
        golden, note = fit(golden, every), ""
        late = _late(golden.tolerances, date.today())
        allowed = {t.operator: t.steps for t in golden.tolerances if t not in late}
        _check_tolerated(tolerances or {}, parts)
        tolerances = {**allowed, **(tolerances or {})}
        if chosen is None:
            chosen, note = counterpart(golden.runtime)
        chosen, processor_note = match(chosen, golden.runtime)
        fed = CompareMode(mode or (CompareMode.ISOLATED if golden.tensors else CompareMode.CUMULATIVE))
        if fed == CompareMode.ISOLATED and not golden.tensors:
            raise GoldenError(
                f"{path or 'golden'}: holds outputs only; isolated mode needs a golden recorded with all tensors"
            )
        found = compared(target.model, every, chosen, golden, report_progress, fed)
        names = {part.name for part in parts}
        found = tuple(one for part, one in zip(every, found, strict=True) if part.name in names)
        operators = tuple(operator for one in found for operator in one.operators)
        outputs = tuple(output for one in found for output in one.outputs)
        if tolerances:
            operators = tuple(_tolerating(operator, tolerances) for operator in operators)
            outputs = tuple(_tolerating_output(parts, output, tolerances) for output in outputs)
        report = Verification(
            model=target.facts,
            profile=chosen.name,
            against=golden.runtime,
            golden=path,
            mode=fed,
            inputs=golden.inputs,
            operators=operators,
            outputs=outputs,
            notes=(
                *filter(None, (note, processor_note)),
                *golden.notes,
                *(note for one in found for note in one.notes),
                *map(_expired, late),
                *guards(target.model, golden),
            ),
            operator_count=sum(len(view(part.model).ops) for part in parts),
            apart=apart(target.model, every),
            signatures=tuple(part.name for part in parts if part.name),
            others=tuple(part.name for part in every if part.name not in names),
        )
        return report if profile is None else _explain(report, model, parts, golden, fed, signature, report_progress)


def _explain(
    report: Verification,
    model: Source | Model,
    parts: Sequence[Signed],
    golden: Golden,
    mode: CompareMode,
    signature: str | None,
    progress: Progress,
) -> Verification:
    """Return the report; if it differs, with the runtime's own profile where that one reproduces every bit."""
    own = own_profile(golden.runtime) if report.verdict == Verdict.DIFFERS else None
    if own is None or own.name == report.profile:
        return report
    golden = replace(golden, tolerances=())
    again = verify(model, golden, mode=mode, profile=own, progress=progress, signature=signature)
    if again.verdict != Verdict.SAME:
        return report
    changes: dict[ReleaseChange, None] = {}
    for part in parts:
        differing = [o.index for o in report.operators if o.signature == part.name and o.status == Status.DIFFERS]
        if not report.operators:
            differing = [op.index for op in view(part.model).ops]
        changes |= dict.fromkeys(known_changes(part.model, differing, own.name, report.profile))
    return replace(report, own=own.name, changes=tuple(changes))


def record(
    model: Source | Model,
    against: str | Runtime = "litert-ref",
    inputs: Feed = None,
    all_tensors: bool = False,
    output: str | os.PathLike[str] | None = None,
    samples: int = 1,
    seed: int = 0,
    python: str | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    quantize_inputs: bool = False,
    bgr: bool = False,
    signature: str | None = None,
) -> Golden:
    """Run a real runtime and return its results as a golden, saved at `output` if one is given.

    A path that ends in .zip or /, or is a URL, becomes a bundle, any other path an `.npz` archive. Either is written
    while the runtime runs, and the result reads its samples from there on demand.

    Raises:
        FileAccessError: `output` cannot be written, or is an input file; raised before anything runs.

    Example:
        >>> golden = tflq.record("golden/models/digits_autoencoder_int8.tflite", all_tensors=True)
        >>> tflq.verify("golden/models/digits_autoencoder_int8.tflite", golden).verdict.value
        'same'
    """
    if output is not None:
        sources = [source for source in (model, inputs) if isinstance(source, (str, os.PathLike))]
        check_golden_output(output, sources, replaces=True)
    target, runtime = subject(model), runtime_by_name(against, python=python)
    parts = runnable(signed(target.model, signature), runtime)
    fed = make_feeds(parts, inputs, samples, seed, preparation(mean, std, quantize_inputs, bgr))
    if output is None:
        return observe(target, runtime, fed, all_tensors=all_tensors)
    save_golden(_observe(target, runtime, fed, all_tensors=all_tensors), output)
    return replace(load_golden(output, on_demand=True), inputs=fed.facts)


def _observe(target: Subject, runtime: Runtime, fed: Feeds, *, all_tensors: bool) -> Iterator[Golden]:
    """Yield the runtime's results for the samples, in batches of bounded size."""
    step = _at_once(target.model, all_tensors=all_tensors)
    sequences = fed.sequences()
    for first in range(0, len(sequences), step):
        steps = tuple(one for sequence in sequences[first : first + step] for one in sequence)
        yield observe(target, runtime, replace(fed, steps=steps), all_tensors=all_tensors)


def _at_once(model: Model, *, all_tensors: bool) -> int:
    """Return the number of samples of a batch."""
    kept = [t for graph in model.subgraphs for t in graph.tensors] if all_tensors else []
    size = sum(8 * math.prod(max(1, n) for n in spec.shape) for spec in kept)
    return max(1, min(_MOST_SAMPLES, _MOST_BYTES // max(1, size)))


@contextmanager
def _expectation(
    target: Subject,
    parts: Sequence[Signed],
    against: Against,
    inputs: Feed,
    samples: int,
    seed: int,
    python: str | None,
    progress: Progress,
    how: InputPreparation,
) -> Iterator[tuple[Golden, str]]:
    """Yield the golden to compare with, and the path of its file, if any.

    What a runtime computes is on the disk meanwhile if it is more than one batch of samples.
    """
    if isinstance(against, Golden) or _is_path(against):
        if python is not None:
            raise OptionError("a golden file needs no runtime: do not give python")
        golden = against if isinstance(against, Golden) else golden_at(target.model, against)  # type: ignore[arg-type]
        path = "" if isinstance(against, Golden) else os.fspath(against)  # type: ignore[arg-type]
        yield _with_inputs(golden, path, target.model, inputs, how), path
        return
    runtime = runtime_by_name(against, python=python)  # type: ignore[arg-type]
    fed = make_feeds(runnable(parts, runtime), inputs, samples, seed, how)
    progress(f"running {runtime.name}", 0, 1)
    if len(fed.sequences()) <= _at_once(target.model, all_tensors=True):
        yield observe(target, runtime, fed, all_tensors=True), ""
        return
    with TemporaryDirectory(prefix="tflq-") as folder:
        place = os.path.join(folder, "golden", "")
        save_golden(_observe(target, runtime, fed, all_tensors=True), place)
        yield replace(load_golden(place), inputs=fed.facts), ""


def _with_inputs(golden: Golden, path: str, model: Model, inputs: Feed, how: InputPreparation) -> Golden:
    """Return the golden with the inputs that it lacks; its own inputs cannot be replaced."""
    several = any(signature is not None for signature, _ in golden.steps)
    if several or any(observation.inputs for observation in golden.observations) or not view(model).inputs:
        if inputs is not None:
            raise OptionError("a golden file brings its own inputs: do not give inputs")
        return golden
    place, count = path or "golden", len(golden.observations)
    if inputs is None:
        raise GoldenError(f"{place}: holds no inputs (entries s0_in0 ...): give them with --inputs (inputs=)")
    fed = make_inputs(model, cast(InputSource, inputs), count, 0, how)
    if len(fed.samples) != count:
        raise GoldenError(f"{place}: expected inputs of {count} samples, got {len(fed.samples)}")
    observations = (replace(o, inputs=s) for o, s in zip(golden.observations, fed.samples, strict=True))
    return replace(golden, observations=tuple(observations), inputs=fed.facts)


def _is_path(against: object) -> bool:
    if isinstance(against, os.PathLike):
        return True
    if not isinstance(against, str) or against in RUNTIMES or against in FOREIGN:
        return False
    return is_url(against) or against.endswith((".npz", ".zip")) or Path(against).exists()


def _late(tolerances: tuple[Tolerance, ...], today: date) -> tuple[Tolerance, ...]:
    """Return the tolerances that have expired; the last day counts as valid."""
    return tuple(t for t in tolerances if date.fromisoformat(t.expires) < today)


def _expired(tolerance: Tolerance) -> str:
    text = f"the tolerance of {tolerance.operator} expired on {tolerance.expires}: {tolerance.reason}"
    return Statement(text, "expired-tolerance", **asdict(tolerance))


def _tolerating(operator: OperatorResult, tolerances: Mapping[str, int]) -> OperatorResult:
    """Return the operator's results with its tolerance: by index, else by name, else for all."""
    limit = _limit(tolerances, operator.index, operator.op)
    return replace(operator, tensors=tuple(replace(tensor, tolerance=limit) for tensor in operator.tensors))


def _tolerating_output(parts: Sequence[Signed], output: TensorResult, tolerances: Mapping[str, int]) -> TensorResult:
    """Return the output of the graph with the tolerance of the operator that makes it."""
    model = next(part.model for part in parts if part.name == output.signature)
    maker = view(model).maker(output.index)
    limit = _limit(tolerances, None, "") if maker is None else _limit(tolerances, maker.index, maker.name)
    return replace(output, tolerance=limit)


def _check_tolerated(tolerances: Mapping[str, int], parts: Sequence[Signed]) -> None:
    """Raise an UnknownNameError if a tolerance is for no operator: neither of the model nor of the format."""
    ops = [op for part in parts for op in view(part.model).ops]
    known = {"*", *enum("BuiltinOperator"), *(op.name for op in ops), *(str(op.index) for op in ops)}
    for key in tolerances:
        if key not in known:
            raise UnknownNameError("operator of a tolerance", key, sorted({op.name for op in ops}))


def _limit(tolerances: Mapping[str, int], index: int | None, op: str) -> int | None:
    return next((tolerances[key] for key in (str(index), op, "*") if key in tolerances), None)


def _silent(what: str, done: int, total: int) -> None:
    pass
