"""`tflq diff`: two models side by side."""

from __future__ import annotations

import click

from tflq.cli.exits import Exit
from tflq.cli.options import json_option, profile_option
from tflq.cli.output import say, say_document


@click.command("diff")
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@profile_option
@json_option
def diff_command(first: str, second: str, profile: str, as_json: bool) -> int:
    """Say how model SECOND differs from model FIRST: operators, options, weights in LSB, scales, derived multipliers.

    Nothing is run. Exit code 1 if anything differs.
    """
    from tflq.inspection.model_diff import diff
    from tflq.report.diff.document import diff_document
    from tflq.report.diff.lines import diff_lines

    found = diff(first, second, profile)
    if as_json:
        say_document(diff_document(found))
    else:
        say(diff_lines(found))
    return Exit.DIFFERS if found.changes else Exit.SAME
