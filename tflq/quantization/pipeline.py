"""`quantize`: from a float model and calibration samples to a verified integer model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

from tflq.comparison.inputs.prepare import watch
from tflq.engine.api.files import Source
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.errors import ModelError
from tflq.interrupts import Progress
from tflq.model.ir import Model, TensorSpec, view
from tflq.model.ir.signatures import is_plain
from tflq.model.surgery.cut import operators_named
from tflq.quantization.build.build import Built, Task, build
from tflq.quantization.frontier import Sample, check_jobs
from tflq.quantization.judge.comparison import compare
from tflq.quantization.judge.contest import Leader, choose
from tflq.quantization.judge.journal import Journal, run_facts
from tflq.quantization.judge.outputs import Truth, truths_from
from tflq.quantization.judge.runtimes import agreed, check
from tflq.quantization.judge.tails import find_tails, with_tail
from tflq.quantization.judge.trials import (
    Sensitivity,
    Trial,
    find_eights,
    is_by_errors,
    sensitivities,
    widen_norms,
    win_back,
    within_budget,
)
from tflq.quantization.loops import fit_bodies, quantize_stream, reasons_against, with_integer_loops, without_auto_norms
from tflq.quantization.portable.editing import Rewritten
from tflq.quantization.portable.tables import in_float
from tflq.quantization.portable.targets import Aim, PortableOutcome, aim_of, outcome, targets, write_for
from tflq.quantization.quarters import parted, remarks_about
from tflq.quantization.ranges.watching import outlying_in
from tflq.quantization.recipe import Recipe, distinct
from tflq.quantization.recipe_files import finish, read_recipe
from tflq.quantization.result import QuantizationReport, Result, number, remarks
from tflq.quantization.samples import Calibration, CalibrationSource, Evaluation, read_samples, read_sequences
from tflq.quantization.scheme.float_graph import FloatModel, prepare
from tflq.quantization.source import float_model, refuse_integers, requantizing, split_outputs
from tflq.quantization.streams import integer_stream


def quantize(
    model: Source | Model | Any,
    calibration: CalibrationSource | Calibration,
    recipe: Recipe | str | os.PathLike[str] = "balanced",
    progress: Progress | None = None,
    *,
    sensitivity: bool = False,
    python: str | None = None,
    keep_best: bool = False,
    jobs: int = 1,
    requantize: bool = False,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    labels: Iterable[Truth] | None = None,
    resume: str | os.PathLike[str] | None = None,
    evaluation: CalibrationSource | Calibration | None = None,
) -> Result:
    """Quantize a float model.

    `model` is a path, the bytes of a file or a Model, or a source that TensorFlow converts first (`float_model`).
    `calibration` is a path or an iterable of samples, each a list of arrays in input order or a dict by name, batch
    dimension included. `recipe` is a preset's name, the path of a recipe or a Recipe. If a recipe has several
    candidates, the best one on samples that it was not fitted to is chosen, and fitted to all. `sensitivity` requests a
    report of the cost of each operator alone.

    With `keep_best`, an interrupt (Ctrl-C) ends the search, and the best candidate so far is returned, fitted to three
    quarters of the samples. The interrupt is still raised if the recipe has a budget, or if no candidate has been built
    yet. Up to `jobs` processes work at the same time; the result does not depend on the number.

    With `requantize`, `model` is integer. Its biases are corrected for shifts by the rounding of activations, if that
    is better on held-back samples. Only the number of samples, the profile and `constant_names` of `recipe` are used.
    The report compares with its float function: the numbers that its codes represent, without rounding in between.

    `resume` is the path of a journal that stores results of candidates, a few kilobytes each. If a run is interrupted
    or killed, the file stays, and the next run continues from it with the same result. It is deleted once there is a
    result.

    If `mean` or `std` is given, one number or one per channel, float inputs are (stored value - mean) / std. With
    `labels`, the right class of each sample, or its objects, mask or picture, the report's comparison also holds
    accuracy, mAP, mIoU or PSNR of both models. With `evaluation`, samples to which nothing is fitted, the comparison is
    on these, and the labels are theirs.

    Raises:
        InputError: The number of labels differs from the number of samples; the file at `resume` belongs to another
            model, recipe or data.
        ModelError: The model has several signatures, or is already integer; with `requantize`, it is not, or not in a
            way that keeps its codes.
        CalibrationError: A sample does not fit the model, or holds NaN or infinite values; there are no samples.
        UnknownNameError: There is no such preset, field or operator.
        OptionError: The recipe's budget cannot be kept; this number of processes is not possible.

    Example:
        >>> rows = np.load("golden/models/digits_test.npz")["images"][:32]
        >>> made = tflq.quantize("golden/models/digits_autoencoder_float.tflite", rows, "fast", std=16)
        >>> made.report.recipe.mode.value, tflq.save(made.model)[4:8]
        ('int8', b'TFL3')
    """
    check_jobs(jobs)
    source = float_model(model, python)
    recipe = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    floats, codes = None, dict[int, TensorSpec]()
    if not requantize and (stream := integer_stream(source, recipe)) is not None:
        sets = [None if s is None else read_sequences(stream.step, s, mean, std) for s in (calibration, evaluation)]
        options: dict[str, Any] = {"sensitivity": sensitivity, "keep_best": keep_best, "jobs": jobs, "labels": labels}
        fit = partial(quantize, progress=progress, resume=resume, **options)
        return quantize_stream(stream, recipe, sets[0] or [], sets[1], fit)
    if requantize:
        integer = view(source)
        floats, recipe = requantizing(source, recipe)
        source = floats.model
        codes = {tensor: integer.tensors[tensor] for tensor in view(source).inputs}
    if not is_plain(source):
        raise ModelError("the model has several signatures: quantize_weights quantizes the weights of all at once")
    refuse_integers(source)
    if recipe.split_outputs:
        source = split_outputs(source)
    make_plan(source, by_name("litert-ref"))  # refuses operators whose operands no kernel takes
    samples, known = read_samples(source, calibration, mean, std, None if evaluation is not None else labels)
    proof = Evaluation(None, None if known is None else truths_from(known))
    if evaluation is not None:
        judged, known = read_samples(source, evaluation, mean, std, labels)
        proof = Evaluation(judged, None if known is None else truths_from(known))
    aim = aim_of(recipe, source)
    form = write_for(recipe, aim, source, samples)
    looped = with_integer_loops(source, samples, recipe, fit_bodies(recipe, progress, partial(quantize, jobs=jobs)))
    if looped is not None:
        form = Rewritten(looped.model, (), looped.origins)
    scaled = not (mean is None and std is None) or getattr(calibration, "scaling", None) is not None
    remarked = (*remarks_about(source, samples, has_scaling=scaled), *(() if looped is None else looped.remarks))
    outlying_samples = outlying_in(source, watch(samples, codes, has_scaling=scaled))
    kept = operators_named(source, recipe.keep_float)
    floats = floats or prepare(form.model)
    recipe.check_against(floats.trained)
    kept_float = {i: "asked for" for i, origin in enumerate(floats.origins) if form.origins[origin] in kept}
    reasons = reasons_against(source, recipe) if looped is None else looped.refused
    kept_float |= {i: reasons[k] for i, origin in enumerate(floats.origins) if (k := form.origins[origin]) in reasons}
    portable = frozenset(i for i, origin in enumerate(floats.origins) if form.origins[origin] in aim.operators)
    task = _task(floats, kept_float, portable, samples, recipe, progress, jobs)
    if looped is not None:
        task = replace(task, reference=source, recipe=looped.renumbered(without_auto_norms(task.recipe)))
    facts = {} if resume is None else run_facts(source, recipe, samples)
    with Journal(resume, facts) as notes, threadpool_limits(1, "blas"):  # threads that wait spend processor time, too
        result = _made(
            source,
            aim,
            form,
            task,
            recipe,
            notes,
            outlying_samples,
            proof,
            sensitivity=sensitivity,
            keep_best=keep_best,
        )
    return replace(result, report=replace(result.report, data=remarked))


def _outcome(original: Model, result: Model, aim: Aim, form: Rewritten, task: Task, built: Built) -> PortableOutcome:
    """Return what became of a portable model, with operators numbered as in the source."""
    origins = [form.origins[origin] for origin in task.floats.origins]
    tables = [replace(table, index=origins[table.index]) for table in built.tables]
    made = [origins[i] if i >= 0 else -1 for i in built.integer.operators]
    return outcome(original, result, aim, (*form.rewrites, *tables), made, task.recipe)


def _made(
    original: Model,
    aim: Aim,
    form: Rewritten,
    task: Task,
    recipe: Recipe,
    notes: Journal,
    outlying_samples: tuple[int, ...],
    proof: Evaluation,
    *,
    sensitivity: bool,
    keep_best: bool,
) -> Result:
    """Return the result of a recipe for a float model, and the report: the steps of `quantize` after reading."""
    source, leader, samples = form.model, Leader(), task.samples
    try:
        tails = find_tails(source, task, notes)
        if tails is not None and tails.operators:
            task = with_tail(task, tails.operators)
        form, task, norms = widen_norms(form, task, notes)
        source = form.model
        eights = find_eights(task, notes)
        task = task if eights is None else replace(task, wide=frozenset(eights.operators))
        ranking = choose(task, leader, notes)
        task = replace(task, methods=ranking[0].methods)
        task.watching.forget_expected()
        built = build(task) if recipe.budget is None else None
    except KeyboardInterrupt:
        if not keep_best or recipe.budget is not None or leader.ranked is None:
            raise
        notes.kept = True
        task = replace(task, methods=leader.ranked.methods)
        return _interrupt(original, form, task, recipe, leader, outlying_samples, proof)
    fitting, judging = parted(samples) if recipe.budget is not None else (samples, samples)
    costs: tuple[Sensitivity, ...] = ()
    spared: dict[int, str] = {}
    trials: tuple[Trial, ...] = ()
    if sensitivity or (recipe.budget is not None and not is_by_errors(recipe)):
        costs = sensitivities(source, replace(task, samples=fitting), judging, notes)
    if recipe.budget is not None:
        attempt = within_budget(source, replace(task, samples=fitting), judging, costs, notes)
        trials = attempt.trials
        built, spared = attempt.built, dict.fromkeys(attempt.spared, recipe.spared.value)
    assert built is not None  # within the budget, or without one
    built, agreement = agreed(task, built)
    result = finish(built.integer.model, recipe)
    floats, reference = task.floats, source if recipe.portable else original  # loops of `source` are integer
    comparison = compare(reference, form, built, result, *proof.on(judging), task.progress)
    is_bound = recipe.budget is not None or recipe.portable or agreement is not None
    report = QuantizationReport(
        recipe,
        ranking,
        comparison,
        0 if judging is samples and proof.samples is None else comparison.samples,
        check(result, source, judging),
        remarks(floats, built.kept_float),
        remarks(floats, built.assignment.notes),
        remarks(floats, spared),
        tuple(replace(s, operator=floats.origins[s.operator]) for s in costs),
        outlying_samples,
        agreed=agreement,
        trials=trials,
        portable=_outcome(original, result, aim, form, task, built) if recipe.portable else None,
        tails=tails,
        eights=None if eights is None else eights.numbered(floats.origins),
        norms=norms,
        wins_back=None if is_bound else win_back(reference, task, result, comparison, judging, costs),
    )
    return Result(result, replace(number(report, form.origins), comparison=comparison))


def _interrupt(
    original: Model,
    form: Rewritten,
    task: Task,
    recipe: Recipe,
    leader: Leader,
    outlying_samples: tuple[int, ...],
    proof: Evaluation,
) -> Result:
    """Return the best candidate when the search was interrupted, compared on held-back samples."""
    fitting, judging = parted(task.samples)
    assert leader.ranked is not None  # the caller checked it
    built = leader.built or build(replace(task, samples=fitting))  # the journal holds no models
    result = finish(built.integer.model, recipe)
    reference = form.model if recipe.portable else original
    comparison = compare(reference, form, built, result, *proof.on(judging))
    report = QuantizationReport(
        recipe,
        (replace(leader.ranked, left=None),),
        comparison,
        0 if judging is task.samples and proof.samples is None else comparison.samples,
        check(result, original, judging),
        remarks(task.floats, built.kept_float),
        remarks(task.floats, built.assignment.notes),
        (),
        (),
        outlying_samples,
        interrupted=True,
    )
    return Result(result, replace(number(report, form.origins), comparison=comparison))


def _task(
    floats: FloatModel,
    kept_float: dict[int, str],
    portable: frozenset[int],
    samples: Sequence[Sample],
    recipe: Recipe,
    progress: Progress | None,
    jobs: int,
) -> Task:
    """Return the task of choosing among the recipe's candidates."""
    candidates = distinct(recipe)
    recipe = replace(recipe, candidates=candidates)
    if portable:
        kept_float = {**in_float(floats, targets(recipe.portable), portable), **kept_float}
    return Task(floats, samples, recipe, candidates[0], kept_float, portable=portable, progress=progress, jobs=jobs)
