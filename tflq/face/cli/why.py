"""`tflq why`: why a device's results differ, whose fault it is, and what to do."""

from __future__ import annotations

from typing import Any

import click

from tflq.face.cli.exits import exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_page
from tflq.face.cli.inputs import number_options, reading_words, sample_option
from tflq.face.cli.options import (
    PROFILE_HELP,
    from_stdin,
    html_option,
    json_option,
    limit_options,
    model_argument,
    python_option,
    signature_option,
)
from tflq.face.cli.output import is_quiet, say, say_document, say_text
from tflq.face.cli.targets import target_option

_PROFILE = "litert-ref"


@click.command("why")
@model_argument
@click.argument("evidence", required=False)
@click.option(
    "--inputs",
    metavar="SOURCE",
    callback=from_stdin,
    help="The inputs that you meant to feed (.npy, .npz, images): pixels, real values or codes.",
)
@number_options
@target_option(start="The device. ")
@sample_option
@signature_option
@click.option("--against", metavar="RUNTIME", help="An installed runtime as the evidence: the same as runtime:RUNTIME.")
@click.option("--profile", metavar="NAME", default=_PROFILE, show_default=True, help=PROFILE_HELP)
@python_option
@click.option("--paste", is_flag=True, help="Print a Markdown block for an issue tracker.")
@click.option("--verbose", is_flag=True, help="Also print what `tflq explain` prints.")
@html_option
@force_option
@limit_options
@json_option
def why_command(
    model: str,
    evidence: str | None,
    inputs: str | None,
    target: str | None,
    sample: int | None,
    signature: str | None,
    against: str | None,
    profile: str,
    python: str | None,
    paste: bool,
    verbose: bool,
    html: str | None,
    force: bool,
    as_json: bool,
    **numbers: Any,
) -> int:
    """Find out why a device computes other results for MODEL: the cause, whose fault it is, and what to do.

    EVIDENCE is a dump or golden of any form that `explain` reads, an .npy of the first output, or runtime:NAME, an
    installed runtime. With --target, the device itself is asked (docs/target-protocol.md). Without either, the
    installed runtimes are compared with each other, and the first that differs from the profile is the device.

    The user's mistakes are causes, too: inputs prepared otherwise than the model expects, and dumps written otherwise
    than they are read. Those in preparing inputs need --inputs.

    \b
    tflq why model.tflite dump.npz
    tflq why model.tflite outputs.npy --inputs images.npy
    tflq why model.tflite --target ./my_npu.sh
    tflq why model.tflite --paste
    """
    from tflq.errors import OptionError
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.why.asked import Asked
    from tflq.face.report.verbs.why.document import why_document
    from tflq.face.report.verbs.why.report import paste as pasted
    from tflq.face.report.verbs.why.report import why_report
    from tflq.verbs.why import why

    if paste and (as_json or verbose):
        raise OptionError("--paste goes with neither --json nor --verbose")
    if sum(one is not None for one in (evidence, target, against)) > 1:
        raise OptionError("give one of EVIDENCE, --target and --against")
    check_files([html], [model, evidence, inputs], force=force)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        found = why(
            model,
            evidence if against is None else f"runtime:{against}",
            profile,
            inputs=inputs,
            **numbers,
            target=target,
            sample=sample,
            signature=signature,
            python=python,
            progress=progress,
        )
    options = (*reading_words(), *(() if profile == _PROFILE else ("--profile", profile)))
    asked = Asked(model, found.evidence, target is not None, options)
    shown = why_report(found, asked, verbose=verbose)
    if html is not None:
        write_page(html, shown, model, profile, signature)
    if as_json:
        say_document(why_document(found, asked))
    elif paste:
        say_text(pasted(found, asked, _versions()))
    else:
        say(shown)
    return exit_of_verdict(found.verdict)


def _versions() -> str:
    """Return the versions of tflq, Python and NumPy."""
    import platform
    from importlib import metadata

    return f"tflq {metadata.version('tflq')}, Python {platform.python_version()}, NumPy {metadata.version('numpy')}"
