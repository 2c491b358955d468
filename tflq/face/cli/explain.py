"""`tflq explain`: where a device's dump differs from a profile, and the arithmetic that reproduces it."""

from __future__ import annotations

import warnings
from typing import Any

import click

from tflq.face.cli.exits import Exit, exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_arrays, write_overlay, write_page
from tflq.face.cli.inputs import dump_inputs_option, number_options, optional_dump_option, reading_words, sample_option
from tflq.face.cli.options import (
    html_option,
    json_option,
    limit_options,
    model_argument,
    overlay_option,
    profile_option,
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
@number_options
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
    signature: str | None,
    seed: int,
    discriminate: str | None,
    html: str | None,
    overlay: str | None,
    force: bool,
    profile: str,
    as_json: bool,
    **numbers: Any,
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
    from tflq.errors import OptionError
    from tflq.face.report.verbs.explain.document import explain_document
    from tflq.face.report.verbs.explain.report import explain_report
    from tflq.verbs.explain import explain

    if dump is None:
        model, dump, profile = _case(model, profile)
    check_files([html, overlay, discriminate], [model, dump, inputs], force=force)
    if dump is None:
        if element is None or html is not None or overlay is not None or discriminate is not None:
            raise OptionError("give --dump, or --element alone to show an element of the profile's own run")
        idle = [name for name in ("sample", "mode", *numbers) if _is_typed(name)]
        if idle:
            raise OptionError(f"{', '.join(f'--{name}' for name in idle)}: only with --dump")
        return _work_out(model, profile, op, element, inputs, seed, signature, as_json=as_json)
    findings = explain(
        model,
        dump,
        profile,
        op=op,
        mode=mode,
        element=element,
        inputs=inputs,
        sample=sample,
        signature=signature,
        **numbers,
        search_inputs=discriminate is not None,
    )
    words = reading_words()
    if discriminate is not None and findings.discrimination is not None and findings.discrimination.trials:
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


def _is_typed(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


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
    text = f"{place} is one case: `tflq conform run` names the causes that all failing cases share, with more evidence"
    warnings.warn(InputWarning(Statement(text, "one-case")), stacklevel=2)
    return str(folder / MODEL), place, profile if _is_typed("profile") else profile_of(folder.parent) or profile


def _work_out(
    model: str,
    profile: str,
    op: int | None,
    element: tuple[int, ...],
    inputs: str | None,
    seed: int,
    signature: str | None,
    *,
    as_json: bool,
) -> int:
    from tflq.face.report.verbs.explain.document import element_run_document
    from tflq.face.report.verbs.explain.element import element_report
    from tflq.verbs.explain import explain_element

    worked, facts = explain_element(model, element, profile, op=op, inputs=inputs, seed=seed, signature=signature)
    if as_json:
        say_document(element_run_document(model, facts, worked))
    else:
        say(element_report(worked))
    return Exit.SAME
