"""The report of an answer: at most fifteen lines of text; `verbose` and pages add the findings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from tflq.diagnosis.why import Answer, Fault
from tflq.report.blocks import Block, Brief, Code, Note, OnPage, Pairs, Report, Section
from tflq.report.blocks import Verdict as Head
from tflq.report.verbs.explain.report import explain_report
from tflq.report.verbs.why.texts import (
    advice,
    certainty_text,
    fault_text,
    headline,
    nearest_text,
    runtimes_text,
    weight_text,
    where_text,
)

_STYLES = {Fault.NONE: "good", Fault.RUNTIME: "warning", Fault.OPEN: "warning"}


def why_report(answer: Answer, model: str = "MODEL", evidence: str = "EVIDENCE", *, verbose: bool = False) -> Report:
    """Build the report of an answer about a model and a piece of evidence."""
    blocks: list[Block] = [
        Head(headline(answer), _STYLES.get(answer.fault, "bad"), f"{answer.verdict.value.upper()}:"),
        Brief(where_text(answer), f"Next: {advice(answer, model, evidence)}"),
        Pairs(list(_pairs(answer, model, evidence))),
        *map(Note, answer.warnings[:2]),
    ]
    if answer.findings is not None:
        details = explain_report(answer.findings, model, evidence).blocks
        blocks.append(Section("details", "Details", list(details)) if verbose else OnPage(lambda _view: details))
    return Report("why", blocks, about=("model ", Code(model), ", evidence ", Code(evidence)), title=f"why: {model}")


def _pairs(answer: Answer, model: str, evidence: str) -> Iterator[tuple[str, str]]:
    yield "fault", fault_text(answer)
    yield "first difference", where_text(answer)
    if answer.fault != Fault.NONE and certainty_text(answer):
        yield "how certain", certainty_text(answer)
    yield "nearest profile", nearest_text(answer)
    if answer.runtimes is not None:
        yield "installed runtimes", runtimes_text(answer.runtimes)
    if answer.fault != Fault.NONE:
        yield "effect", weight_text(answer)
    yield "what to do", advice(answer, model, evidence)


def reduced_name(answer: Answer, model: str) -> str:
    """Return the name of the reduced model; empty if no operator differs."""
    located = None if answer.findings is None else answer.findings.explained or answer.findings.first
    return "" if located is None else f"{Path(model).stem}-op{located.index}"


def paste(answer: Answer, model: str, evidence: str, versions: str) -> str:
    """Return a Markdown block for an issue tracker."""
    lines = [
        f"### {answer.verdict.value.upper()}: {headline(answer)}",
        "",
        *(f"- {name}: {text}" for name, text in _pairs(answer, model, evidence)),
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
    commands = [f"tflq why {quote(Path(model).name)} {quote(Path(evidence).name)}"]
    if name := reduced_name(answer, model):
        names = f"{quote(Path(model).name)} --dump {quote(Path(evidence).name)}"
        commands.append(f"tflq reduce {names} -o {quote(name)}  # writes {name}.tflite")
    return "\n".join([*lines, "", "```sh", *commands, "```"])
