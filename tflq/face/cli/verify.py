"""`tflq verify`: every tensor of every operator, compared bit by bit."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.continuous import Continuous, continuous_options
from tflq.face.cli.files import check_files, force_option, golden_place, write_junit, write_overlay, write_page
from tflq.face.cli.inputs import input_options, preparation_options, reading_words
from tflq.face.cli.options import (
    PROFILE_HELP,
    from_stdin,
    html_option,
    json_option,
    limit_options,
    overlay_option,
    python_option,
    signature_option,
    tolerance_option,
)
from tflq.face.cli.output import say, say_document
from tflq.face.cli.several import fill, models_argument, only_of_one
from tflq.face.cli.verified import verify_several

if TYPE_CHECKING:
    from tflq.comparison.verification import Report


@click.command("verify")
@models_argument
@click.option(
    "--against",
    metavar="RUNTIME",
    help="The runtime or ready target (openvino ...) to compare with. [default: litert-ref]",
)
@click.option(
    "--golden",
    metavar="FILE",
    type=click.Path(),
    callback=from_stdin,
    help="Compare with a golden file instead. For several models a pattern: {stem} is a model's name without .tflite, "
    "{folder} its folder.",
)
@click.option("--baseline", metavar="FILE", help="Known and accepted differences (.json): only new ones fail.")
@click.option(
    "--mode", type=click.Choice(["isolated", "cumulative"]), help="[default: isolated, if all tensors are known]"
)
@input_options
@signature_option
@preparation_options
@click.option("--profile", metavar="NAME", help=f"{PROFILE_HELP} [default: the runtime's own]")
@tolerance_option
@python_option
@click.option("--all", "all_operators", is_flag=True, help="List exact operators too.")
@click.option("--junit", metavar="FILE", type=click.Path(), help="Also write JUnit XML.")
@continuous_options
@html_option
@overlay_option
@force_option
@limit_options
@json_option
@click.pass_context
def verify_command(
    context: click.Context,
    /,
    models: tuple[str, ...],
    against: str | None,
    golden: str | None,
    baseline: str | None,
    all_operators: bool,
    junit: str | None,
    sarif: str | None,
    accept_until: date | None,
    reason: str,
    html: str | None,
    overlay: str | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Compare MODEL's operators with a real runtime's, bit by bit.

    isolated: each operator is fed the runtime's own inputs, so that errors of earlier operators do not spread.
    cumulative: the whole model, end to end.

    Every signature is compared. Variables, and inputs that are outputs too (a cache), keep their values through the
    steps of one interpreter. Inputs name their signature, as in decode/tokens, unless --signature chooses one.

    MODEL is computed under the runtime's own profile unless --profile names another. Exit code 0: the same bits; 1: a
    difference; 3: something could not be compared; 5: only differences within the bounds of results that the profile
    promises to be close, or within a --tolerance; 6: --profile differs, and the runtime's own profile reproduces every
    bit. Several models are summarized, with the worst exit code.

    Runtimes: litert-ref, litert-opt, litert-xnnpack, tensorflow-*, tflite-runtime-* and tflm.

    \b
    tflq verify model.tflite
    tflq verify model.tflite --inputs photos/ --mean 127.5 --std 127.5
    tflq verify model.tflite --golden model.npz
    tflq verify decoder.tflite --signature decode
    tflq verify models/*.tflite --golden 'goldens/{stem}.npz' --junit report.xml
    """
    from tflq.errors import OptionError

    golden, baseline = _golden_and_baseline(context, against, golden, baseline)
    if golden and not _typed(context, "inputs"):
        options["inputs"] = None  # from a configuration; golden files bring their own
    only_of_one(models, (("--html", html), ("--overlay", overlay)))
    check_files([junit, html, overlay, sarif], [*models, golden, options["inputs"], baseline], force=force)
    kept = Continuous(baseline, sarif, accept_until, reason)
    if len(models) > 1:
        if golden and fill(golden, "a/b.tflite") == golden:
            raise OptionError("--golden: for several models, name a pattern such as 'goldens/{stem}.npz'")
        return verify_several(
            models, lambda path: _verify(path, against, golden, options), junit, kept, as_json=as_json
        )
    from tflq.face.report.issues import compare_of_report, issues_of_report

    report = _verify(models[0], against, golden, options)
    judged = kept.judge(report.verdict, report.rest, issues_of_report(report), compare_of_report(report))
    report = replace(report, accepted=None if judged.baseline is None else judged.is_accepted)
    if junit:
        from tflq.face.report.verbs.verify.junit import junit as junit_text

        write_junit(junit, junit_text(report))
    from tflq.face.report.verbs.verify.report import verify_report

    shown = verify_report(report, all_operators=all_operators, options=reading_words())
    if html is not None:
        write_page(html, shown, models[0], report.profile, options["signature"])
    if overlay is not None:
        from tflq.face.report.verbs.verify.report import verify_colourings

        write_overlay(overlay, verify_colourings(report))
    if as_json:
        from tflq.face.report.verbs.verify.document import verify_document

        say_document(verify_document(report))
    else:
        say(shown)
    judged.say()
    return judged.code


def _golden_and_baseline(
    context: click.Context, against: str | None, golden: str | None, baseline: str | None
) -> tuple[str | None, str | None]:
    """Return the golden to compare with and the baseline of accepted differences.

    The command line overrides a configuration. A baseline that is no .json file is a pattern of goldens, as before
    --golden took patterns.
    """
    from tflq.errors import OptionError

    if baseline is not None and not baseline.endswith(".json"):
        if _typed(context, "baseline") and (against or golden):
            raise OptionError("give one of --against and --golden; --baseline names accepted differences (.json)")
        golden, baseline = golden or (None if against else baseline), None
    if against and golden:
        if _typed(context, "golden") and _typed(context, "against"):
            raise OptionError("give one of --against and --golden")
        golden = golden if _typed(context, "golden") else None
    return golden, baseline


def _verify(model: str, against: str | None, golden: str | None, options: dict[str, Any]) -> Report:
    from tflq.comparison.verification import verify
    from tflq.errors import FileAccessError
    from tflq.face.report.progress import progress_bar
    from tflq.model.storage.remote import is_url

    golden = golden and fill(golden, model)
    if golden and not is_url(golden) and not os.path.exists(golden):
        raise FileAccessError(golden, f"No such file; tflq record {quote(model)} -o {quote(golden)} records it")
    with progress_bar() as progress:
        return verify(model, golden_place(golden) if golden else against or "litert-ref", progress=progress, **options)


def _typed(context: click.Context, option: str) -> bool:
    """Return whether the command line gives the option."""
    return context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE
