"""`tflq court`: every profile and installed runtime on one model."""

from __future__ import annotations

import click

from tflq.face.cli.exits import exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_page
from tflq.face.cli.inputs import input_options
from tflq.face.cli.options import (
    html_option,
    json_option,
    limit_options,
    model_argument,
    python_option,
    signature_option,
    words_of,
)
from tflq.face.cli.output import is_quiet, say, say_document


@click.command("court")
@model_argument
@click.option(
    "--with",
    "systems",
    metavar="A,B",
    callback=words_of,
    help="Only these profiles, runtime:NAME and ready targets. [default: all profiles, and the installed runtimes]",
)
@input_options
@signature_option
@python_option
@html_option
@force_option
@limit_options
@json_option
def court_command(
    model: str,
    systems: tuple[str, ...],
    inputs: str | None,
    samples: int,
    seed: int,
    signature: str | None,
    python: str | None,
    html: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Run MODEL under all profiles and runtimes: who gives the same bits, who parts from whom, and at which operator.

    Systems part at an operator if they have the same inputs there and give other outputs. The number of systems in a
    group decides nothing; groups are compared with litert-ref. Exit code 1: there are several groups; 3: fewer than two
    systems ran.

    \b
    tflq court model.tflite
    tflq court model.tflite --with litert-ref,runtime:tflm,openvino --samples 8
    """
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.court import court_document, court_report
    from tflq.verbs.court import court

    check_files([html], [model, inputs], force=force)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        found = court(
            model, systems, inputs, samples=samples, seed=seed, signature=signature, python=python, progress=progress
        )
    if html is not None:
        write_page(html, court_report(found), model, "litert-ref", signature)
    if as_json:
        say_document(court_document(found))
    else:
        say(court_report(found))
    return exit_of_verdict(found.verdict)
