"""`tflq inspect`: what a model is made of, and the numbers behind each operator."""

from __future__ import annotations

import click

from tflq.cli.exits import Exit
from tflq.cli.options import json_option, model_argument, profile_option
from tflq.cli.output import say, say_document


@click.command("inspect")
@model_argument
@profile_option
@click.option("--op", type=int, metavar="N", help="Everything about operator N.")
@json_option
def inspect_command(model: str, profile: str, op: int | None, as_json: bool) -> int:
    """Show MODEL's operators: real multiplier, Q31 multiplier and shift, zero points, clamp, MACs.

    Nothing is run. An operator that the profile does not support is listed with the reason.
    """
    from tflq.errors import UnknownNameError
    from tflq.verification.inspection import inspect

    found = inspect(model, profile)
    if op is not None and not 0 <= op < len(found.operators):
        raise UnknownNameError("operator", op, (f"0 to {len(found.operators) - 1}",))
    if as_json:
        from tflq.report.json import inspect_document

        document = inspect_document(found)
        if op is not None:
            document["operators"] = [document["operators"][op]]
        say_document(document)
    else:
        from tflq.report.text import inspection_lines, operator_lines

        say(inspection_lines(found) if op is None else operator_lines(found, op))
    return Exit.SAME
