"""`tflq lint`: breaches of the quantization spec and of what kernels require."""

from __future__ import annotations

from datetime import date

import click

from tflq.cli.continuous import baseline_option, continuous_options, is_new
from tflq.cli.exits import Exit
from tflq.cli.files import check_files, force_option, write_text
from tflq.cli.options import html_option, json_option, model_argument
from tflq.cli.output import say, say_document


@click.command("lint")
@model_argument
@click.option(
    "--target", type=click.Choice(["litert", "tflm", "cmsis-nn"]), help="Also what this runtime's kernels refuse."
)
@click.option("--fix", metavar="FILE", type=click.Path(), help="Write the model with the safe corrections made.")
@baseline_option
@continuous_options
@html_option
@force_option
@json_option
def lint_command(
    model: str,
    target: str | None,
    fix: str | None,
    baseline: str | None,
    sarif: str | None,
    accept_until: date | None,
    reason: str,
    html: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Hold MODEL against the 8-bit quantization spec and against what kernels require. Nothing is run.

    Exit code 1 if anything is found that --fix has not corrected. Corrections change no bit of any result.

    \b
    tflq lint model.tflite --target tflm
    tflq lint model.tflite --fix corrected.tflite
    """
    from tflq.lint import lint
    from tflq.report.lint.document import lint_document
    from tflq.report.lint.lines import lint_lines

    check_files([fix, html, sarif], [model, baseline], force=force)
    found = lint(model, target or "")
    corrected: tuple[object, ...] = ()
    if fix is not None:
        from tflq.api.files import save
        from tflq.lint.fixes import fixed

        better, corrected = fixed(found.model, found.findings)
        save(better, fix)
    if html is not None:
        from tflq.report.graph.standard import view_of
        from tflq.report.lint.page import lint_page

        write_text(html, lint_page(view_of(found.model), found))
    if as_json:
        say_document(lint_document(found, fix, len(corrected)))
    else:
        say(lint_lines(found, fix, len(corrected)))
    from tflq.report.issues import issues_of_lint

    new = is_new(issues_of_lint(found), baseline, sarif, accept_until, reason)
    return Exit.DIFFERS if new and len(found.findings) > len(corrected) else Exit.SAME
