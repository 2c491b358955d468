"""`tflq explain`: where a device's dump differs from a profile, and the arithmetic that reproduces it."""

from __future__ import annotations

import warnings
from typing import Any

import click

from tflq.face.cli.exits import Exit, exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_arrays, write_overlay, write_page
from tflq.face.cli.options import (
    dump_inputs_option,
    html_option,
    json_option,
    limit_options,
    model_argument,
    optional_dump_option,
    overlay_option,
    profile_option,
    reading_words,
    sample_option,
    scaling_options,
    signature_option,
)
from tflq.face.cli.output import say, say_document, say_written


def _element(_context: Any, _option: Any, text: str | None) -> tuple[int, ...] | None:
    """Parse 0,3,5,7 as an index; an empty text is the index of a scalar's element."""
    if text is None:
        return None
    try:
        return tuple(int(word) for word in text.split(",")) if text.strip() else ()
    except ValueError:
        raise click.BadParameter(f"{text!r} is not an index like 0,3,5,7") from None


@click.command("explain")
@model_argument
@optional_dump_option
@sample_option
@click.option("--op", type=int, help="Explain this operator. [default: the first that differs]")
@click.option(
    "--element",
    metavar="I,J,...",
    callback=_element,
    help="Show step by step how this element of its output is computed.",
)
@click.option("--mode", type=click.Choice(["isolated", "cumulative"]), default="isolated", show_default=True)
@dump_inputs_option
@scaling_options
@signature_option
@click.option("--seed", default=0, show_default=True, help="Seed of generated inputs.")
@click.option(
    "--discriminate",
    metavar="FILE",
    type=click.Path(),
    help="Search for inputs that distinguish the remaining causes, and write them to this .npz file.",
)
@html_option
@overlay_option
@force_option
@profile_option
@limit_options
@json_option
def explain_command(
    model: str,
    dump: str | None,
    sample: int | None,
    op: int | None,
    element: tuple[int, ...] | None,
    mode: str,
    inputs: str | None,
    scaling: Any,
    bgr: bool,
    signature: str | None,
    seed: int,
    discriminate: str | None,
    html: str | None,
    overlay: str | None,
    force: bool,
    profile: str,
    as_json: bool,
) -> int:
    """Find the first operator of MODEL whose results in the dump differ, and the arithmetic that reproduces them.

    isolated: each operator is fed the dump's own inputs, so that errors of earlier operators do not spread.
    cumulative: the whole model, end to end. The cause is always searched with the dump's own inputs.

    Of a recording of several signatures, each is explained; a page is about the one with the gravest verdict. Any
    other dump of such a model names tensors of one signature, or needs --signature.

    Without a dump, --element shows how the profile computes one element. WORK/CASE, a case of a conformance run, is
    model and dump in one; its suite names the profile.

    \b
    tflq explain model.tflite --dump device.npz
    tflq explain model.tflite --dump device.npz --html why.html
    tflq explain model.tflite --op 4 --element 0,3,5,7
    tflq explain work/00462-fully_connected
    """
    from dataclasses import replace

    from tflq.engine.api.subject import subject
    from tflq.engine.profiles import by_name
    from tflq.errors import OptionError
    from tflq.model.ir import only_signed

    if dump is None:
        model, dump, profile = _case(model, profile)
    check_files([html, overlay, discriminate], [model, dump, inputs], force=force)
    whole = subject(model)
    if dump is None:
        if element is None or html is not None or overlay is not None or discriminate is not None:
            raise OptionError("give --dump, or --element alone to show an element of the profile's own run")
        target = only_signed(whole.model, signature).model
        return _work_out(model, target, profile, op, element, inputs, seed, as_json=as_json)

    from tflq.comparison.verification.goldens import check_model
    from tflq.comparison.verification.preparation import Preparation
    from tflq.comparison.verification.results import Mode
    from tflq.devices.learning.jointly_observed import causes_of_dump
    from tflq.diagnosis.findings import gravest, investigate
    from tflq.diagnosis.signatures import dumps_by_signature, only_dumps
    from tflq.face.report.verbs.explain.document import explain_document
    from tflq.face.report.verbs.explain.report import explain_report

    check_model(dump, whole.facts.sha256)
    chosen, how, words = by_name(profile), Preparation(scaling, bgr=bgr), reading_words()
    held = dumps_by_signature(whole.model, dump, sample, inputs, signature, how)
    if op is not None or element is not None or discriminate is not None:
        held = [only_dumps(whole.model, dump, sample, inputs, signature, how)]
    found = []
    for part, samples in held:
        one = investigate(part.model, samples, chosen, op=op, mode=Mode(mode), element=element)
        joint = causes_of_dump(part.model, samples, chosen, one)
        found.append(replace(one, signature=part.name, joint=joint, faults=(*one.faults, *joint.faults)))
    findings = gravest(found)
    if discriminate is not None:
        from tflq.diagnosis.session import discriminated

        part, samples = held[0]
        findings = discriminated(part.model, samples, findings, chosen)
        if findings.discrimination is not None and findings.discrimination.trials:
            write_arrays(discriminate, findings.discrimination.arrays())
            say_written(discriminate, "inputs that distinguish the causes")
    shown = explain_report(findings, model, dump, words)
    if html is not None:
        write_page(html, shown, model, profile, findings.signature or None)
    if overlay is not None:
        from tflq.face.report.verbs.explain.figures import explain_colourings

        write_overlay(overlay, explain_colourings(findings))
    if as_json:
        say_document(explain_document(model, dump, findings, words))
    else:
        say(shown)
    return exit_of_verdict(findings.verdict)


def _case(place: str, profile: str) -> tuple[str, str | None, str]:
    """Return model, dump and profile of a case's folder; any other path is a model without a dump."""
    from pathlib import Path

    from tflq.comparison.verification.evidence.case_folder import MODEL, is_case
    from tflq.devices.conformance.records import profile_of
    from tflq.errors import InputWarning
    from tflq.statements import Statement

    folder = Path(place)
    if not is_case(folder):
        return place, None, profile
    source = click.get_current_context().get_parameter_source("profile")
    is_given = source is not None and source.name == "COMMANDLINE"
    text = f"{place} is one case: `tflq conform run` names the causes that all failing cases share, with more evidence"
    warnings.warn(InputWarning(Statement(text, "one-case")), stacklevel=2)
    return str(folder / MODEL), place, profile if is_given else profile_of(folder.parent) or profile


def _work_out(
    path: str,
    model: Any,
    profile: str,
    op: int | None,
    element: tuple[int, ...],
    inputs: str | None,
    seed: int,
    *,
    as_json: bool,
) -> int:
    from tflq.comparison.verification.inputs import make_inputs
    from tflq.diagnosis.findings import work_out
    from tflq.engine.profiles import by_name
    from tflq.face.report.verbs.explain.document import element_run_document
    from tflq.face.report.verbs.explain.element import element_report
    from tflq.model.ir import view

    drawn = make_inputs(model, inputs, 1, seed)
    sample = dict(zip(view(model).inputs, drawn.samples[0], strict=True))
    worked = work_out(model, sample, by_name(profile), element, op)
    if as_json:
        say_document(element_run_document(path, drawn.facts, worked))
    else:
        say(element_report(worked))
    return Exit.SAME
