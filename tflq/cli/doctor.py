"""`tflq doctor`: what is installed, what it stands for, and whether tflq computes here what it should."""

from __future__ import annotations

import click

from tflq.cli.exits import Exit
from tflq.cli.options import json_option, python_option
from tflq.cli.output import say, say_document


@click.command("doctor")
@python_option
@json_option
def doctor_command(python: str | None, as_json: bool) -> int:
    """Say which runtimes are installed and which profile each stands for, and test tflq itself in some seconds.

    What --json prints is what a bug report needs. Exit code 1 if the self-test fails.

    \b
    tflq doctor
    tflq doctor --json
    """
    from tflq.conformance.doctor import examine
    from tflq.report.doctor.document import doctor_document
    from tflq.report.doctor.lines import doctor_lines

    found = examine(python)
    if as_json:
        say_document(doctor_document(found))
    else:
        say(doctor_lines(found))
    return Exit.DIFFERS if found.failing else Exit.SAME
