"""Statements about a dump's findings, each in one line, and rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from tflq.diagnosis.causes import Cause, CauseVerdict, Explanation
from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.findings import Findings
from tflq.diagnosis.hypotheses import Kind
from tflq.diagnosis.placement import Places
from tflq.inspection.difference import First
from tflq.verification.results import Located, Verdict

#: Partial hypotheses and names of one cause that are shown.
PARTIAL, _NAMES = 5, 4
#: Channels that are named; more are counted.
_CHANNELS = 8


def verdict_words(findings: Findings) -> tuple[str, str]:
    """Return the verdict's word, and how many operators it is about."""
    differing = len(findings.differing)
    compared = sum(bool(o.differences) for o in findings.operators)
    how_many = (
        f"in {differing} of" if differing else "in all" if findings.verdict == Verdict.SAME else "but the same in"
    )
    word, total = findings.verdict.value.upper(), len(findings.operators)
    if not compared:
        return f"{word}:", f"none of {total} operators could be compared"
    return word, f"{how_many} {compared} operators compared ({total} in the model)"


def next_steps(model: str, dump: str, findings: Findings, inputs: str | None = None) -> Iterator[str]:
    """Yield the command to type next, ready to be copied, and another one that may help."""
    e = findings.explanation
    if inputs is None and e is None and not any(o.differences for o in findings.operators):
        yield f"tflq explain {quote(model)} --dump {quote(dump)} --inputs SOURCE"
    if e is None or e.verdict == CauseVerdict.SAME:
        return
    cause = e.exact[0] if e.exact else None
    arguments = f"{quote(model)} --dump {quote(dump)}" + (f" --inputs {quote(inputs)}" if inputs else "")
    command = f"tflq explain {arguments}"
    if cause is None and findings.explained is not None and findings.explained.assumed:
        yield f"tflq fit {arguments}"
    elif cause is not None and cause.kind == Kind.PROFILE:
        yield f"{command} --profile {quote(cause.name)}"
    else:
        yield f"tflq inspect {quote(model)} --op {e.index}"
    if (len(e.fitting) > 1 or any(h.also for h in e.fitting)) and findings.discrimination is None:
        yield f"{command} --op {e.index} --discriminate apart.npz"


def operator_row(o: Located) -> list[str]:
    """Return the index, operator, differing elements of all, largest difference, and why nothing was compared."""
    parts = list(o.differences.values())
    counts = f"{sum(d.differing for d in parts):,} of {sum(d.elements for d in parts):,}" if parts else ""
    worst = max(parts, key=lambda d: d.largest, default=None)
    largest = f"{worst.largest:,} {worst.unit}" if worst is not None and worst.differing else ""
    problem = next((d.problem for d in parts if d.problem), "")
    return [str(o.index), o.op, counts, largest, o.reason or problem]


def first_text(first: First, several: bool) -> str:
    """Return the index of the first differing element, its sample if there are several, and both values."""
    sample = f" of sample {first.sample}" if several else ""
    return f"first at {list(first.index)}{sample}: profile {first.expected}, dump {first.got}"


def place_texts(places: Places) -> Iterator[str]:
    """Yield what the places of all differing elements have in common."""
    if places.hit:
        names = f": {', '.join(map(str, places.hit))}" if len(places.hit) <= _CHANNELS else ""
        yield f"in {len(places.hit)} of {places.channels} channels{names}"
    for block in places.tails:
        yield f"only in the channels beyond the last whole block of {block}"
    if places.at_border:
        yield "only at the border of the image"


def cause_text(e: Explanation) -> str:
    """Return one line: the causes that reproduce all bits, or that none does."""
    doubts = "; ".join(e.doubts)
    return {
        CauseVerdict.SAME: "Fed the dump's own inputs, the operator is the same: what differs comes from before it",
        CauseVerdict.EXPLAINED: "Certain: nothing else that was tried reproduces every bit:",
        CauseVerdict.LIKELY: f"Likely, not certain ({doubts}):",
        CauseVerdict.UNTOLD: f"Cannot tell: a wrong cause may reproduce every bit, too ({doubts}):",
        CauseVerdict.AMBIGUOUS: f"Likely one of these {len(e.exact)}: each reproduces every bit of this dump:",
        CauseVerdict.PARTIAL: "Undetermined: none reproduces every bit, though the best one most of them",
        CauseVerdict.UNDETERMINED: "Undetermined: no hypothesis reproduces every bit",
    }[e.verdict]


def less_likely_texts(e: Explanation) -> Iterator[str]:
    """Yield the mistakes that reproduce every bit, although a profile does too."""
    for h in e.less_likely:
        yield f"less likely: {hypothesis_text(h)}"
    for h in e.possible:
        yield f"possible: {hypothesis_text(h)}"


def alike_texts(e: Explanation) -> Iterator[str]:
    """Yield which other operators the causes reproduce, and which not."""
    held = [index for index in e.alike if all(index not in cause.not_at for cause in e.fitting)]
    if held:
        yield f"reproduces operators of the same type as well: {', '.join(map(str, held))}"
    beyond = e.fitting[0].also_at if e.fitting else ()
    if beyond:
        yield f"reproduces divergent operators of other types as well: {', '.join(map(str, beyond))}"
    for h in (*e.only_here, *(h for h in e.fitting if h.not_at)):
        missed = h.not_at or tuple(index for index in beyond if index not in h.also_at)
        yield f"reproduces every bit here, but not operator {', '.join(map(str, missed))}: {h.name}"


def fault_texts(findings: Findings) -> Iterator[str]:
    """Yield the hypotheses, and the parts of the explanation, that raised an exception."""
    faults = () if findings.explanation is None else findings.explanation.faults
    if faults:
        count = "1 hypothesis" if len(faults) == 1 else f"{len(faults):,} hypotheses"
        said = listed([f"{fault.name} ({fault.kind}: {fault.text})" for fault in faults])
        yield f"{count} could not be run: {said}"
    for part in findings.faults:
        yield f"could not be computed: {part}"


def partial_ones(e: Explanation) -> list[Cause]:
    """Return the best hypotheses that reproduce more than the profile does, if none reproduces all."""
    return [] if e.fitting else [h for h in e.causes if h.matching > e.matching][:PARTIAL]


def hypothesis_text(h: Cause) -> str:
    """Return the kind, the names and the evidence of a cause."""
    text = f"{h.kind.value}: {h.name}, {evidence_text(h)}"
    return f"{text}; {alike_text(h)}: {listed(h.also)}" if h.also else text


def alike_text(h: Cause) -> str:
    """Return how the other names of a cause are known to be the same."""
    return "proved to be the same function" if h.is_proved else "the same on these inputs"


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _NAMES
    return "; ".join(names[:_NAMES]) + (f"; and {more} more" if more > 0 else "")


def evidence_text(h: Cause) -> str:
    """Return the share of elements that a hypothesis reproduces."""
    return f"reproduces {h.matching:,} of {h.elements:,} elements"


def discrimination_texts(discrimination: Discrimination) -> Iterator[str]:
    """Yield the groups of causes that new inputs tell apart, and whose inputs these are."""
    of = "the model" if discrimination.of_model else f"operator {discrimination.index} alone (tflq extract)"
    samples = "sample" if len(discrimination.trials) == 1 else "samples"
    if discrimination.trials:
        yield f"told apart by {len(discrimination.trials)} {samples} of inputs of {of}: run the device on them"
    else:
        yield "no inputs that were tried tell them apart; none are written"
    for group in discrimination.groups:
        yield f"  {'one' if len(group) > 1 else 'alone'}: {listed([discrimination.causes[cause] for cause in group])}"
