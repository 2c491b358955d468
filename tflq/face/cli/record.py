"""`tflq record`: save a runtime's results, for comparison later and elsewhere."""

from __future__ import annotations

from typing import Any

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, check_golden, force_option, write_page
from tflq.face.cli.inputs import input_options, preparation_options
from tflq.face.cli.options import html_option, json_option, model_argument, python_option, signature_option
from tflq.face.cli.output import say, say_document


@click.command("record")
@model_argument
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="PATH",
    help="The golden to write: X.npz; or as a bundle X.zip, X/ or a URL.",
)
@force_option
@click.option(
    "--against",
    default="litert-ref",
    show_default=True,
    metavar="RUNTIME",
    help="The runtime or ready target (openvino ...) to record.",
)
@click.option("--all-tensors", is_flag=True, help="Record every operator's results, which isolated mode needs.")
@input_options
@signature_option
@preparation_options
@python_option
@html_option
@json_option
def record_command(
    model: str,
    output: str,
    force: bool,
    against: str,
    all_tensors: bool,
    inputs: str | None,
    samples: int,
    seed: int,
    python: str | None,
    html: str | None,
    as_json: bool,
    **preparation: Any,
) -> int:
    """Run MODEL in a real runtime and write a golden file: inputs, outputs, provenance.

    An existing golden is kept unless --force replaces it. docs/golden-format.md describes bundles.

    \b
    tflq record model.tflite -o model.npz --all-tensors
    tflq record model.tflite -o goldens/model/ --inputs samples.npz
    """
    from tflq.comparison.verification import record
    from tflq.face.report.verbs.record import record_document, record_report

    check_golden(output, [model, inputs], force=force)
    check_files([html], [model, inputs, output], force=force)
    golden = record(model, against, inputs, all_tensors, output, samples, seed, python, **preparation)
    shown = record_report(golden, model, output)
    if html is not None:
        write_page(html, shown, model)
    if as_json:
        from tflq.engine.api.subject import subject

        say_document(record_document(subject(model).facts, golden, output))
    else:
        say(shown)
    return Exit.SAME
