"""Samples that suffice for an answer: the most telling ones first, and what they show checked on all others.

With every sample more, fewer hypotheses reproduce all bits. So a profile or cause that fits a few samples fits all of
them exactly if it is compared with the others, too, and one that does not fit the few fits nowhere. What may grow with
more samples is only the evidence; more of it is taken until the rule in `certainty` is satisfied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from tflq.comparison.verification.dump import Dump
from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.findings import Findings
from tflq.diagnosis.hypotheses import Hypothesis
from tflq.diagnosis.localization import BySample, differing_elements, localize_samples, operators_alone, trust
from tflq.diagnosis.outcomes import results, score
from tflq.diagnosis.profile_fit import Fit, FitVerdict, exact_operators, fit
from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError
from tflq.model.ir import Model

#: Up to this number, all samples are taken: choosing would not pay.
_FEW = 8
#: The least number of samples that are chosen: several stimuli, and one to check what the others show.
_LEAST = 3
#: Number of samples on which all names of a cause are computed, where a profile explains the whole.
_CHECKED = 8
#: The factor by which further samples are taken if those chosen were not enough.
_MORE = 4


def selections(by_sample: BySample) -> Iterator[tuple[int, ...]]:
    """Yield growing selections of samples, in their order; the last one has all.

    The first has, for each operator that differs, the sample in which most of its elements differ.
    """
    count = len(by_sample)
    ranked, needed = _rank(by_sample)
    size = max(_LEAST, needed)
    while count > _FEW and size * 2 <= count:
        yield tuple(sorted(ranked[:size]))
        size *= _MORE
    yield tuple(range(count))


def _rank(by_sample: BySample) -> tuple[list[int], int]:
    """Return all samples, the most telling first, and the number of those in which every differing operator differs.

    These come first: each time the sample that shows most operators which those before it do not show.
    """
    differing = [[differing_elements(operator) for operator in row] for row in by_sample]
    order = sorted(range(len(by_sample)), key=lambda k: (-sum(differing[k]), k))
    shown = [{i for i, count in enumerate(row) if count} for row in differing]
    missing, cover = set[int]().union(*shown), list[int]()
    while missing:
        best = max(order, key=lambda k: len(shown[k] & missing))  # of equal ones the first in that order
        cover.append(best)
        missing -= shown[best]
    return [*cover, *(k for k in order if k not in cover)], len(cover)


def confirm(
    model: Model, dumps: Sequence[Dump], by_sample: BySample, profile: Profile, fitted: Fit, findings: Findings
) -> tuple[Fit, Findings] | None:
    """Return what some samples show, confirmed by all; None if it is not certain, or not true of all.

    `fitted` and `findings` are those of some samples, `by_sample` compares all of them with `profile`. Profiles that
    fit some samples only do not fit.
    """
    explanation = findings.explanation
    is_fitting = _is_certain(fitted)
    is_told = explanation is not None and explanation.certainty == Certainty.CERTAIN
    if not (is_fitting or is_told):
        return None
    names = fitted.fitting if is_fitting else tuple(dict.fromkeys((fitted.best, *fitted.parts)))
    whole = fit(model, dumps, profile, by_sample, names)
    if whole.compared != fitted.compared or whole.failures != fitted.failures:
        return None
    if is_fitting:
        fitted = replace(fitted, matrix={**fitted.matrix, **whole.matrix})
        if not _is_certain(fitted):
            return None
    elif any(exact_operators(whole.matrix[name]) != exact_operators(fitted.matrix[name]) for name in names):
        return None
    if explanation is None:
        return fitted, findings
    checked = _CHECKED if is_fitting else len(dumps)
    causes = _of_all(model, dumps, by_sample, profile, findings, explanation, checked)
    if causes is None:
        return None
    return fitted, replace(findings, explanation=replace(explanation, causes=causes))


def _is_certain(fitted: Fit) -> bool:
    return fitted.verdict == FitVerdict.FITS and fitted.certainty == Certainty.CERTAIN


def _of_all(
    model: Model,
    dumps: Sequence[Dump],
    by_sample: BySample,
    profile: Profile,
    findings: Findings,
    explanation: Explanation,
    checked: int,
) -> tuple[Cause, ...] | None:
    """Return the causes, without names that do not reproduce every bit; None if none is left that does.

    All names are computed on the `checked` most telling samples, and the first one that is left on the others.
    """
    if not explanation.exact:
        return explanation.causes
    named = profile if findings.profile == profile.name else by_name(findings.profile)
    rows = by_sample if named is profile else localize_samples(model, dumps, named)
    told = [k for k in _rank(rows)[0] if rows[k][explanation.index].differences]
    held = (replace(trust(dumps[k], rows[k]), variables=rows[k][explanation.index].began) for k in told)
    try:
        parts = list(operators_alone(model, held, explanation.index, named))
    except TflqError:
        return None
    causes = []
    for cause in explanation.causes:
        members = cause.members
        if cause.exact:
            members = tuple(member for member in members if all(_gives(member, part) for part in parts[:checked]))
            wrong = takewhile(lambda member: not all(_gives(member, part) for part in parts[checked:]), members)
            members = members[len(tuple(wrong)) :]
        if members:
            causes.append(replace(cause, members=members))
    return tuple(causes) if any(cause.exact for cause in causes) else None


def _gives(member: Hypothesis, part: Part) -> bool:
    matching, elements = score(results(member.device, part), part.got)
    return matching == elements
