"""`tflq diff`: two models side by side."""

from __future__ import annotations

import click

from tflq.cli.exits import exit_of_verdict
from tflq.cli.files import check_files, force_option, write_overlay, write_text
from tflq.cli.options import html_option, json_option, overlay_option, profile_option
from tflq.cli.output import say, say_document


@click.command("diff")
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@profile_option
@click.option("--all", "all_changes", is_flag=True, help="List all changes.")
@html_option
@overlay_option
@force_option
@json_option
def diff_command(
    first: str,
    second: str,
    profile: str,
    all_changes: bool,
    html: str | None,
    overlay: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """List how model SECOND differs from model FIRST: operators, options, weights in LSB, scales, derived multipliers.

    Nothing is run. Exit code 1 if anything differs.

    \b
    tflq diff before.tflite after.tflite
    """
    from tflq.inspection.model_diff import diff
    from tflq.report.diff.document import diff_document
    from tflq.report.diff.lines import diff_lines

    check_files([html, overlay], [first, second], force=force)
    model_diff = diff(first, second, profile)
    if html is not None:
        from tflq.report.diff.page import diff_page
        from tflq.report.graph.standard import view_of

        write_text(html, diff_page(view_of(first, profile), model_diff))
    if overlay is not None:
        from tflq.report.diff.page import diff_colourings
        from tflq.report.graph.standard import view_of

        write_overlay(overlay, diff_colourings(view_of(first, profile), model_diff))
    if as_json:
        say_document(diff_document(model_diff))
    else:
        say(diff_lines(model_diff, all_changes=all_changes))
    return exit_of_verdict("differs" if model_diff.changes else "same")
