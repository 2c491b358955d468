"""`tflq fit`: the profile that computes a device's dump."""

from __future__ import annotations

from typing import Any

import click

from tflq.face.cli.exits import exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_arrays, write_overlay, write_page
from tflq.face.cli.options import (
    dump_inputs_option,
    dump_option,
    html_option,
    json_option,
    limit_options,
    model_argument,
    overlay_option,
    reading_words,
    sample_option,
    scaling_options,
    signature_option,
)
from tflq.face.cli.output import say, say_document


@click.command("fit")
@model_argument
@dump_option
@dump_inputs_option
@scaling_options
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
    scaling: Any,
    bgr: bool,
    sample: int | None,
    signature: str | None,
    profile: str,
    discriminate: str | None,
    html: str | None,
    overlay: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Compare every operator of MODEL under every profile with the dump, and name the best profile or mix of profiles.

    A dump of several signatures needs --signature.

    \b
    tflq fit model.tflite --dump device.npz
    """
    from tflq.comparison.verification.goldens import check_model
    from tflq.comparison.verification.preparation import Preparation
    from tflq.diagnosis.profile_fit import fit
    from tflq.diagnosis.profiles_apart import profiles_apart
    from tflq.diagnosis.signatures import only_dumps
    from tflq.engine.api.subject import subject
    from tflq.face.report.verbs.fit.document import fit_document
    from tflq.face.report.verbs.fit.report import fit_report

    check_files([html, overlay, discriminate], [model, dump, inputs], force=force)
    whole = subject(model)
    check_model(dump, whole.facts.sha256)
    part, dumps = only_dumps(whole.model, dump, sample, inputs, signature, Preparation(scaling, bgr=bgr))
    target = part.model
    result = fit(target, dumps, profile)
    discrimination = None
    if discriminate is not None and len(result.fitting) > 1:
        discrimination = profiles_apart(target, dumps[0], result.fitting)
        if discrimination.trials:
            write_arrays(discriminate, discrimination.arrays())
    shown = fit_report(result, discrimination, model=model, dump=dump, options=reading_words())
    if html is not None:
        write_page(html, shown, model, signature=signature)
    if overlay is not None:
        from tflq.face.report.verbs.fit.figures import fit_colourings

        write_overlay(overlay, fit_colourings(result))
    if as_json:
        say_document(fit_document(result, discrimination))
    else:
        say(shown)
    return exit_of_verdict(result.verdict)
