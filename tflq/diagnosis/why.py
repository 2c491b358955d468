"""The answer to "why do these results differ?": nearest profile, first operator, cause, fault, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.evidence.inputs import has_scale, prepare
from tflq.comparison.verification.scaling import Scaling
from tflq.diagnosis.answers import Answer, Fault, Weight
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.evidence import Evidence
from tflq.diagnosis.findings import Findings, investigate
from tflq.diagnosis.localization import BySample, in_order, localize_samples
from tflq.diagnosis.profile_fit import Fit, FitVerdict, fit
from tflq.diagnosis.sampling import confirm, selections
from tflq.diagnosis.usage.inputs import UNFILLED
from tflq.diagnosis.usage.search import Mistake, Side, find_mistake, near_mistakes
from tflq.engine.interpreter import make_plan, run
from tflq.engine.interpreter.arrays import admit, open_shape
from tflq.engine.profiles import Profile, by_name
from tflq.errors import InputError, TflqError, TypeMismatchError
from tflq.model.ir import CARRIER, Model, TensorType, view
from tflq.progress import Progress, silent
from tflq.statements import Statement
from tflq.typing import Array

__all__ = ["Answer", "Fault", "Weight", "answer"]

#: An input that uses at most this share of its codes was probably prepared for another range.
_FEW = 1 / 32
#: Fewer elements of an output may be equal by chance.
_FEW_ELEMENTS = 8
#: Fewer elements of an input show nothing about the codes that it uses.
_ENOUGH = 64


def answer(
    model: Model,
    evidence: Evidence,
    base: Profile | str = "litert-ref",
    given: Sequence[Array] = (),
    scaling: Scaling | None = None,
    *,
    is_recorded: bool = False,
    progress: Progress = silent,
) -> Answer:
    """Find the user's mistake, or else the nearest profile and the cause of the first difference.

    `given` are the user's numbers for the only input, one array for each sample; `scaling` converts them to real
    values, if they are stored numbers. If tflq itself recorded a runtime (`is_recorded`), the user made no mistake.
    `progress` is called as progress(what, done, total) before each step.

    Raises:
        InputError: The evidence fits the model in no known way.
    """
    profile = by_name(base)
    dumps = evidence.dumps
    whole = _in_order(model, dumps, given, scaling, profile)
    is_stream = whole is not None and any(dump.continues for dump in whole)
    progress("mistakes of the user", 0, 0)
    search = not is_recorded and not is_stream
    mistake = find_mistake(model, evidence.samples, profile, given, scaling) if search else None
    warnings = tuple(_warnings(model, evidence.samples))
    plain = None
    is_unfilled = mistake is not None and mistake.name.startswith(UNFILLED)
    if mistake is not None and whole is not None and (is_unfilled or _is_steady(model, evidence.samples)):
        plain = _plainly(model, whole, profile, progress)
        if plain.fit is not None and plain.fit.fitting:
            mistake = None  # a profile gives these outputs of the right inputs
    if mistake is not None:
        weight = _weight_of_input(model, mistake, evidence, profile)
        beside = replace(mistake, dumps=dumps) if mistake.is_known and dumps is not None else mistake
        is_open = bool(beside.dumps) and (mistake.is_known or bool(mistake.after))
        fitted, findings = _beside(model, beside, profile) if is_open else (None, None)
        return Answer(profile.name, fitted, findings, mistake, weight, len(evidence.samples), warnings)
    if whole is None and dumps is not None:
        whole = _complete(model, dumps, given, scaling)
    if plain is None and whole is not None:
        plain = _plainly(model, whole, profile, progress)
    if search and (plain is None or not plain.is_whole):
        for near in near_mistakes(model, evidence.samples, profile, given, scaling):
            fitted, findings = _beside(model, near, profile)
            is_better = plain is None or not plain.is_explained or (fitted is not None and bool(fitted.fitting))
            if findings is not None and is_better:
                weight = _weight_of_input(model, near, evidence, profile)
                return Answer(profile.name, fitted, findings, near, weight, len(evidence.samples), warnings)
    if plain is None:
        raise InputError(evidence.problem)
    return replace(plain, warnings=warnings)


def _in_order(
    model: Model, dumps: tuple[Dump, ...] | None, given: Sequence[Array], scaling: Scaling | None, profile: Profile
) -> tuple[Dump, ...] | None:
    """Return the samples, those of a model with state in the order that fits; None if their inputs do not fit."""
    if dumps is None:
        return None
    try:
        return in_order(model, _complete(model, dumps, given, scaling), profile)
    except TflqError:
        return None


def _is_steady(model: Model, samples: Sequence[dict[int, Array]]) -> bool:
    """Return whether several samples have the same outputs, so that they show little about the inputs."""
    outputs = [t for t in view(model).outputs if all(t in one for one in samples)]
    return len(samples) > 1 and all(np.array_equal(one[t], samples[0][t]) for one in samples for t in outputs)


def _beside(model: Model, mistake: Mistake, profile: Profile) -> tuple[Fit | None, Findings | None]:
    """Return what explains the differences that remain without the user's mistake; None if nothing is likely to."""
    by_sample = localize_samples(model, mistake.dumps, profile)
    if not any(o.differs for row in by_sample for o in row):
        return None, None
    fitted = fit(model, mistake.dumps, profile, by_sample)
    findings = investigate(model, mistake.dumps, profile, by_sample=by_sample)
    explanation = findings.explanation
    is_told = explanation is not None and bool(explanation.exact) and explanation.certainty != Certainty.NONE
    is_fitting = bool(fitted.fitting) and fitted.certainty != Certainty.NONE
    return (fitted, findings) if is_fitting or is_told else (None, None)


def _plainly(model: Model, dumps: tuple[Dump, ...], profile: Profile, progress: Progress) -> Answer:
    """Return the nearest profile and the cause of the first difference, without mistakes of the user.

    As many samples are compared with all profiles as are needed.
    """
    progress("all samples, with one profile", 0, 0)
    by_sample = localize_samples(model, dumps, profile)
    is_stream = any(dump.continues for dump in dumps)
    for chosen in [tuple(range(len(dumps)))] if is_stream else selections(by_sample):
        here = f"{len(chosen)} of {len(dumps)} samples"
        progress(f"{here}, with all profiles", 0, 0)
        fitted = fit(model, [dumps[k] for k in chosen], profile, tuple(by_sample[k] for k in chosen))
        progress(f"{here}, causes", 0, 0)
        findings = _findings(model, dumps, by_sample, chosen, profile, fitted)
        if len(chosen) == len(dumps):
            return Answer(profile.name, fitted, findings, None, _weight(findings), len(dumps))
        progress(f"the answer of {here}, on all", 0, 0)
        on_all = confirm(model, dumps, by_sample, profile, fitted, findings)
        if on_all is not None:
            fitted, findings = on_all
            weight = _weight(findings)
            return Answer(profile.name, fitted, findings, None, weight, len(dumps), compared=len(chosen))
    raise AssertionError("the last selection has all samples")


def _findings(
    model: Model, dumps: Sequence[Dump], by_sample: BySample, chosen: Sequence[int], profile: Profile, fitted: Fit
) -> Findings:
    """Return the findings under the profile, or under the nearest one if only that leaves an operator unexplained."""
    findings = investigate(model, dumps, profile, by_sample=by_sample, among=chosen)
    is_same = (
        fitted.best == profile.name
        and findings.explanation is not None
        and fitted.unknown[:1] == (findings.explanation.index,)
    )
    if fitted.verdict == FitVerdict.PARTLY and fitted.unknown and not is_same and not _is_told(findings):
        return investigate(model, dumps, by_name(fitted.best), op=fitted.unknown[0], among=chosen)
    return findings


def _is_told(findings: Findings) -> bool:
    """Return whether the values show a fault that is no arithmetic."""
    explanation = findings.explanation
    is_shown = explanation is not None and explanation.defect is not None and not explanation.causes
    return is_shown and explanation is not None and explanation.certainty == Certainty.CERTAIN


def _complete(
    model: Model, dumps: tuple[Dump, ...], given: Sequence[Array], scaling: Scaling | None
) -> tuple[Dump, ...]:
    """Return the dumps with the given inputs, if they lack them.

    Raises:
        InputError: The given inputs are of another number or shape.
    """
    graph = view(model)
    if not given or any(graph.inputs[0] in d.tensors for d in dumps):
        return dumps
    spec = graph.tensors[graph.inputs[0]]
    name = spec.name or "input"
    if len(given) != len(dumps):
        raise InputError("number of samples of the inputs", expected=len(dumps), got=len(given))
    right = prepare(spec, given, scaling)
    if right is None:
        expected = CARRIER[TensorType(spec.type)]
        raise TypeMismatchError(name, expected, given[0].dtype).advising("--mean and --std convert stored numbers")
    fitting = [admit(v, spec.type, open_shape(spec), name) for v in right]
    return tuple(replace(d, tensors={graph.inputs[0]: v, **d.tensors}) for d, v in zip(dumps, fitting, strict=True))


def _weight(findings: Findings) -> Weight | None:
    """Return the gravest effect of one operator's difference."""
    growths = [growth for growth in findings.growths if not growth.reason]
    if findings.amplification is not None and not growths:
        growths = [findings.amplification]
    rows = max((sum(choice.rows for choice in growth.choices) for growth in growths), default=0)
    if not growths:
        return None
    return Weight(max(g.flipped for g in growths), rows, max(g.effect for g in growths))


def _weight_of_input(model: Model, mistake: Mistake, evidence: Evidence, profile: Profile) -> Weight | None:
    """Return how the first output changes by a mistaken input."""
    graph = view(model)
    if mistake.side != Side.INPUT or not mistake.expected:
        return None
    tensor, flipped, rows, effect = graph.inputs[0], 0, 0, 0.0
    fed = mistake.dumps or tuple(Dump("", one) for one in evidence.samples)
    for right, dump in zip(mistake.expected, fed, strict=False):
        try:
            one, other = (_output(model, profile, {tensor: v}) for v in (right, dump.tensors[tensor]))
        except TflqError:
            return None
        span = max(float(np.abs(one.astype(np.float64)).max(initial=0)), 1e-30)
        effect = max(effect, float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max(initial=0)) / span)
        if one.ndim and one.shape[-1] > 1:
            flipped += int(np.count_nonzero(one.argmax(-1) != other.argmax(-1)))
            rows += one.size // one.shape[-1]
    return Weight(flipped, rows, effect)


def _output(model: Model, profile: Profile, inputs: dict[int, Array]) -> Array:
    plan = make_plan(model, profile)
    return np.asarray(run(plan, inputs).values[view(model).outputs[0]])


def _constants(model: Model, samples: Sequence[dict[int, Array]]) -> Iterator[Statement]:
    """Yield the outputs that have one value in all elements of all samples."""
    graph = view(model)
    for tensor in graph.outputs:
        values = [np.asarray(one[tensor]).reshape(-1) for one in samples if tensor in one]
        if sum(v.size for v in values) < _FEW_ELEMENTS or values[0].dtype.kind not in "iuf":
            continue
        every = np.unique(np.concatenate(values))
        if len(every) == 1:
            name = graph.tensors[tensor].name or tensor
            text = f"output {name} is the constant {every[0]:g} in all {len(values)} samples: never written, perhaps"
            yield Statement(text, "constant-output", tensor=tensor, name=str(name), value=float(every[0]))


def _warnings(model: Model, samples: Sequence[dict[int, Array]]) -> list[Statement]:
    """Return hints that an input was prepared for another range, and that an output is a constant."""
    found = list(_constants(model, samples))
    graph = view(model)
    for tensor in graph.inputs:
        spec = graph.tensors[tensor]
        values = [np.asarray(one[tensor]).reshape(-1) for one in samples if tensor in one]
        if not values or not has_scale(spec) or sum(v.size for v in values) < _ENOUGH:
            continue
        used = len(np.unique(np.concatenate(values)))
        span = 256 if values[0].dtype.itemsize == 1 else 65536
        if used <= span * _FEW and values[0].dtype.kind in "iu" and span == 256:
            text = f"input {spec.name or tensor} uses {used} of {span} codes: was it scaled for another range?"
            found.append(Statement(text, "few-codes", tensor=tensor, name=spec.name or "", used=used, codes=span))
    return found
