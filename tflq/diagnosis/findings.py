"""All findings on a dump: where it differs from a profile, the cause, one traced element, and the consequences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from tflq.comparison.inspection.difference import unequal
from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.results import Located, Mode, Status, Verdict, over_samples
from tflq.diagnosis.amplification import Amplification, amplify
from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.element import ElementTrace, trace_element
from tflq.diagnosis.explanation import explain_operator, prove
from tflq.diagnosis.faults import Case, Defect, case_of, defect_after, filled, shown_defect
from tflq.diagnosis.hypotheses import Kind
from tflq.diagnosis.joint import NONE, Joint
from tflq.diagnosis.localization import BySample, localize_samples, most_telling, operator_alone, trust
from tflq.diagnosis.outcomes import results
from tflq.diagnosis.ranking import by_consequence, is_noise
from tflq.diagnosis.siblings import compare_elsewhere
from tflq.display import display_by
from tflq.engine.api.part import Part
from tflq.engine.interpreter import Plan, make_plan, run
from tflq.engine.profiles import Profile
from tflq.errors import OptionError
from tflq.model.ir import Model, view
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


@display_by("explain.report:explain_report")
@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """A dump compared with a profile. Parts about one operator are None if no operator differs or is requested."""

    profile: str
    mode: Mode
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
        if any(o.reason for o in self.operators if not (is_compared and o.is_unwritten)):
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
    mode: Mode = Mode.ISOLATED,
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
    findings = Findings(profile.name, mode, operators, samples[0].unknown)
    growths, faults = tuple[Amplification, ...](), list[str]()
    with _note(faults, "how differences grow"):
        if mode == Mode.ISOLATED:  # end to end, later operators differ because of earlier ones
            growths = by_consequence(findings.differing, model, samples, by_sample, profile)
    first = findings.first
    index = op if op is not None else None if first is None else growths[0].index if growths else first.index
    defect = None
    if index is not None and mode == Mode.ISOLATED:
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
    return _explain(explained, model, dumps[sample], others, index, profile, element, known, every)


def _explain(
    findings: Findings,
    model: Model,
    dump: Dump,
    others: Sequence[Dump],
    index: int,
    profile: Profile,
    element: Index | None,
    defect: Defect | None,
    every: Sequence[Dump],
) -> Findings:
    """Return the findings with one sample's explanation of one operator; the others count in its evidence only.

    `every` are all samples, for faults of which only the place is known.

    A fault in one part is noted, and loses neither the verdict nor the other parts.
    """
    faults: list[str] = []
    explanation = None
    if findings.operators[index].differences:
        with _note(faults, "the cause"):
            explanation = explain_operator(model, dump, index, profile, others, defect)
            explanation = replace(explanation, assumed=findings.operators[index].assumed)
            if defect is None and all(cause.kind == Kind.MISTAKES for cause in explanation.fitting):
                case = case_of(model, every, index, profile, assumed=bool(explanation.assumed))
                explanation = _with_place(explanation, case)
    if explanation is not None and findings.mode == Mode.ISOLATED:
        with _note(faults, "other operators of the same kernel"):
            explanation = compare_elsewhere(explanation, model, dump, profile, findings.operators)
    alone = operator_alone(model, dump, index, profile)
    if explanation is not None:
        with _note(faults, "a proof that causes are one function"):
            explanation = prove(explanation, alone)
    divergence = _divergence(model, alone, profile)
    worked = growth = None
    tensor = _first_result(alone) if divergence is None else divergence.tensor
    place = divergence.first if element is None and divergence is not None else element
    if place is not None:
        with _note(faults, "the element"):
            worked = _work(alone, profile, tensor, place, explanation)
    if divergence is not None:
        with _note(faults, "the growth"):
            known = next((g for g in findings.growths if g.index == index), None)
            growth = amplify(model, dump, index, profile) if known is None else known
    return replace(
        findings,
        explanation=explanation,
        divergence=divergence,
        element=worked,
        amplification=growth,
        faults=(*findings.faults, *faults),
    )


def _with_place(explanation: Explanation, case: Case | None) -> Explanation:
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
    alone = replace(operator_alone(model, Dump("", values), index, profile), got={})
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


def _divergence(model: Model, alone: Part, profile: Profile) -> Divergence | None:
    values = alone.run(alone.plan(profile))
    graph = view(model)
    for tensor in graph.op(alone.index).writes:
        expected, got = values.get(tensor), alone.got.get(tensor)
        if expected is None or got is None or (expected.shape, expected.dtype) != (got.shape, got.dtype):
            continue
        if unequal(expected, got).any():
            name = graph.tensors[tensor].name or ""
            return Divergence(alone.index, tensor, name, expected, got)
    return None


def _first_result(alone: Part) -> int:
    return alone.tensors[alone.op.outputs[0]]


def _work(alone: Part, profile: Profile, tensor: int, element: Index, explanation: Explanation | None) -> Worked:
    trace = _trace(alone, alone.plan(profile), tensor, element)
    dumped = alone.got.get(tensor)
    value = None if dumped is None or dumped.shape != trace.shape else dumped[trace.index].item()
    cause = next(iter(explanation.exact or explanation.possible), None) if explanation is not None else None
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
