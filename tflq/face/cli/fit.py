"""`tflq fit`: the profile that computes a device's dump."""

from __future__ import annotations

from typing import Any

import click

from tflq.face.cli.exits import exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_arrays, write_overlay, write_page
from tflq.face.cli.inputs import dump_inputs_option, dump_option, number_options, reading_words, sample_option
from tflq.face.cli.options import (
    html_option,
    json_option,
    limit_options,
    model_argument,
    overlay_option,
    signature_option,
)
from tflq.face.cli.output import say, say_document, say_written


@click.command("fit")
@model_argument
@dump_option
@dump_inputs_option
@number_options
@sample_option
@signature_option
@click.option(
    "--profile",
    default="litert-ref",
    show_default=True,
    help="The profile you expect: if several fit equally well, the nearest to it is named.",
)
@click.option(
    "--discriminate",
    metavar="FILE",
    type=click.Path(),
    help="Search for inputs that distinguish the fitting profiles, and write them to this .npz file.",
)
@limit_options
@html_option
@overlay_option
@force_option
@json_option
def fit_command(
    model: str,
    dump: str,
    inputs: str | None,
    sample: int | None,
    signature: str | None,
    profile: str,
    discriminate: str | None,
    html: str | None,
    overlay: str | None,
    force: bool,
    as_json: bool,
    **numbers: Any,
) -> int:
    """Compare every operator of MODEL under every profile with the dump, and name the best profile or mix of profiles.

    A dump of several signatures needs --signature.

    \b
    tflq fit model.tflite --dump device.npz
    """
    from tflq.face.report.verbs.fit.document import fit_document
    from tflq.face.report.verbs.fit.report import fit_report
    from tflq.verbs.fit import fit

    check_files([html, overlay, discriminate], [model, dump, inputs], force=force)
    result = fit(
        model,
        dump,
        profile,
        inputs=inputs,
        sample=sample,
        signature=signature,
        **numbers,
        search_inputs=discriminate is not None,
    )
    if discriminate is not None and result.discrimination is not None and result.discrimination.trials:
        write_arrays(discriminate, result.discrimination.arrays())
        say_written(discriminate, "inputs that distinguish the causes")
    shown = fit_report(result, model=model, dump=dump, options=reading_words())
    if html is not None:
        write_page(html, shown, model, signature=signature)
    if overlay is not None:
        from tflq.face.report.verbs.fit.figures import fit_colourings

        write_overlay(overlay, fit_colourings(result))
    if as_json:
        say_document(fit_document(result))
    else:
        say(shown)
    return exit_of_verdict(result.verdict)
