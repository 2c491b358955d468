"""`tflq doctor`: the installed runtimes, their profiles, and a self-test of tflq on this machine."""

from __future__ import annotations

import click

from tflq.face.cli.exits import exit_of_verdict
from tflq.face.cli.options import json_option, python_option
from tflq.face.cli.output import say, say_document


@click.command("doctor")
@python_option
@json_option
def doctor_command(python: str | None, as_json: bool) -> int:
    """List the installed runtimes and the profile of each, and run a self-test of a few seconds.

    Attach the output of --json to bug reports. Exit code 1 if the self-test fails, 3 if it
    could not be made.

    \b
    tflq doctor
    tflq doctor --json
    """
    from tflq.devices.conformance.doctor import examine
    from tflq.face.report.verbs.doctor import doctor_document, doctor_report

    examination = examine(python)
    if as_json:
        say_document(doctor_document(examination))
    else:
        say(doctor_report(examination))
    return exit_of_verdict("fails" if examination.failing else "passes" if examination.tested else "nothing compared")
