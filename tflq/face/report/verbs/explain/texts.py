"""Statements about a dump's findings, each in one line, and rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import join

from tflq.comparison.inspection.difference import First
from tflq.comparison.verification.results import Located, Verdict
from tflq.diagnosis.causes import CauseVerdict
from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.findings import Findings
from tflq.diagnosis.hypotheses import Kind
from tflq.diagnosis.placement import Places

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
    unwritten = sum(o.is_unwritten for o in findings.operators)
    rest = f"; {unwritten} not written by the runtime" if unwritten else ""
    return word, f"{how_many} {compared} operators compared ({total} in the model{rest})"


def next_steps(model: str, dump: str, findings: Findings, options: Sequence[str] = ()) -> Iterator[str]:
    """Yield the command to type next, ready to be copied, and another one that may help.

    `options` are the words of the command that read the dump, which the next one needs, too.
    """
    e = findings.explanation
    signature = ("--signature", findings.signature) if findings.signature and "--signature" not in options else ()
    about = (*options, *signature)
    if "--inputs" not in options and e is None and not any(o.differences for o in findings.operators):
        yield command("explain", model, "--dump", dump, *about, "--inputs", "SOURCE")
    if e is None or e.verdict == CauseVerdict.SAME:
        return
    cause = e.exact[0] if e.exact else None
    if cause is None and findings.explained is not None and findings.explained.assumed:
        yield command("fit", model, "--dump", dump, *about)
    elif cause is not None and cause.kind == Kind.PROFILE:
        yield command("explain", model, "--dump", dump, *about, "--profile", cause.name)
    else:
        yield command("inspect", model, *_only(about, "--signature"), "--op", str(e.index))
    if (len(e.fitting) > 1 or any(h.also for h in e.fitting)) and findings.discrimination is None:
        yield command("explain", model, "--dump", dump, *about, "--op", str(e.index), "--discriminate", "apart.npz")


def command(verb: str, *words: str) -> str:
    """Return a command of tflq as it is typed."""
    return join(("tflq", verb, *words))


def _only(options: Sequence[str], name: str) -> tuple[str, ...]:
    """Return an option and its value, if it is among the words."""
    return tuple(options[(at := options.index(name)) : at + 2]) if name in options else ()


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


def fault_texts(findings: Findings) -> Iterator[str]:
    """Yield the hypotheses, and the parts of the explanation, that raised an exception."""
    faults = () if findings.explanation is None else findings.explanation.faults
    if faults:
        count = "1 hypothesis" if len(faults) == 1 else f"{len(faults):,} hypotheses"
        said = listed([f"{fault.name} ({fault.kind}: {fault.text})" for fault in faults])
        yield f"{count} could not be run: {said}"
    for part in findings.faults:
        yield f"could not be computed: {part}"


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _NAMES
    return "; ".join(names[:_NAMES]) + (f"; and {more} more" if more > 0 else "")


def discrimination_texts(discrimination: Discrimination) -> Iterator[str]:
    """Yield the groups of causes that new inputs distinguish, and the owner of these inputs."""
    of = "the model" if discrimination.of_model else f"operator {discrimination.index} alone (tflq extract)"
    samples = "sample" if len(discrimination.trials) == 1 else "samples"
    if discrimination.trials:
        yield f"distinguished by {len(discrimination.trials)} {samples} of inputs of {of}: run the device on them"
    else:
        yield "no inputs that were tried distinguish them; none are written"
    for group in discrimination.groups:
        yield f"  {'one' if len(group) > 1 else 'alone'}: {listed([discrimination.causes[cause] for cause in group])}"
