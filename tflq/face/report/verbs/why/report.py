"""The report of an answer: at most fifteen lines of text; `verbose` and pages add the findings."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.diagnosis.why import Answer, Fault
from tflq.face.report.blocks import Block, Brief, Code, Note, OnPage, Pairs, Report, Section
from tflq.face.report.blocks import Verdict as Head
from tflq.face.report.verbs.explain.report import explain_report, strip
from tflq.face.report.verbs.why.asked import Asked
from tflq.face.report.verbs.why.texts import (
    advice,
    certainty_text,
    fault_text,
    headline,
    nearest_text,
    notes,
    operator_text,
    runtimes_text,
    samples_statement,
    weight_text,
    where_text,
)

_STYLES = {Fault.NONE: "good", Fault.RUNTIME: "warning", Fault.OPEN: "warning", Fault.MODEL: "warning"}


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
        whole = f"{headline(answer)} ({certainty_text(answer)})" if is_of_all and answer.fault != Fault.NONE else ""
        details = explain_report(answer.findings, asked.model, asked.dump, asked.options, whole).blocks
        blocks.append(Section("details", "Details", list(details)) if verbose else OnPage(lambda _view: details))
    about = ("model ", Code(asked.model), ", evidence ", Code(asked.evidence))
    return Report("why", blocks, about=about, title=f"why: {asked.model}")


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
    if answer.fault != Fault.NONE and certainty_text(answer):
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
    if answer.fault != Fault.NONE:
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
