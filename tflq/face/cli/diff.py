"""`tflq diff`: two models side by side."""

from __future__ import annotations

import click

from tflq.face.cli.exits import exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_overlay, write_page
from tflq.face.cli.options import html_option, json_option, overlay_option, profile_option, signature_option
from tflq.face.cli.output import say, say_document


@click.command("diff")
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@profile_option
@signature_option
@click.option("--all", "all_changes", is_flag=True, help="List all changes.")
@html_option
@overlay_option
@force_option
@json_option
def diff_command(
    first: str,
    second: str,
    profile: str,
    signature: str | None,
    all_changes: bool,
    html: str | None,
    overlay: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """List how model SECOND differs from model FIRST: operators, options, weights in LSB, scales, derived multipliers.

    Signatures are matched by name. Nothing is run. Exit code 1 if anything differs.

    \b
    tflq diff before.tflite after.tflite
    """
    from tflq.comparison.inspection.model_diff import diff
    from tflq.face.report.verbs.diff import diff_document, diff_report

    check_files([html, overlay], [first, second], force=force)
    model_diff = diff(first, second, profile, signature)
    shown = diff_report(model_diff, all_changes=all_changes)
    if html is not None:
        write_page(html, shown, first, profile, signature)
    if overlay is not None:
        from tflq.face.report.graph.standard import view_of
        from tflq.face.report.verbs.diff import diff_colourings

        write_overlay(overlay, diff_colourings(view_of(first, profile, signature), model_diff))
    if as_json:
        say_document(diff_document(model_diff))
    else:
        say(shown)
    return exit_of_verdict("differs" if model_diff.changes else "same")
