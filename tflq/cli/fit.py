"""`tflq fit`: which profile computes what a device's dump holds."""

from __future__ import annotations

import click

from tflq.cli.exits import Exit
from tflq.cli.files import check_files, force_option, write_text
from tflq.cli.options import (
    dump_inputs_option,
    dump_option,
    html_option,
    json_option,
    limit_options,
    model_argument,
    sample_option,
)
from tflq.cli.output import say, say_document


@click.command("fit")
@model_argument
@dump_option
@dump_inputs_option
@sample_option
@limit_options
@html_option
@force_option
@json_option
def fit_command(
    model: str, dump: str, inputs: str | None, sample: int | None, html: str | None, force: bool, as_json: bool
) -> int:
    """Hold every operator of MODEL under every profile against the dump, and name the best profile.

    \b
    tflq fit model.tflite --dump device.npz
    """
    from tflq.api.subject import subject
    from tflq.diagnosis.dump import load_dumps
    from tflq.diagnosis.profile_fit import fit
    from tflq.report.fit.document import fit_document
    from tflq.report.fit.lines import fit_lines
    from tflq.verification.comparison import operator_name

    check_files([html], [model, dump, inputs], force=force)
    target = subject(model).model
    matrix = fit(target, load_dumps(target, dump, sample, inputs))
    ops = [operator_name(target, i) for i in range(len(target.subgraphs[0].operators))]
    document = fit_document(ops, matrix)
    if html is not None:
        from tflq.report.fit.page import fit_page
        from tflq.report.graph.standard import view_of

        write_text(html, fit_page(view_of(model), model, dump, ops, matrix))
    if as_json:
        say_document(document)
    else:
        say(fit_lines(ops, matrix))
    if not any(cell for row in matrix.values() for cell in row):
        return Exit.UNSUPPORTED
    return Exit.DIFFERS if document["unexplained"] else Exit.SAME
