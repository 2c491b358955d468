"""The report of `tflq why` as text, page, document and Markdown: cause, fault, effect, and what to do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflq.comparison.results import Located, Verdict
from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults import RECORD
from tflq.diagnosis.faults.case import DefectKind
from tflq.diagnosis.hypotheses import HypothesisKind
from tflq.diagnosis.profile_fit import Fit
from tflq.diagnosis.runtimes import RUNTIMES, RuntimesApart
from tflq.diagnosis.usage.search import UserSide
from tflq.diagnosis.why import Answer, Party
from tflq.engine.profiles import PROFILES, by_name
from tflq.engine.profiles.profile import Source
from tflq.face.report.blocks import Block, Brief, CodeBlock, Note, OnPage, Pairs, Report, Section
from tflq.face.report.blocks import Headline as Head
from tflq.face.report.documents.diagnosis import WhyDocument
from tflq.face.report.documents.filling import filled
from tflq.face.report.verbs.explain import cause_text, explain_document, explain_report, strip
from tflq.face.report.wording import counted, how_far, runtime_name
from tflq.texts import Statement, facts_of

_RUNTIME = "runtime:"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: the path of a model, and the evidence.

    `evidence` is the path of a file, runtime:NAME, or a target's command, if `is_target`. `options` are further words
    of the command.
    """

    model: str = "MODEL"
    evidence: str = "EVIDENCE"
    is_target: bool = False
    options: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that asks again."""
        words = ("--target", self.evidence) if self.is_target else (self.evidence,)
        return shlex.join(("tflq", "why", self.model, *words, *self.options))

    @property
    def stem(self) -> str:
        """The model's name without its suffix."""
        return Path(self.model).stem

    @property
    def dump(self) -> str:
        """The path of the evidence as a dump; where a runtime is asked, of the one that `recording` writes."""
        if self.evidence.startswith(_RUNTIME) and not self.is_target:
            return f"{self.stem}-{self.evidence.removeprefix(_RUNTIME)}.npz"
        return self.evidence

    def on_dump(self, verb: str, *options: str) -> Iterator[str]:
        """Yield the commands that run a verb on the evidence as a dump; none for a target, which leaves no file."""
        if self.is_target:
            return
        if self.dump != self.evidence:
            name = self.evidence.removeprefix(_RUNTIME)
            yield shlex.join(("tflq", "record", self.model, "--against", name, "--all-tensors", "-o", self.dump))
        yield shlex.join(("tflq", verb, self.model, "--dump", self.dump, *self.options, *options))

    def without_folders(self) -> Asked:
        """Return the question with names of files only, for readers elsewhere."""
        evidence = self.evidence if self.is_target else Path(self.evidence).name
        return Asked(Path(self.model).name, evidence, self.is_target, self.options)


#: Advice on a mistake, by the beginning of its name.
ADVICE = {
    "wrong mean": "scale the inputs as the model expects",
    "RGB": "exchange the first and the last channel before the device is fed",
    "NCHW": "transpose the input to NHWC, the order of .tflite models",
    "rows and columns": "transpose the height and width of the input",
    "off by one sample": "compare each result with the input of the same number",
    "truncated": "round in host code: lrintf(x / scale) + zero_point, then saturate",
    "rounded down": "round in host code: lrintf(x / scale) + zero_point, then saturate",
    "the zero point was left": "add the zero point after the division by the scale",
    "float values": "quantize first: lrintf(x / scale) + zero_point, then saturate",
    "uint8": "subtract 128 from uint8 codes, or flip their highest bit",
    "int8": "add 128 to int8 codes, or flip their highest bit",
    "bytes saved": "save the tensor in its own type",
    "dequantized": "dequantize once: scale * (code - zero_point)",
    "transposed": "write the dump in the order of the model's shape",
    "reused": "copy a tensor right after its operator, or keep all of them (preserve_all_tensors)",
    "the device was fed": "feed the device and tflq with the same file",
    "the input buffer": "write the input into the device's input tensor before each run, and read it back",
    "the zero point": "quantize by lrintf(x / scale) + zero_point, then saturate",
    "multiplied by": "quantize by lrintf(x / scale) + zero_point, then saturate",
    "not scaled": "quantize by lrintf(x / scale) + zero_point, then saturate",
    "quantized twice": "quantize once: the numbers are codes already",
    "values beyond": "saturate to the ends of the type after rounding, before the cast",
    "the output's": "quantize by the input's own scale and zero point",
    "divided by": "dequantize by scale * (code - zero_point)",
    "codes": "dequantize by scale * (code - zero_point), or save the codes in their own type",
    "outputs exchanged": "match outputs by their names, not by their order",
    "inputs exchanged": "match inputs by their names, not by their order",
    "classes": "take the labels in the order of the model's output",
    "slices": "read the output in the order of the model's shape",
    "samples": "compare each result with the input of the same number",
    "the outputs are those of the float": "compare the two models with `tflq compare`; record the device for `why`",
    "the outputs are those of signature": "name the signature that ran with --signature",
    **dict.fromkeys(("softmax", "logarithm", "sigmoid", "results", "one less"), "save the model's own results"),
}
#: The words before a cause, by its certainty.
WORDS = {Certainty.CERTAIN: "", Certainty.LIKELY: "probably ", Certainty.NONE: "possibly "}
#: Who may be at fault for results that are no arithmetic.
_OF_DEFECTS = {
    DefectKind.NOTHING: "cannot tell: a runtime, a driver, or the program that reads the output wrote or read nothing",
    DefectKind.OVERWRITTEN: "the dump's: it does not hold the tensor as it was read; the operator is right",
    DefectKind.PLACE: "not decided between memory, geometry and the dump; the arithmetic is not it",
    DefectKind.CONSTANT: "the device's memory: one constant of the model is another there; the arithmetic is not it",
    DefectKind.BLOCK: "not decided: the device, or a dump that was taken too late; the arithmetic is not it",
}
#: Numbers of versions from which on they are days.
_DAY = 20_000_000
#: Places inside prepared data.
_INSIDE = re.compile(r" \((data(\.[\w\[\]]+)*|pipeline|window|table)\)")
#: The rounding that a cause names, as in "mean of codes, rounded half up".
_ROUNDED = re.compile(r",? rounded [^,:]*")
#: Causes and channels that a headline names.
_NAMED = 3


def fault_text(answer: Answer) -> str:
    """Return the party at fault, in one sentence."""
    if answer.refusal is not None:
        return "the program's, the model's or the runtime's release: nothing was computed"
    if answer.mistake is not None and answer.findings is not None:
        return "the user's, and besides it the device computes otherwise than the profile"
    if answer.mistake is not None and answer.mistake.is_open:
        return "not decided: the device kept older results, or the program saved them one sample late"
    if answer.is_own and answer.fault == Party.OPEN:
        return "not decided: the device's, or your own kernel's"
    if answer.defect is not None and answer.fault in (Party.OPEN, Party.DEVICE):
        return _OF_DEFECTS.get(answer.defect.kind, "the device's, though not its arithmetic's")
    if _is_same_so_far(answer):
        return "none found: all that was compared is the same"
    if answer.fault == Party.DEVICE and cause_names(answer):
        return "the device's: a mistake in its code, which no runtime that has a profile makes"
    return {
        Party.USER: "the user's: the device computes what it was given",
        Party.MODEL: "the model's: it breaks a rule of the specification, so devices need not agree",
        Party.DEVICE: "the device's: no runtime and no mistake that was tried gives this",
        Party.RUNTIME: f"nobody's: the device {_likeness(answer)}",
        Party.KNOWN: "a fault that runtimes are known for, not another arithmetic",
        Party.NONE: "nobody's: nothing differs beyond what the profile promises",
        Party.OPEN: "not decided: the evidence is too small, or several causes or none reproduce every bit",
    }[answer.fault]


def _likeness(answer: Answer) -> str:
    """Return the runtime that the device computes like, if one profile explains the whole."""
    if answer.fit is None or answer.nearest is None or not answer.fit.fitting:
        return "has another runtime's arithmetic"
    likely = "" if answer.certainty == Certainty.CERTAIN else "probably "
    return f"{likely}computes like {runtime_name(answer.nearest)}"


def _constant_text(answer: Answer) -> str:
    """Return that the output is a constant; a known fault that gives it is the reason, so no other is named."""
    if answer.nothing is None:
        return ""
    name = answer.nothing.name
    if answer.known_fault is not None:
        name = name.removeprefix("nothing was computed: ").partition(",")[0].partition(":")[0]
    return f"; {name}"


def headline(answer: Answer) -> str:
    """Return the answer in a line."""
    if answer.refusal is not None:
        return f"the model was refused: {answer.refusal.cause}"
    if answer.mistake is not None:
        named = alternatives([answer.mistake.name, *answer.mistake.also])
        return WORDS[answer.certainty] + named + beside_text(answer)
    if answer.verdict == Verdict.NOTHING or (answer.verdict == Verdict.INCOMPLETE and not _is_compared(answer)):
        return "; ".join(["nothing could be compared", *_constants(answer)])
    if answer.fault == Party.NONE:
        alone = answer.findings is not None and answer.findings.is_of_outputs
        where = " in the outputs (inner tensors were not given)" if alone else ""
        return f"nothing differs from {answer.nearest or answer.base}{where}"
    if answer.verdict == Verdict.INCOMPLETE:
        return "; ".join(
            [f"nothing that was compared differs from {answer.nearest or answer.base}", *_constants(answer)]
        )
    if answer.recorded and answer.certainty == Certainty.NONE:
        return (
            f"the arithmetic of {answer.recorded}, which the recording names; how it differs is not known for certain"
        )
    if answer.fit is not None and answer.fit.fitting and not answer.is_overflow:
        noted = answer.known_fault
        known = "" if noted is None else f"; a known fault of {noted.versions}: {noted.symptom}"
        known += _constant_text(answer)
        return WORDS[answer.certainty] + _profiles_text(answer, answer.fit) + known
    if answer.defect is not None:
        where = "" if answer.located is None else f" (operator {answer.located.index} {answer.located.op})"
        known = "" if answer.fit is None or not answer.is_overflow else owners_text(answer.fit)
        return f"{WORDS[answer.certainty]}{answer.defect.name}{where}{known}"
    causes = cause_names(answer)
    where = "" if answer.located is None else f" in operator {answer.located.index} {answer.located.op}"
    named = WORDS[answer.certainty] + alternatives(causes) + where if causes else _unknown_text(answer)
    return f"the model breaks a rule; {named}" if answer.fault == Party.MODEL else named


def _unknown_text(answer: Answer) -> str:
    """Return which operator differs, and in which channels, where no cause was found."""
    if answer.located is None:
        return "cause not found"
    operator = f"operator {answer.located.index} {answer.located.op} differs"
    if is_of_outputs(answer):
        return f"cannot tell from outputs alone why {operator}"
    spots = "" if answer.explanation is None else _spots_text(answer.explanation)
    return f"{operator}{spots}; cause not found"


def _spots_text(explanation: Explanation) -> str:
    """Return the output channels that differ, if the others do not, or the number of elements."""
    spots, differing = explanation.places, explanation.elements - explanation.matching
    if not spots.hit or differing < 2 * len(spots.hit):
        return f" in {differing:,} of {explanation.elements:,} elements"
    if len(spots.hit) > _NAMED:
        return f" in {len(spots.hit)} of {spots.channels} output channels"
    return f" in output channel{'s' if len(spots.hit) > 1 else ''} {', '.join(map(str, spots.hit))} only"


def _constants(answer: Answer) -> list[Statement]:
    """Return the outputs that are constants."""
    return [w for w in answer.warnings if isinstance(w, Statement) and w.kind == "constant-output"]


def notes(answer: Answer) -> list[str]:
    """Return the warnings, without constant outputs that the headline explains, or that follow from their inputs."""
    if answer.verdict != Verdict.DIFFERS or answer.findings is None:
        return list(answer.warnings)
    is_reason = answer.known_fault is not None or answer.nothing is not None
    right = {t for o in answer.findings.operators for t, d in o.differences.items() if d.same}
    follows = [w for w in _constants(answer) if is_reason or w.facts["tensor"] in right]
    return [w for w in answer.warnings if w not in follows]


def beside_text(answer: Answer) -> str:
    """Return what else explains the difference, besides the user's mistake."""
    if answer.fit is not None and answer.fit.fitting:
        return f"; and without it, {_profiles_text(answer, answer.fit)}"
    causes = [cause.name for cause in leading(answer)]
    where = "" if answer.located is None else f" in operator {answer.located.index} {answer.located.op}"
    return f"; and {alternatives(causes)}{where}" if causes else ""


def _profiles_text(answer: Answer, fit: Fit) -> str:
    """Return the profiles that reproduce everything, other runtimes that may, and the first operator's arithmetic."""
    others = len(fit.fitting) - 1
    more = f" and {counted(others, 'other profile')}" if others and not answer.is_known else ""
    bits = f"the bits of {answer.nearest}{more}"
    if fit.rounds_once and not answer.is_known:
        bits += f", which single rounding has in common: {fit.base} gives them too, if it rounds once"
    first = [cause.name for cause in leading(answer) if cause.name not in fit.fitting]
    where = f"; in {answer.located.op} as {alternatives(first)}" if first and answer.located is not None else ""
    return ", or ".join([bits, *foreign_names(answer)]) + where


def is_of_outputs(answer: Answer) -> bool:
    """Return whether inputs of the explained operator were computed, so that operators before it may be at fault."""
    explanation = None if answer.findings is None else answer.findings.explanation
    return explanation is not None and bool(explanation.assumed)


def owners_text(fit: Fit) -> str:
    """Return the runtimes that are known for the same fault, by package with their releases."""
    if not fit.fitting:
        return ""
    every = [by_name(name).source for name in fit.matrix if name in PROFILES]
    fitting = [by_name(name).source for name in fit.fitting if name in PROFILES]
    texts = []
    for package in dict.fromkeys(source.package for source in fitting):
        known, all_of = (_versions(found, package) for found in (fitting, every))
        beyond = [v for v in all_of if v not in known and v > max(known)]
        until = f" until {_text(beyond[0])}" if beyond else f" up to {_text(known[-1])}"
        is_one = not beyond and len(known) == 1
        texts.append(f"{package} {_text(known[0])}" if is_one else f"{package} from {_text(known[0])}{until}")
    return f"; known of {', '.join(texts)}" if texts else ""


def _versions(sources: Sequence[Source], package: str) -> list[tuple[int, ...]]:
    """Return a package's versions in order, as numbers."""
    found = {tuple(map(int, re.findall(r"\d+", s.version)[:3])) for s in sources if s.package == package}
    return sorted(found)


def _text(version: tuple[int, ...]) -> str:
    """Return a version as packages write it; a number of eight digits is the day of a daily build."""
    return ".".join(f"dev{n}" if n >= _DAY else str(n) for n in version) or "its first release"


def alternatives(names: Sequence[str]) -> str:
    """Return the first names, joined by "or", and how many more there are. A common beginning appears once.

    Names that differ in a rounding only are one, with their number. Places inside prepared data are left out: they mean
    something beside the data only.
    """
    kinds: dict[str, list[str]] = {}
    for name in dict.fromkeys(_INSIDE.sub("", name) for name in names):
        kinds.setdefault(_ROUNDED.sub("", name), []).append(name)
    names = [of[0] if len(of) == 1 else f"{kind} ({len(of)} roundings fit)" for kind, of in kinds.items()]
    more, head = len(names) - _NAMED, names[0].partition(": ")[0] + ": " if names else ""
    alike = len(names) > 1 and all(name.startswith(head) for name in names)
    rest = [name.removeprefix(head) if alike else name for name in names[1:_NAMED]]
    return " or ".join([*names[:1], *rest, *([f"{more} more"] if more > 0 else [])])


def foreign_names(answer: Answer) -> list[str]:
    """Return the runtimes without a profile that explain the device as well as the best profile does."""
    fit = answer.fit
    if fit is None or answer.is_known or not (fit.is_foreign or (fit.foreign and not fit.fitting)):
        return []
    return [f"the float arithmetic of {_runtimes_of(fit)}"]


def _runtimes_of(fit: Fit) -> str:
    """Return the names of the runtimes without a profile."""
    return ", ".join(dict.fromkeys(RUNTIMES[name] for name in fit.foreign))


def leading(answer: Answer) -> tuple[Cause, ...]:
    """Return the causes to name."""
    explanation = None if answer.findings is None else answer.findings.explanation
    return () if explanation is None else explanation.exact or explanation.ranking.possible


def cause_names(answer: Answer) -> list[str]:
    """Return the causes that reproduce every bit; profiles that fit everything come first."""
    causes = leading(answer)
    names = [cause.name for cause in causes]
    names += [name for cause in causes if cause.kind == HypothesisKind.MISTAKE for name in cause.also]
    if answer.defect is not None:
        names = [answer.defect.name, *names]
    nearest = answer.nearest
    if answer.fit is not None and answer.fit.fitting and nearest is not None and not answer.is_overflow:
        names = [nearest, *(name for name in names if name != nearest)]
        names[1:1] = foreign_names(answer)
    return names


def nearest_text(answer: Answer) -> str:
    """Return the nearest profile, or the mix of profiles."""
    fit = answer.fit
    if fit is None or answer.nearest is None:
        none = alternatives(["none", *foreign_names(answer)]).replace(" or ", "; it may have ", 1)
        return none if answer.mistake is None else f"{answer.base}, without the mistake"
    if fit.fitting:
        others = len(fit.fitting) - 1
        more = f" and {counted(others, 'other')} (tflq fit lists them)" if others else ""
        return f"{answer.nearest}: the same as {runtime_name(answer.nearest)}{more}"
    parts = [f"{name} for {', '.join(ops)}" for name, ops in list(fit.parts.items())[:2]]
    unknown = sorted({fit.operators[i] for i in fit.unknown})
    return "; ".join([*parts, *([f"none for {', '.join(unknown)}"] if unknown else [])])


def _is_compared(answer: Answer) -> bool:
    """Return whether a result of an operator was compared with a profile's."""
    return answer.findings is not None and any(one.differences for one in answer.findings.operators)


def _refused(answer: Answer) -> Located | None:
    """Return the first operator that the profile runs on no input, if nothing was compared."""
    if _is_compared(answer) or answer.findings is None:
        return None
    return next((one for one in answer.findings.operators if one.failure and "--inputs" not in one.failure), None)


def where_text(answer: Answer) -> str:
    """Return the first divergent operator, how far it differs, and how many operators do."""
    if answer.refusal is not None:
        where = answer.refusal.operator
        return f"line {answer.refusal.line} of the log" + ("" if where is None else f", operator {where[0]} {where[1]}")
    mistake, findings = answer.mistake, answer.findings
    if mistake is not None:
        apart = f"{mistake.before:,} of {mistake.elements:,} elements"
        if mistake.is_known:
            return f"the input: {apart} are not those that the model expects"
        if mistake.side == UserSide.INPUT:
            return f"the results: {apart} differ, {mistake.after:,} if the input is prepared in this way"
        return f"the dump: {apart} differ, {mistake.after:,} without the mistake"
    if findings is None or findings.first is None:
        return "none"
    count = len(findings.differing)
    more = f"; {count} of {len(findings.operators)} operators differ" if count > 1 else ""
    return operator_text(findings.first) + more


def operator_text(located: Located) -> str:
    """Return an operator and how far it differs."""
    difference = next((d for d in located.differences.values() if not d.same), None)
    return f"{located.index} {located.op}" + (
        "" if difference is None else f": {difference.problem or how_far(difference)}"
    )


def samples_statement(answer: Answer) -> Statement | None:
    """Return how many samples were enough, and what was not compared on the others; None if all were compared."""
    if not answer.compared:
        return None
    text = (
        f"{answer.compared} of {answer.samples} were enough; the others were compared with {answer.base} and with what "
        "fits, not with every profile and cause"
    )
    return Statement(text, "samples-enough", compared=answer.compared, samples=answer.samples)


def certainty_text(answer: Answer) -> str:
    """Return how reliable the cause is."""
    if answer.mistake is not None:
        both = answer.findings is not None
        every = "every" if both or not answer.mistake.after else "nearly every"
        if both:
            return f"{answer.certainty.value}: {every} element agrees with both undone, neither alone explains it"
        scaled = f" (expected: {answer.mistake.scaling})" if answer.mistake.scaling else ""
        return f"{answer.certainty.value}: {every} element agrees without it{scaled}"
    fits = answer.fit is not None and bool(answer.fit.fitting) and not answer.is_overflow
    if answer.verdict == Verdict.DIFFERS and answer.fit is not None and fits:
        return "certain: the evidence is a recording of it" if answer.is_known else _fitting_text(answer.fit)
    explanation = None if answer.findings is None else answer.findings.explanation
    text = "" if explanation is None else cause_text(explanation).rstrip(":")
    return text[:1].lower() + text[1:]


def _fitting_text(fit: Fit) -> str:
    """Return how much evidence names the fitting profiles."""
    values, s = counted(fit.telling, "value"), "s" if fit.telling == 1 else ""
    found = f"{values} rule{s} out every other {'profile' if fit.foreign else 'runtime'}"
    if fit.telling < fit.needed:
        found = f"only {values} tell{s} runtimes apart, of {fit.needed:,} needed"
    if fit.is_too_small:
        found = f"{fit.informative:,} results lie inside their types' ranges, of {fit.needed:,} needed"
    if fit.foreign:
        found += f", but {_runtimes_of(fit)} may give them all, too"
    word = "cannot tell" if fit.certainty == Certainty.NONE else fit.certainty.value
    return f"{word}: {found}"


def runtimes_text(found: RuntimesApart) -> str:
    """Return which installed runtimes give the same outputs."""
    groups = "; ".join(" = ".join(group) for group in found.groups)
    failed = f"; cannot run it: {', '.join(found.failed)}" if found.failed else ""
    return (groups if len(found.groups) > 1 else f"the same outputs: {groups}") + failed


def _is_same_so_far(answer: Answer) -> bool:
    """Return whether not everything was compared, and nothing of what was differs."""
    found = answer.findings
    is_partial = found is not None and found.first is None and found.verdict == Verdict.INCOMPLETE
    return is_partial and answer.fault == Party.OPEN and _is_compared(answer)


def weight_text(answer: Answer) -> str:
    """Return how much the difference changes the outputs."""
    weight = answer.weight
    if _is_same_so_far(answer):
        return "none: nothing that was compared differs"
    if weight is None:
        return "unknown: the outputs cannot be computed from the evidence"
    if not weight.flipped and not weight.effect:
        return "the outputs do not change"
    far = f"move by up to {100 * weight.effect:.2g} % of the largest"
    if weight.rows == 1:
        return f"the predicted class {'changes' if weight.flipped else 'stays'}; scores {far}"
    flips = f"the largest value changes places in {weight.flipped:,} of {weight.rows:,} rows; " if weight.rows else ""
    return f"{flips}outputs {far}"


def advice(answer: Answer, asked: Asked) -> str:
    """Return what to do."""
    if answer.refusal is not None:
        return answer.refusal.fix
    if answer.mistake is not None:
        name, scaling = answer.mistake.name, answer.mistake.scaling
        text = next((text for start, text in ADVICE.items() if name.startswith(start)), "correct the input")
        return f"{text}: {scaling}" if name.startswith("wrong mean") and scaling else text
    if answer.fault == Party.RUNTIME and answer.nearest is not None and answer.certainty != Certainty.NONE:
        return f"compare with --profile {answer.nearest} from now on"
    if answer.fault == Party.KNOWN:
        smaller = ", or smaller scales" if answer.is_overflow else ""
        return f"do not compare with such a runtime: take a release without the fault{smaller}"
    if answer.is_own and answer.fault == Party.OPEN:
        shown = "; ".join(asked.on_dump("explain")) or asked.command
        return f"compare your kernel with the device's source at the first element that differs: `{shown}`"
    if answer.defect is not None and answer.fault in (Party.OPEN, Party.DEVICE):
        if answer.defect.tell:
            return answer.defect.tell
        return "report it to the device's makers: --paste prints the text"
    if answer.fault == Party.MODEL:
        return f"convert the model again so that it keeps the rule; `tflq lint {asked.model}` lists all that it breaks"
    if answer.fault == Party.DEVICE and not cause_names(answer):
        return (
            "check that the device holds this very file (its checksum): another model, or a changed one, gives such "
            f"results; if it does, `{asked.command} --paste` prints what to send to its makers"
        )
    if answer.fault == Party.DEVICE:
        return f"report it to the device's makers: `{asked.command} --paste` prints the text"
    if answer.fault == Party.OPEN and is_of_outputs(answer):
        return RECORD
    if answer.fault == Party.OPEN and answer.findings is not None and answer.findings.first is not None:
        return "; ".join(asked.on_dump("explain", "--discriminate", "apart.npz")) or "give more samples with --inputs"
    refused = _refused(answer)
    if refused is not None:
        other = "NAME, the profile of the device" if answer.nearest is None else answer.nearest
        return f"{answer.base} does not take operator {refused.index} {refused.op}: compare with --profile {other}"
    if not _is_compared(answer) and not asked.is_target and "--inputs" not in asked.options:
        return f"give what the device was fed: `{asked.command} --inputs SOURCE`"
    if _is_same_so_far(answer):
        return "nothing, or record all tensors: each operator is compared then"
    return "nothing" if answer.fault == Party.NONE else "give more samples, or the inputs with --inputs"


_STYLES = {Party.NONE: "good", Party.RUNTIME: "warning", Party.OPEN: "warning", Party.MODEL: "warning"}


def why_report(answer: Answer, asked: Asked, *, verbose: bool = False) -> Report:
    """Build the report of an answer to a question."""
    blocks: list[Block] = [
        Head(headline(answer), _STYLES.get(answer.fault, "bad"), f"{answer.verdict.value.upper()}:"),
        Brief(where_text(answer), f"Next: {advice(answer, asked)}"),
        *([] if answer.findings is None else [strip(answer.findings)]),
        Pairs(list(_pairs(answer, asked))),
        *map(Note, notes(answer)[:2]),
    ]
    if answer.findings is not None:
        is_of_all = answer.mistake is not None or (answer.fit is not None and bool(answer.fit.fitting))
        certainty = certainty_text(answer)
        whole = f"{headline(answer)} ({certainty})" if is_of_all and certainty and answer.fault != Party.NONE else ""
        details = explain_report(answer.findings, asked.model, asked.dump, asked.options, whole).blocks
        blocks.append(Section("details", "Details", list(details)) if verbose else OnPage(lambda _view: details))
    about = ("model ", CodeBlock(asked.model), ", evidence ", CodeBlock(asked.evidence))
    return Report("why", blocks, about=about, title=f"{asked.model}: tflq why")


def why_card(answer: Answer) -> Report:
    """Build the report of an answer for a console or a notebook."""
    return why_report(answer, Asked())


def _pairs(answer: Answer, asked: Asked) -> Iterator[tuple[str, str]]:
    yield "fault", fault_text(answer)
    if answer.refusal is not None:
        yield "where", where_text(answer)
        yield "what to do", advice(answer, asked)
        return
    yield "first difference", where_text(answer)
    if answer.located is not None and answer.findings is not None and answer.located is not answer.findings.first:
        yield "cause at", operator_text(answer.located)
    if answer.fault != Party.NONE and certainty_text(answer):
        yield "how certain", certainty_text(answer)
    enough = samples_statement(answer)
    if enough is not None:
        yield "samples", enough
    if answer.defect is not None and answer.defect.place:
        yield "where", answer.defect.place
    if answer.defect is not None and answer.defect.cleared:
        yield "what is right", answer.defect.cleared
    yield "nearest profile", nearest_text(answer)
    if answer.breach is not None:
        yield "rule broken", answer.breach
    if answer.runtimes is not None:
        yield "installed runtimes", runtimes_text(answer.runtimes)
    if answer.fault != Party.NONE:
        yield "effect", weight_text(answer)
    yield "what to do", advice(answer, asked)


def reduced_name(answer: Answer, asked: Asked) -> str:
    """Return the name of the reduced model; empty if no operator differs, or if there is no file to reduce with."""
    located = answer.located
    return "" if located is None or asked.is_target else f"{asked.stem}-op{located.index}"


def paste(answer: Answer, asked: Asked, versions: str) -> str:
    """Return a Markdown block for an issue tracker."""
    lines = [
        f"### {answer.verdict.value.upper()}: {headline(answer)}",
        "",
        *(f"- {name}: {text}" for name, text in _pairs(answer, asked)),
        f"- samples: {answer.samples}; {versions}",
    ]
    worked = None if answer.findings is None else answer.findings.element
    if worked is not None:
        lines += [
            "",
            f"Element {list(worked.trace.index)} of operator {worked.index} under {worked.trace.profile}:",
            "",
            "```",
        ]
        lines += [f"{step.name}: {step.value}  {step.how}".rstrip() for step in worked.trace.working.steps]
        lines += [f"expected {worked.trace.expected}, got {worked.got}", "```"]
    again = asked.without_folders()
    commands = [again.command]
    if name := reduced_name(answer, asked):
        *before, last = again.on_dump("reduce", "-o", name)
        commands += [*before, f"{last}  # writes {name}.tflite"]
    return "\n".join([*lines, "", "```sh", *commands, "```"])


def why_document(answer: Answer, asked: Asked | None = None) -> WhyDocument:
    """Return the answer as a document."""
    asked = asked or Asked(evidence=answer.evidence or "EVIDENCE")
    mistake, findings = answer.mistake, answer.findings
    optional = (answer.breach, samples_statement(answer))
    stated = [*(one for one in optional if one is not None), *notes(answer)]
    return filled(
        WhyDocument,
        answer,
        model=asked.model,
        evidence=asked.evidence,
        answer=headline(answer),
        fault=answer.fault.name.lower(),
        operator=answer.located,
        causes=[mistake.name, *mistake.also] if mistake is not None else cause_names(answer),
        evidence_for_it=certainty_text(answer),
        fitting=[] if answer.fit is None else answer.fit.fitting,
        foreign=foreign_names(answer),
        advice=advice(answer, asked),
        reduced=reduced_name(answer, asked),
        warnings=notes(answer),
        facts=facts_of(stated),
        findings=None if findings is None else explain_document(findings, asked.model, asked.dump, asked.options),
    )
