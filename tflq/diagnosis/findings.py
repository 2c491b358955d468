"""All findings on a dump, from the samples that suffice for them.

All findings on a dump: where it differs from a profile, the cause, one traced element, and the consequences.

Samples that suffice for an answer: the most telling ones first, and what they show checked on all others.

With every sample more, fewer hypotheses reproduce all bits. So a profile or cause that fits a few samples fits all of
them exactly if it is compared with the others, too, and one that does not fit the few fits nowhere. What may grow with
more samples is only the evidence; more of it is taken until the rule in `certainty` is satisfied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.inspection.difference import same_bits, unequal
from tflq.comparison.results import CompareMode, Located, Status, Verdict, over_samples
from tflq.diagnosis.amplification import Amplification, amplify, by_consequence, is_noise
from tflq.diagnosis.apart import Discrimination
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.element import ElementTrace, trace_element
from tflq.diagnosis.explanation import explain_operator, prove
from tflq.diagnosis.faults import Defect, WrongResult, defect_after, filled, shown_defect, wrong_result
from tflq.diagnosis.hypotheses import Hypothesis, HypothesisKind, reproduces, results
from tflq.diagnosis.localization import BySample, differing_elements, localize_samples, most_telling, trust
from tflq.diagnosis.profile_fit import Fit, FitVerdict, exact_operators, fit
from tflq.diagnosis.siblings import NONE, Joint, compare_elsewhere
from tflq.engine.api.many import Part
from tflq.engine.interpreter import Plan, make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.errors import OptionError, TflqError
from tflq.model.ir import Model, view
from tflq.texts import Tabular, display_by
from tflq.typing import Array

Index = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Worked:
    """A traced element of operator `index` under the profile; `got` is the dump's, None if it has none.

    `other` is the same element under the cause, if there is one and its steps are known.
    """

    index: int
    tensor: int
    trace: ElementTrace
    got: int | float | bool | None = None
    other: ElementTrace | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Divergence:
    """The first differing result of an operator: the profile's and the dump's."""

    index: int
    tensor: int
    name: str
    expected: Array
    got: Array

    @property
    def first(self) -> Index:
        """The first differing element."""
        apart = unequal(self.expected, self.got)
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape))


@display_by("explain:explain_report", "explain_document", "operators")
@dataclass(frozen=True, slots=True, eq=False)
class Findings(Tabular):
    """A dump compared with a profile. Parts about one operator are None if no operator differs or is requested."""

    profile: str
    mode: CompareMode
    operators: tuple[Located, ...]
    unknown: tuple[str, ...] = ()  # entries of the dump that name no tensor
    explanation: Explanation | None = None
    divergence: Divergence | None = None
    element: Worked | None = None
    amplification: Amplification | None = None
    growths: tuple[Amplification, ...] = ()  # of operators that differ, each alone, by consequence
    discrimination: Discrimination | None = None  # if it was requested, and several causes fit
    sample: int | None = None  # number of this sample among several: the one in which most elements differ
    faults: tuple[str, ...] = ()  # parts of the explanation that could not be computed, and why
    joint: Joint = NONE  # arithmetics that many operators share
    signature: str = ""  # if the model has several
    signatures: tuple[Findings, ...] = ()  # of all that the dump is of, if there are several, these among them
    is_of_outputs: bool = False  # all outputs of the model were compared, and no other tensor was given

    @property
    def every(self) -> tuple[Findings, ...]:
        """The findings on all signatures that the dump is of."""
        return self.signatures or (self,)

    @property
    def verdict(self) -> Verdict:
        """The verdict: same, close, differs, nothing compared, or incomplete (no difference in the compared part)."""
        if not self.operators:
            return Verdict.NOTHING
        if self.first is not None:
            return Verdict.DIFFERS
        is_compared = any(o.differences for o in self.operators)
        if not self.is_of_outputs and any(o.reason for o in self.operators if not (is_compared and o.is_unwritten)):
            return Verdict.INCOMPLETE
        return Verdict.CLOSE if any(o.status == Status.CLOSE for o in self.operators) else Verdict.SAME

    @property
    def differing(self) -> tuple[Located, ...]:
        """The operators that differ."""
        return tuple(o for o in self.operators if o.differs)

    @property
    def first(self) -> Located | None:
        """The first operator that differs, in order of execution."""
        return next(iter(self.differing), None)

    @property
    def noise(self) -> tuple[Located, ...]:
        """The operators whose differences are no larger than the noise of floats."""
        return tuple(o for o in self.differing if is_noise(o))

    @property
    def explained(self) -> Located | None:
        """The operator that the explanation is about."""
        return None if self.explanation is None else self.operators[self.explanation.index]


#: Verdicts, the gravest first.
_GRAVEST = (Verdict.DIFFERS, Verdict.NOTHING, Verdict.INCOMPLETE, Verdict.CLOSE, Verdict.SAME)


def gravest(found: Sequence[Findings]) -> Findings:
    """Return the findings with the gravest verdict, the first of several, which hold all in `signatures`."""
    worst = min(found, key=lambda one: _GRAVEST.index(one.verdict))
    return replace(worst, signatures=tuple(found)) if len(found) > 1 else worst


def investigate(
    model: Model,
    samples: Sequence[Dump],
    profile: Profile,
    *,
    op: int | None = None,
    mode: CompareMode = CompareMode.ISOLATED,
    element: Index | None = None,
    by_sample: BySample | None = None,
    among: Collection[int] = (),
) -> Findings:
    """Compare all samples of a dump with a profile, and explain operator `op`, or the one with the worst consequence.

    That is the operator whose difference alone changes the graph's outputs most; noise of floats counts only if nothing
    else differs. In a cumulative comparison it is the first that differs.

    `element` of it is traced, or its first differing one. `by_sample` is what `localize_samples` returns, if that is
    known. Causes are computed on the samples `among` all, and on the one in which most elements differ.

    Raises:
        OptionError: There is no such operator or element.
    """
    check_operator(model, op)
    by_sample = localize_samples(model, samples, profile, mode) if by_sample is None else by_sample
    operators = over_samples(by_sample)
    alone = _are_outputs_alone(model, operators)
    findings = Findings(profile.name, mode, operators, samples[0].unknown, is_of_outputs=alone)
    growths, faults = tuple[Amplification, ...](), list[str]()
    with _note(faults, "how differences grow"):
        if mode == CompareMode.ISOLATED:  # end to end, later operators differ because of earlier ones
            growths = by_consequence(findings.differing, model, samples, by_sample, profile)
    first = findings.first
    index = op if op is not None else None if first is None else growths[0].index if growths else first.index
    defect = None
    if index is not None and mode == CompareMode.ISOLATED:
        with _note(faults, "faults that are no arithmetic"):
            wanted = [o for o in findings.differing if o.index == op or (op is None and not is_noise(o))]
            every = [trust(one, row) for one, row in zip(samples, by_sample, strict=True)]
            defect = shown_defect(model, every, wanted, profile, index)
            index = index if defect is None else defect[0]
    findings = replace(findings, growths=growths, faults=tuple(faults))
    if index is None and element is not None:
        index = _maker_of_output(model)
    if index is None or not (operators[index].differences or element is not None):
        return findings
    sample = most_telling(by_sample, index)
    telling = [k for k in range(len(samples)) if k == sample or by_sample[k][index].differences]
    telling = [k for k in telling if not among or k == sample or k in among]
    dumps = {
        k: replace(trust(samples[k], by_sample[k]), variables={**samples[k].variables, **by_sample[k][index].began})
        for k in telling
    }
    explained = replace(findings, sample=sample if len(samples) > 1 else None)
    others = [dump for k, dump in dumps.items() if k != sample]
    every = [trust(one, row) for one, row in zip(samples, by_sample, strict=True)]
    known = None if defect is None else defect[1]
    case = OperatorCase(model, (dumps[sample], *others), index, profile)
    return _explain(explained, case, element, known, every)


def _are_outputs_alone(model: Model, operators: Sequence[Located]) -> bool:
    """Return whether all outputs of the model were compared, and its other tensors are only missing."""
    graph = view(model)
    made = {t for op in graph.ops for t in op.writes} & set(graph.outputs)
    compared = {t for o in operators for t in o.differences}
    is_missing = all(not (o.failure or o.overwritten or o.unwritten) for o in operators)
    return (
        bool(made) and compared == made and is_missing and len(operators) > sum(bool(o.differences) for o in operators)
    )


def _explain(
    findings: Findings, case: OperatorCase, element: Index | None, defect: Defect | None, every: Sequence[Dump]
) -> Findings:
    """Return the findings with the explanation of a case's first sample; the others count in its evidence only.

    `every` are all samples, for faults of which only the place is known.

    A fault in one part is noted, and loses neither the verdict nor the other parts.
    """
    model, index, profile = case.model, case.index, case.profile
    faults: list[str] = []
    explanation = None
    if findings.operators[index].differences:
        with _note(faults, "the cause"):
            explanation = explain_operator(case, defect)
            explanation = replace(explanation, assumed=findings.operators[index].assumed)
            if defect is None and all(cause.kind == HypothesisKind.MISTAKES for cause in explanation.fitting):
                whole = OperatorCase(model, tuple(every), index, profile)
                explanation = _with_place(explanation, wrong_result(whole, assumed=bool(explanation.assumed)))
    if explanation is not None and findings.mode == CompareMode.ISOLATED:
        with _note(faults, "other operators of the same kernel"):
            explanation = compare_elsewhere(explanation, case, findings.operators)
    alone = case.part()
    if explanation is not None:
        with _note(faults, "a proof that causes are one function"):
            explanation = prove(explanation, alone)
    divergence = _divergence(case)
    worked = growth = None
    tensor = _first_result(alone) if divergence is None else divergence.tensor
    place = divergence.first if element is None and divergence is not None else element
    if place is not None:
        with _note(faults, "the element"):
            worked = _work(alone, profile, tensor, place, explanation)
    if divergence is not None:
        with _note(faults, "the growth"):
            known = next((g for g in findings.growths if g.index == index), None)
            growth = amplify(case) if known is None else known
    return replace(
        findings,
        explanation=explanation,
        divergence=divergence,
        element=worked,
        amplification=growth,
        faults=(*findings.faults, *faults),
    )


def _with_place(explanation: Explanation, case: WrongResult | None) -> Explanation:
    """Return the explanation with a fault of which only the place is known.

    A constant in some places is likelier than two mistakes at once that give one.
    """
    if case is None:
        return explanation
    if not explanation.fitting:
        return replace(explanation, defect=defect_after(case))
    constant = filled(case)
    if constant is None:
        return explanation
    return replace(explanation, causes=tuple(c for c in explanation.causes if not c.exact), defect=constant)


@contextmanager
def _note(faults: list[str], part: str) -> Iterator[None]:
    """Note an exception, and continue after the block. A missing element is the caller's mistake and is raised."""
    try:
        yield
    except OptionError:
        raise
    except Exception as error:
        faults.append(f"{part}: {type(error).__name__}: {error}")


def work_out(
    model: Model, inputs: Mapping[int, Array], profile: Profile, element: Index, op: int | None = None
) -> Worked:
    """Trace an element of operator `op`, or of the producer of the first graph output, in a run of the profile.

    `inputs` are the graph's, by tensor index.
    """
    check_operator(model, op)
    plan = make_plan(model, profile, input_shapes={t: v.shape for t, v in inputs.items()})
    values = run(plan, inputs, keep_all=True).values
    index = op if op is not None else _maker_of_output(model)
    alone = replace(OperatorCase(model, (Dump("", values),), index, profile).part(), got={})
    return _work(alone, profile, _first_result(alone), element, None)


def _maker_of_output(model: Model) -> int:
    """Return the operator that produces the first graph output."""
    graph = view(model)
    return graph.last_writers.get(graph.outputs[0], len(graph.ops) - 1)


def check_operator(model: Model, op: int | None) -> None:
    """Refuse an operator that the model does not have."""
    count = len(view(model).ops)
    if op is not None and not 0 <= op < count:
        raise OptionError(f"--op {op}: the model has operators 0 to {count - 1}")


def _divergence(case: OperatorCase) -> Divergence | None:
    alone, values, graph = case.part(), case.results(), view(case.model)
    for tensor in graph.op(alone.index).writes:
        expected, got = values.get(tensor), alone.got.get(tensor)
        if expected is None or got is None or (expected.shape, expected.dtype) != (got.shape, got.dtype):
            continue
        if not same_bits(expected, got):
            name = graph.tensors[tensor].name or ""
            return Divergence(alone.index, tensor, name, expected, got)
    return None


def _first_result(alone: Part) -> int:
    return alone.tensors[alone.op.outputs[0]]


def _work(alone: Part, profile: Profile, tensor: int, element: Index, explanation: Explanation | None) -> Worked:
    trace = _trace(alone, alone.plan(profile), tensor, element)
    dumped = alone.got.get(tensor)
    value = None if dumped is None or dumped.shape != trace.shape else dumped[trace.index].item()
    cause = next(iter(explanation.exact or explanation.ranking.possible), None) if explanation is not None else None
    other = None if cause is None or value is None else _under(alone, cause, tensor, element)
    return Worked(alone.index, tensor, trace, value, other if other is not None and other.expected == value else None)


def _under(alone: Part, cause: Cause, tensor: int, element: Index) -> ElementTrace | None:
    """Return the element as the cause computes it, if the cause is a run of a bound operator alone."""
    runs: list[tuple[Plan, Mapping[int, Array]]] = []
    if not results(cause.members[0].device, replace(alone, runs=runs)) or not runs:
        return None
    plan, inputs = runs[-1]
    return replace(_trace(replace(alone, inputs=inputs), plan, tensor, element), profile=cause.name)


def _trace(alone: Part, plan: Plan, tensor: int, element: Index) -> ElementTrace:
    outputs = [alone.tensors[t] for t in plan.steps[0].outputs]
    return trace_element(plan, alone.inputs, element, outputs.index(tensor))


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
    held = tuple(replace(trust(dumps[k], rows[k]), variables=rows[k][explanation.index].began) for k in told)
    try:
        parts = OperatorCase(model, held, explanation.index, named).parts
    except TflqError:
        return None
    causes = []
    for cause in explanation.causes:
        members = cause.members
        if cause.exact:
            members = tuple(member for member in members if _reproduces(member, parts[:checked]))
            wrong = takewhile(lambda member: not _reproduces(member, parts[checked:]), members)
            members = members[len(tuple(wrong)) :]
        if members:
            causes.append(replace(cause, members=members))
    return tuple(causes) if any(cause.exact for cause in causes) else None


def _reproduces(member: Hypothesis, parts: Sequence[Part]) -> bool:
    return all(reproduces(member.device, part) for part in parts)
