"""`tflq extract`: some operators of a model as a model."""

from __future__ import annotations

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option
from tflq.face.cli.options import json_option, model_argument
from tflq.face.cli.output import say, say_document


@click.command("extract")
@model_argument
@click.argument("operators", nargs=-1, required=True, metavar="OPERATOR...")
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(), help="The model to write.")
@force_option
@json_option
def extract_command(model: str, operators: tuple[str, ...], output: str, force: bool, as_json: bool) -> int:
    """Write the named operators of MODEL as a model of their own.

    OPERATOR is an index, the name of a tensor that the operator makes, a type (all operators of it), or FIRST..LAST.

    \b
    tflq extract model.tflite 4..6 -o part.tflite
    tflq extract model.tflite CONV_2D -o convolutions.tflite
    """
    from tflq.engine.api.files import save
    from tflq.engine.api.subject import subject
    from tflq.face.report.verbs.extract import extract_document, extract_report
    from tflq.model.surgery.cut import extract

    check_files([output], [model], force=force)
    target = subject(model)
    part, chosen = extract(target.model, operators)
    save(part, output)
    if as_json:
        say_document(extract_document(target.facts, part, chosen, output))
    else:
        say(extract_report(part, chosen, output))
    return Exit.SAME
