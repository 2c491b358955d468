"""The answer to "why do these results differ?" as a value: the party at fault, the cause, and its certainty."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tflq.comparison.verification.results import Located, Verdict
from tflq.diagnosis.causes import CauseVerdict
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.defect import OF_READING, Defect, DefectKind
from tflq.diagnosis.findings import Findings
from tflq.diagnosis.hypotheses import Kind
from tflq.diagnosis.profile_fit import Fit, FitVerdict
from tflq.diagnosis.refusals import Refusal
from tflq.diagnosis.runtimes_apart import RuntimesApart
from tflq.diagnosis.usage.search import Mistake
from tflq.display import display_by
from tflq.engine.kernels.notes import Fault as NoteOfFault
from tflq.engine.profiles import PROFILES
from tflq.engine.profiles.faults import known_faults
from tflq.statements import Statement

#: Roundings make at most this many LSB.
_FAR = 4


class Fault(str, Enum):
    """The party whose work causes the difference."""

    USER = "user"  # inputs or dumps were prepared otherwise than the model expects
    MODEL = "model"  # the operator breaks a rule of the specification, so devices need not agree
    DEVICE = "device"  # an operator computes what no known runtime does
    RUNTIME = "no one: another runtime's arithmetic"  # the bits of a known profile
    KNOWN = "another runtime"  # the bits of a known profile, which are a fault of its runtime
    NONE = "none"  # nothing differs
    OPEN = "not decided"


@dataclass(frozen=True, slots=True)
class Weight:
    """The effect on the outputs: rows whose arg-max changes, of those compared, and the largest change.

    `effect` is a share of the output's largest magnitude.
    """

    flipped: int
    rows: int
    effect: float


@display_by("why.report:why_card")
@dataclass(frozen=True, slots=True, eq=False)
class Answer:
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
    weight: Weight | None
    samples: int
    warnings: tuple[str, ...] = ()
    runtimes: RuntimesApart | None = None
    breach: Statement | None = None
    known: str = ""
    evidence: str = ""
    compared: int = 0
    recorded: str = ""
    refusal: Refusal | None = None

    @property
    def is_known(self) -> bool:
        """True if the profile of the runtime that the evidence was recorded from reproduces everything."""
        return self.fit is not None and self.known in self.fit.fitting

    @property
    def defect(self) -> Defect | None:
        """The fault that is no arithmetic, if that is the cause."""
        explanation = None if self.findings is None else self.findings.explanation
        return explanation.defect if explanation is not None and explanation.is_a_defect else None

    @property
    def nothing(self) -> Defect | None:
        """That nothing was computed, also where profiles whose runtimes have that fault give the same."""
        explanation = None if self.findings is None else self.findings.explanation
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
        fits = self.fit is not None and bool(self.fit.fitting)
        return self.is_explained and (fits or self.defect is not None or self.verdict != Verdict.DIFFERS)

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
    def fault(self) -> Fault:
        """The party at fault; undecided without a likely cause, unless an operator fits no profile at all."""
        if self.refusal is not None:
            return Fault.USER if self.refusal.is_explained else Fault.OPEN
        if self.mistake is not None:
            return Fault.OPEN if self.mistake.is_open else Fault.USER
        if self.findings is None or self.findings.verdict != Verdict.DIFFERS:
            return Fault.NONE if self.verdict in (Verdict.SAME, Verdict.CLOSE) else Fault.OPEN
        computing = self._computing(self.findings)
        is_models = self.breach is not None and computing in (Fault.DEVICE, Fault.OPEN)
        return Fault.MODEL if is_models else computing

    def _computing(self, findings: Findings) -> Fault:
        """Return whether the device, another runtime's arithmetic, or neither is known to make the difference."""
        fits = self.fit is not None and bool(self.fit.fitting)
        if fits and (self.is_overflow or self.known_fault is not None or self.nothing is not None):
            return Fault.KNOWN
        if self.recorded and self.defect is None:
            return Fault.RUNTIME
        if fits:
            return Fault.OPEN if self.certainty == Certainty.NONE else Fault.RUNTIME
        explanation = findings.explanation
        if self.defect is not None:
            is_devices = self.certainty != Certainty.NONE and self.defect.kind not in OF_READING
            return Fault.DEVICE if is_devices else Fault.OPEN
        if explanation is None or explanation.assumed:
            return Fault.OPEN
        if explanation.exact:
            if self.certainty == Certainty.NONE:
                return Fault.OPEN
            if explanation.exact[0].kind != Kind.PROFILE:
                return Fault.DEVICE
            return Fault.OPEN if self.fit is None or self.fit.unknown else Fault.RUNTIME
        unknown = self.fit is not None and explanation.index in self.fit.unknown
        is_named = explanation.verdict not in (CauseVerdict.UNTOLD, CauseVerdict.AMBIGUOUS)
        return Fault.DEVICE if unknown and is_named else Fault.OPEN
