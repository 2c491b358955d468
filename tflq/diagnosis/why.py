"""The answer to "why do these results differ?" as a value: the party at fault, the cause, and its certainty.

Evidence about a device: arrays of a dump, a recording or an output file, which need not fit the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import numpy as np

from tflq.comparison.evidence.dumps import Dump, DumpSource, load_dumps, stored_samples
from tflq.comparison.evidence.forms import log_text
from tflq.comparison.evidence.inputs import prepare
from tflq.comparison.goldens.golden import Golden
from tflq.comparison.inputs.prepare import Scaling
from tflq.comparison.inspection.difference import same_bits
from tflq.comparison.results import Located, Verdict
from tflq.diagnosis.causes import Cause, CauseVerdict, Explanation
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import OF_READING, Defect, DefectKind
from tflq.diagnosis.findings import Findings, confirm, investigate, selections
from tflq.diagnosis.hypotheses import HypothesisKind
from tflq.diagnosis.localization import BySample, in_order, localize_samples, only_dumps
from tflq.diagnosis.profile_fit import Fit, FitVerdict, fit
from tflq.diagnosis.refusals import LoggedRefusal, find_refusal
from tflq.diagnosis.runtimes import RuntimesApart
from tflq.diagnosis.usage.inputs import UNFILLED
from tflq.diagnosis.usage.search import Mistake, UserSide, find_mistake, near_mistakes
from tflq.engine.interpreter import make_plan, run
from tflq.engine.interpreter.evaluation import admit, open_shape
from tflq.engine.kernels.notes import Fault as NoteOfFault
from tflq.engine.profiles import PROFILES, Profile, by_name, own_operators
from tflq.engine.profiles.history import known_faults
from tflq.errors import InputError, TflqError, TypeMismatchError
from tflq.interrupts import Progress, silent
from tflq.model.ir import CARRIER, Model, TensorType, only_signed, signed, view
from tflq.model.ir.constants import codec_of
from tflq.texts import Documented, Statement, display_by
from tflq.typing import Array

__all__ = ["Answer", "InputWeight", "Party", "answer"]

#: Roundings make at most this many LSB.
_FAR = 4


class Party(str, Enum):
    """The party whose work causes the difference."""

    USER = "user"  # inputs or dumps were prepared otherwise than the model expects
    MODEL = "model"  # the operator breaks a rule of the specification, so devices need not agree
    DEVICE = "device"  # an operator computes what no known runtime does
    RUNTIME = "no one: another runtime's arithmetic"  # the bits of a known profile
    KNOWN = "another runtime"  # the bits of a known profile, which are a fault of its runtime
    NONE = "none"  # nothing differs
    OPEN = "not decided"


@dataclass(frozen=True, slots=True)
class InputWeight:
    """The effect on the outputs: rows whose arg-max changes, of those compared, and the largest change.

    `effect` is a share of the output's largest magnitude.
    """

    flipped: int
    rows: int
    effect: float


@display_by("why:why_card", "why_document")
@dataclass(frozen=True, slots=True, eq=False)
class Answer(Documented):
    """Everything about one piece of evidence.

    `findings` compare it with `base`, or with the nearest profile where only that leaves something unexplained.
    `mistake` is the user's. `weight` is None if no output could be compared. `runtimes` are the installed ones, if they
    were compared with each other. `breach` names the rule that the model breaks in the operator that differs. `known`
    is the runtime that the evidence was recorded from, if it is known; its profile has the same name. `evidence` is the
    file, runtime or target that the answer is about. `compared` is the number
    of samples that were enough: the others were compared with the base and with what is named; 0 for all. `recorded` is
    the foreign system without a profile that a recording names as its origin. `refusal` is the cause in the log of a
    runtime that did not take the model.
    """

    base: str
    fit: Fit | None
    findings: Findings | None
    mistake: Mistake | None
    weight: InputWeight | None
    samples: int
    warnings: tuple[str, ...] = ()
    runtimes: RuntimesApart | None = None
    breach: Statement | None = None
    known: str = ""
    evidence: str = ""
    compared: int = 0
    recorded: str = ""
    refusal: LoggedRefusal | None = None

    @property
    def is_known(self) -> bool:
        """True if the profile of the runtime that the evidence was recorded from reproduces everything."""
        return self.fit is not None and self.known in self.fit.fitting

    @property
    def defect(self) -> Defect | None:
        """The fault that is no arithmetic, if that is the cause."""
        explanation = self.explanation
        return explanation.defect if explanation is not None and explanation.is_a_defect else None

    @property
    def nothing(self) -> Defect | None:
        """That nothing was computed, also where profiles whose runtimes have that fault give the same."""
        explanation = self.explanation
        found = None if explanation is None else explanation.defect
        return found if found is not None and found.kind == DefectKind.NOTHING else None

    @property
    def is_overflow(self) -> bool:
        """True if sums exceed the accumulators, so that profiles fit because their runtimes have that fault, too."""
        return self.defect is not None and self.defect.kind == DefectKind.OVERFLOW

    @property
    def known_fault(self) -> NoteOfFault | None:
        """The known fault that exactly the fitting profiles have, in an operator that differs by more than rounding."""
        if self.fit is None or self.findings is None or not self.fit.fitting or self.is_known:
            return None
        differing = {o.op for o in self.findings.differing if any(d.largest > _FAR for d in o.differences.values())}
        fitting = {name for name in self.fit.fitting if name in PROFILES}
        for known in known_faults():
            having = set(known.profiles) & set(self.fit.matrix)
            is_shared = bool(fitting) and fitting == having and self.base not in having
            if known.fault.op in differing and is_shared and "refused" not in known.fault.symptom:
                return known.fault
        return None

    @property
    def is_whole(self) -> bool:
        """True if nothing differs, or if one profile or a fault that is no arithmetic explains the whole."""
        return self.is_explained and (self.fits or self.defect is not None or self.verdict != Verdict.DIFFERS)

    @property
    def is_explained(self) -> bool:
        """True if nothing differs, or a cause is likely."""
        return self.verdict in (Verdict.SAME, Verdict.CLOSE) or self.certainty != Certainty.NONE

    @property
    def located(self) -> Located | None:
        """The operator that the answer is about: the explained one, or the first that differs."""
        return None if self.findings is None else self.findings.explained or self.findings.first

    @property
    def nearest(self) -> str | None:
        """The profile that explains most; None if none can be named."""
        if self.fit is None or self.fit.verdict in (FitVerdict.NONE, FitVerdict.NOTHING):
            return None
        if self.is_known:
            return self.known
        return self.base if self.base in self.fit.ties else self.fit.best

    @property
    def verdict(self) -> Verdict:
        """The verdict: same, differs, close, incomplete, or nothing compared."""
        if self.mistake is not None:
            return Verdict.DIFFERS
        return Verdict.NOTHING if self.findings is None else self.findings.verdict

    @property
    def certainty(self) -> Certainty:
        """The certainty of what the headline names: a mistake, a profile, or the cause in one operator."""
        if self.mistake is not None:
            if self.fit is not None and self.fit.fitting:
                return self.fit.certainty
            return Certainty.CERTAIN if self.mistake.is_certain else Certainty.LIKELY
        if self.verdict != Verdict.DIFFERS or self.findings is None:
            return Certainty.NONE
        if self.fit is not None and self.fit.fitting and not self.is_overflow:
            return Certainty.CERTAIN if self.is_known else self.fit.certainty
        explanation = self.findings.explanation
        return Certainty.NONE if explanation is None else explanation.certainty

    @property
    def fault(self) -> Party:
        """The party at fault; undecided without a likely cause, unless an operator fits no profile at all."""
        if self.refusal is not None:
            return Party.USER if self.refusal.is_explained else Party.OPEN
        if self.mistake is not None:
            return Party.OPEN if self.mistake.is_open else Party.USER
        if self.verdict != Verdict.DIFFERS:
            return Party.NONE if self.verdict in (Verdict.SAME, Verdict.CLOSE) else Party.OPEN
        party = next(party for holds, party in _PARTIES if holds(self))
        return Party.MODEL if self.breach is not None and party in (Party.DEVICE, Party.OPEN) else party

    @property
    def fits(self) -> bool:
        """True if a profile reproduces everything."""
        return self.fit is not None and bool(self.fit.fitting)

    @property
    def explanation(self) -> Explanation | None:
        """The explanation of the operator that the answer is about, if there is one."""
        return None if self.findings is None else self.findings.explanation

    @property
    def exact(self) -> Cause | None:
        """The likeliest cause that reproduces every bit of one operator, if there is one."""
        explanation = self.explanation
        return None if explanation is None else next(iter(explanation.exact), None)

    @property
    def is_own(self) -> bool:
        """True if a kernel of the user's own computes the operator that the answer is about."""
        found = None if self.findings is None else self.findings.explained
        return found is not None and found.op in own_operators(self.base)

    @property
    def is_unknown(self) -> bool:
        """True if no profile explains the operator that the answer is about, and no cause of it is left open."""
        explanation = self.explanation
        if explanation is None or self.fit is None or explanation.index not in self.fit.unknown:
            return False
        return explanation.verdict not in (CauseVerdict.UNTOLD, CauseVerdict.AMBIGUOUS)


#: Who makes results differ: the first row whose condition holds. The last one always does.
_PARTIES: tuple[tuple[Callable[[Answer], bool], Party], ...] = (
    (lambda a: a.fits and (a.is_overflow or a.known_fault is not None or a.nothing is not None), Party.KNOWN),
    (lambda a: bool(a.recorded) and a.defect is None, Party.RUNTIME),
    (lambda a: a.fits and a.certainty == Certainty.NONE, Party.OPEN),
    (lambda a: a.fits, Party.RUNTIME),
    (lambda a: a.is_own, Party.OPEN),
    (
        lambda a: a.defect is not None and a.certainty != Certainty.NONE and a.defect.kind not in OF_READING,
        Party.DEVICE,
    ),
    (lambda a: a.defect is not None, Party.OPEN),
    (lambda a: a.explanation is None or bool(a.explanation.assumed), Party.OPEN),
    (lambda a: a.exact is not None and a.certainty == Certainty.NONE, Party.OPEN),
    (lambda a: a.exact is not None and a.exact.kind != HypothesisKind.PROFILE, Party.DEVICE),
    (lambda a: a.exact is not None and (a.fit is None or bool(a.fit.unknown)), Party.OPEN),
    (lambda a: a.exact is not None, Party.RUNTIME),
    (lambda a: a.is_unknown, Party.DEVICE),
    (lambda a: True, Party.OPEN),
)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceEvidence:
    """The samples of a device's tensors, by tensor. `dumps` is None if they do not fit the model as they are.

    `problem` is the reason then. `refusal` is what a log without tensors shows: why the model was refused.
    """

    samples: tuple[dict[int, Array], ...]
    dumps: tuple[Dump, ...] | None
    problem: str = ""
    refusal: LoggedRefusal | None = None

    @classmethod
    def of(cls, dumps: tuple[Dump, ...]) -> DeviceEvidence:
        """Return the evidence of dumps that fit the model."""
        return cls(tuple(dict(dump.tensors) for dump in dumps), dumps)


def read_evidence(
    model: Model, source: DumpSource, sample: int | None = None, signature: str | None = None
) -> tuple[Model, DeviceEvidence]:
    """Read a dump of any form, which ends with tensors or with a refusal; return it with its signature's model.

    Raises:
        FileAccessError: It cannot be read.
        InputError: It holds no tensor of the model, and no known refusal; or it is of several signatures.
    """
    try:
        if len(signed(model)) > 1:
            part, dumps = only_dumps(model, source, sample, None, signature)
            return part.model, DeviceEvidence.of(dumps)
        target = only_signed(model, signature).model
        return target, read_tensors(target, source, sample)
    except InputError:
        text = None if isinstance(source, Golden) else log_text(Path(source))
        refusal = None if text is None else find_refusal(model, text)
        if refusal is None:
            raise
        return model, DeviceEvidence((), None, refusal=refusal)


def read_tensors(model: Model, source: DumpSource, sample: int | None = None) -> DeviceEvidence:
    """Read a dump of any form, of which archives and `.npy` files need not fit the model.

    Raises:
        FileAccessError: It cannot be read.
        InputError: It holds no tensor of the model.
    """
    try:
        return DeviceEvidence.of(load_dumps(model, source, sample))
    except (InputError, TypeMismatchError) as error:
        if isinstance(source, Golden) or Path(source).suffix not in (".npy", ".npz"):
            raise
        stored = stored_samples(model, Path(source))
        if not any(stored):
            raise
        return DeviceEvidence(stored, None, str(error))


#: An input that uses at most this share of its codes was probably prepared for another range.
_FEW = 1 / 32
#: Fewer elements of an output may be equal by chance.
_FEW_ELEMENTS = 8
#: Fewer elements of an input show nothing about the codes that it uses.
_ENOUGH = 64


def answer(
    model: Model,
    evidence: DeviceEvidence,
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
    return len(samples) > 1 and all(same_bits(one[t], samples[0][t]) for one in samples for t in outputs)


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


def _weight(findings: Findings) -> InputWeight | None:
    """Return the gravest effect of one operator's difference."""
    growths = [growth for growth in findings.growths if not growth.reason]
    if findings.amplification is not None and not growths:
        growths = [findings.amplification]
    rows = max((sum(choice.rows for choice in growth.choices) for growth in growths), default=0)
    if not growths:
        return None
    return InputWeight(max(g.flipped for g in growths), rows, max(g.effect for g in growths))


def _weight_of_input(model: Model, mistake: Mistake, evidence: DeviceEvidence, profile: Profile) -> InputWeight | None:
    """Return how the first output changes by a mistaken input."""
    graph = view(model)
    if mistake.side != UserSide.INPUT or not mistake.expected:
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
    return InputWeight(flipped, rows, effect)


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
        if not values or codec_of(spec) is None or sum(v.size for v in values) < _ENOUGH:
            continue
        used = len(np.unique(np.concatenate(values)))
        span = 256 if values[0].dtype.itemsize == 1 else 65536
        if used <= span * _FEW and values[0].dtype.kind in "iu" and span == 256:
            text = f"input {spec.name or tensor} uses {used} of {span} codes: was it scaled for another range?"
            found.append(Statement(text, "few-codes", tensor=tensor, name=spec.name or "", used=used, codes=span))
    return found
