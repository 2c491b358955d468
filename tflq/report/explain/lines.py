"""The findings about a dump in lines: the first differing operator, its differences and their cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from tflq.diagnosis.causes import Cause, CauseVerdict, Explanation
from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.findings import Findings
from tflq.diagnosis.hypotheses import Kind
from tflq.inspection.difference import Difference, First
from tflq.report.differences import histogram_text
from tflq.report.explain.element_lines import element_lines
from tflq.report.explain.growth_lines import growth_lines, outcome_lines
from tflq.report.render.line import Line
from tflq.report.render.text import table
from tflq.verification.results import Located, Verdict

#: Partial hypotheses and names of one cause that are shown.
PARTIAL, NAMES = 5, 4
STYLES = {Verdict.SAME: "good", Verdict.CLOSE: "warning", Verdict.DIFFERS: "bad", Verdict.INCOMPLETE: "warning"}


def explain_lines(model: str, dump: str, findings: Findings, inputs: str | None = None) -> Iterator[Line]:
    """Yield the verdict, the first divergent operator with its differences, the cause with its evidence, a worked
    element, the next command, how the differences grow, and a row for each operator that differs or was not compared.
    """
    yield Line(verdict_text(findings), STYLES[findings.verdict])
    if findings.first is not None:
        yield Line(f"First divergent operator: {findings.first.index} {findings.first.op}")
    if findings.explained is not None and findings.explanation is not None:
        yield from map(Line, _difference_lines(findings, findings.explained))
        yield from (Line(f"  {place}") for place in findings.explanation.places)
        if findings.explained.assumed:
            missing = list(findings.explained.assumed)
            text = f"computed, as the dump lacks them: input tensors {missing}; what makes them may be at fault instead"
            yield Line(f"  {text}", "warning")
        if findings.first is not None:
            yield from _cause_lines(findings.explanation)
    yield from (Line(f"  {text}", "warning") for text in fault_texts(findings))
    if findings.discrimination is not None:
        yield from (Line(f"  {text}") for text in discrimination_texts(findings.discrimination))
    if findings.element is not None:
        yield from element_lines(findings.element, findings.sample)
    for position, command in enumerate(next_steps(model, dump, findings, inputs)):
        yield Line(f"{'  or' if position else 'Next'}: {command}", "strong")
    if findings.amplification is not None:
        yield from growth_lines(findings.amplification)
    yield from outcome_lines(findings.growths, len(findings.differing))
    if findings.unknown:
        yield Line(
            f"note: {len(findings.unknown)} entries of {dump} name no tensor: {listed(findings.unknown)}", "warning"
        )
    shown = [o for o in findings.operators if o.differs or o.reason]
    if shown:
        columns = (("#", ">"), ("operator", "<"), ("differing", ">"), ("largest", ">"), ("not compared because", "<"))
        yield from table(columns, (operator_row(o) for o in shown))


def verdict_text(findings: Findings) -> str:
    """The verdict in one line, its word first."""
    differing = len(findings.differing)
    compared = sum(bool(o.differences) for o in findings.operators)
    how_many = (
        f"in {differing} of" if differing else "in all" if findings.verdict == Verdict.SAME else "but the same in"
    )
    word, total = findings.verdict.value.upper(), len(findings.operators)
    if not compared:
        return f"{word}: none of {total} operators could be compared"
    return f"{word} {how_many} {compared} operators compared ({total} in the model)"


def next_steps(model: str, dump: str, findings: Findings, inputs: str | None = None) -> Iterator[str]:
    """The command to type next, ready to be copied, and another one that may help."""
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
    """Index, operator, differing elements of all, largest difference, and why nothing was compared."""
    parts = list(o.differences.values())
    counts = f"{sum(d.differing for d in parts):,} of {sum(d.elements for d in parts):,}" if parts else ""
    worst = max(parts, key=lambda d: d.largest, default=None)
    largest = f"{worst.largest:,} {worst.unit}" if worst is not None and worst.differing else ""
    problem = next((d.problem for d in parts if d.problem), "")
    return [str(o.index), o.op, counts, largest, o.reason or problem]


def _difference_lines(findings: Findings, where: Located) -> Iterator[str]:
    for tensor, d in where.differences.items():
        yield f"  operator {where.index} {where.op}, tensor {tensor}: {d.problem or how_far(d)}"
        if d.histogram:
            yield f"  dump - profile: {histogram_text(d)}"
        if d.first is not None:
            yield f"  {first_text(d.first, findings.sample is not None)}"


def first_text(first: First, several: bool) -> str:
    """Where the first differing element is, in which of `several` samples, and what was expected and got."""
    sample = f" of sample {first.sample}" if several else ""
    return f"first at {list(first.index)}{sample}: profile {first.expected}, dump {first.got}"


def how_far(d: Difference) -> str:
    """Return how many elements differ, the largest distance in LSB or ULP, and the direction."""
    text = f"{d.differing:,} of {d.elements:,} elements differ"
    if d.above + d.below:
        text += f", by up to {d.largest:,} {d.unit}: {d.above:,} above, {d.below:,} below, {d.bias:+.3f} on average"
    return text


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
    """The mistakes that reproduce every bit where a profile does."""
    for h in e.less_likely:
        yield f"less likely: {hypothesis_text(h)}"
    for h in e.possible:
        yield f"possible: {hypothesis_text(h)}"


def alike_texts(e: Explanation) -> Iterator[str]:
    """Return what other operators say of the causes."""
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
    """The best hypotheses that reproduce more than the profile does, where none reproduces all."""
    return [] if e.fitting else [h for h in e.causes if h.matching > e.matching][:PARTIAL]


def hypothesis_text(h: Cause) -> str:
    """Kind, names and evidence."""
    text = f"{h.kind.value}: {h.name}, {evidence_text(h)}"
    return f"{text}; {alike_text(h)}: {listed(h.also)}" if h.also else text


def alike_text(h: Cause) -> str:
    """Return how the other names of a cause are known to be the same."""
    return "proved to be the same function" if h.is_proved else "the same on these inputs"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - NAMES
    return "; ".join(names[:NAMES]) + (f"; and {more} more" if more > 0 else "")


def evidence_text(h: Cause) -> str:
    """Return the share of elements that a hypothesis reproduces."""
    return f"reproduces {h.matching:,} of {h.elements:,} elements"


def _cause_lines(e: Explanation) -> Iterator[Line]:
    yield Line(f"Cause. {cause_text(e)}", "strong" if e.exact else "warning")
    for h in e.exact:
        yield Line(f"  {hypothesis_text(h)}")
    yield from (Line(f"  {text}", "faint") for text in (*less_likely_texts(e), *alike_texts(e)))
    partial = partial_ones(e)
    if partial:
        yield Line(f"  best partial ones ({e.profile} itself: {e.matching:,} of {e.elements:,}):")
        yield from (Line(f"  {hypothesis_text(h)}", "faint") for h in partial)


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
