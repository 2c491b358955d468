"""`tflq prove --check`: prove the statements of a certificate again."""

from __future__ import annotations

from tflq.face.cli.exits import Exit, exit_of_verdict
from tflq.face.cli.output import say, say_document


def say_check(model: str, path: str, *, as_json: bool) -> Exit:
    """Check a certificate, print the result, and return the exit code."""
    from tflq.face.report.verbs.prove.check import check_document, check_report
    from tflq.proof import check_certificate, read_certificate

    check = check_certificate(model, read_certificate(path))
    if as_json:
        say_document(check_document(check))
    else:
        say(check_report(check))
    return exit_of_verdict(check.word)
