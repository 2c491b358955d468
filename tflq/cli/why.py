"""`tflq why`: why a device's results differ, whose fault it is, and what to do."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from tflq.cli.exits import exit_of_verdict
from tflq.cli.files import check_files, force_option, write_page
from tflq.cli.options import (
    PROFILE_HELP,
    from_stdin,
    html_option,
    json_option,
    limit_options,
    model_argument,
    sample_option,
    scaling_options,
    signature_option,
)
from tflq.cli.output import say, say_document, say_text


@click.command("why")
@model_argument
@click.argument("evidence", required=False)
@click.option(
    "--inputs",
    metavar="SOURCE",
    callback=from_stdin,
    help="The inputs that you meant to feed (.npy, .npz, images): pixels, real values or codes.",
)
@scaling_options
@sample_option
@signature_option
@click.option("--profile", "--against", metavar="NAME", default="litert-ref", show_default=True, help=PROFILE_HELP)
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
    scaling: Any,
    bgr: bool,
    sample: int | None,
    signature: str | None,
    profile: str,
    paste: bool,
    verbose: bool,
    html: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Find out why a device computes other results for MODEL: the cause, whose fault it is, and what to do.

    EVIDENCE is a dump or golden of any form that `explain` reads, an .npy of the first output, or runtime:NAME, an
    installed runtime. Without EVIDENCE, LiteRT's default runtime is the device.

    The user's mistakes are causes, too: inputs prepared otherwise than the model expects, and dumps written otherwise
    than they are read. Those in preparing inputs need --inputs.

    \b
    tflq why model.tflite dump.npz
    tflq why model.tflite outputs.npy --inputs images.npy
    tflq why model.tflite --paste
    """
    from tflq.api.subject import subject
    from tflq.errors import OptionError
    from tflq.report.verbs.why.document import why_document
    from tflq.report.verbs.why.report import paste as pasted
    from tflq.report.verbs.why.report import why_report

    if paste and (as_json or verbose):
        raise OptionError("--paste goes with neither --json nor --verbose")
    check_files([html], [model, evidence, inputs], force=force)
    whole = subject(model)
    found, name = _answer(whole, evidence, inputs, scaling, bgr, sample, signature, profile)
    shown = why_report(found, model, name, verbose=verbose)
    if html is not None:
        write_page(html, shown, model, profile, signature)
    if as_json:
        say_document(why_document(found, model, name))
    elif paste:
        say_text(pasted(found, model, name, _versions()))
    else:
        say(shown)
    return exit_of_verdict(found.verdict)


def _answer(
    whole: Any,
    evidence: str | None,
    inputs: str | None,
    scaling: Any,
    bgr: bool,
    sample: int | None,
    signature: str | None,
    profile: str,
) -> tuple[Any, str]:
    """Return the answer, and the evidence's name."""
    from tflq.diagnosis.evidence import Evidence, given_inputs, read_evidence
    from tflq.diagnosis.signatures import only_dumps
    from tflq.diagnosis.why import answer
    from tflq.ir import only_signed, signed
    from tflq.verification.goldens import check_model

    if evidence is None or evidence.startswith("runtime:"):
        runtime = (evidence or "runtime:litert-xnnpack").removeprefix("runtime:")
        return _of_runtime(whole, runtime, inputs, scaling, bgr, sample, signature, profile)
    check_model(evidence, whole.facts.sha256)
    if len(signed(whole.model)) > 1:
        part, dumps = only_dumps(whole.model, evidence, sample, None, signature)
        target, held = part.model, Evidence(tuple(dict(d.tensors) for d in dumps), dumps)
    else:
        target = only_signed(whole.model, signature).model
        held = read_evidence(target, evidence, sample)
    given = [] if inputs is None else given_inputs(target, inputs, bgr=bgr)
    return answer(target, held, profile, given, scaling), evidence


def _of_runtime(
    whole: Any,
    runtime: str,
    inputs: str | None,
    scaling: Any,
    bgr: bool,
    sample: int | None,
    signature: str | None,
    profile: str,
) -> tuple[Any, str]:
    """Return the answer about an installed runtime, on the inputs given or on generated ones."""
    from tflq.verification import record

    means = {"bgr": bgr} | ({} if scaling is None else {"mean": scaling.mean, "std": scaling.std})
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "recording.npz")
        record(bytes(whole.data), runtime, inputs, all_tensors=True, path=path, samples=4, signature=signature, **means)
        found, _ = _answer(whole, path, None, None, False, sample, signature, profile)
    return found, f"runtime:{runtime}"


def _versions() -> str:
    """Return the versions of tflq, Python and NumPy."""
    import platform
    from importlib import metadata

    return f"tflq {metadata.version('tflq')}, Python {platform.python_version()}, NumPy {metadata.version('numpy')}"
