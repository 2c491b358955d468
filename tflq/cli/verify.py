"""`tflq verify`: every tensor of every operator, compared bit by bit."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.cli.exits import Exit
from tflq.cli.files import check_files, force_option, write_text
from tflq.cli.options import (
    html_option,
    input_options,
    json_option,
    limit_options,
    model_argument,
    profile_option,
    python_option,
)
from tflq.cli.output import say, say_document


@click.command("verify")
@model_argument
@click.option("--against", metavar="RUNTIME", help="The runtime to compare with. [default: litert-ref]")
@click.option("--golden", metavar="FILE", type=click.Path(), help="Compare with a golden file instead.")
@click.option("--mode", type=click.Choice(["isolated", "cumulative"]), help="[default: isolated where it is possible]")
@input_options
@profile_option
@python_option
@click.option("--all", "all_operators", is_flag=True, help="List exact operators too.")
@click.option("--junit", metavar="FILE", type=click.Path(), help="Also write JUnit XML.")
@html_option
@force_option
@limit_options
@json_option
def verify_command(
    model: str,
    against: str | None,
    golden: str | None,
    mode: str | None,
    inputs: str | None,
    samples: int,
    seed: int,
    profile: str,
    python: str | None,
    all_operators: bool,
    junit: str | None,
    html: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Compare MODEL's operators with a real runtime's, bit by bit.

    isolated: each operator is fed the runtime's own inputs, so that one fault neither hides nor spreads.
    cumulative: the whole model, end to end.

    A difference within what was measured of an operator that the profile promises to be close only is said to be so:
    exit code 5, where 0 means the same bits, 1 a difference and 3 that something could not be compared.

    Runtimes: litert-ref, litert-opt, litert-xnnpack, tensorflow-*, tflite-runtime-* and tflm.
    """
    from tflq.errors import OptionError
    from tflq.report.progress import progress_bar
    from tflq.verification import Verdict, verify

    if against and golden:
        raise OptionError("give either --against or --golden")
    if golden and (inputs or python):
        raise OptionError(
            "a golden file brings its own inputs and needs no runtime: give neither --inputs nor --python"
        )
    check_files([junit, html], [model, golden, inputs], force=force)
    with progress_bar() as progress:
        report = verify(
            model,
            Path(golden) if golden else against or "litert-ref",
            inputs,
            mode,
            profile,
            samples,
            seed,
            python,
            progress,
        )
    if junit:
        from tflq.report.verify.junit import junit as junit_text

        write_text(junit, junit_text(report))
    if html is not None:
        from tflq.report.graph.standard import view_of
        from tflq.report.verify.page import verify_page

        write_text(html, verify_page(view_of(model, profile), report))
    if as_json:
        from tflq.report.verify.document import verify_document

        say_document(verify_document(report))
    else:
        from tflq.report.verify.lines import report_lines

        say(report_lines(report, all_operators=all_operators))
    codes = {
        Verdict.SAME: Exit.SAME,
        Verdict.CLOSE: Exit.CLOSE,
        Verdict.DIFFERS: Exit.DIFFERS,
        Verdict.INCOMPLETE: Exit.UNSUPPORTED,
    }
    return codes[report.verdict]
