"""`tflq golden`: show, compare, merge and prune goldens."""

from __future__ import annotations

import click

from tflq.face.cli.exits import Exit, exit_of_verdict
from tflq.face.cli.export import export_command
from tflq.face.cli.files import check_golden, force_option
from tflq.face.cli.inputs import samples_option
from tflq.face.cli.options import json_option
from tflq.face.cli.output import say, say_document
from tflq.face.cli.start import Group

_output = click.option(
    "-o",
    "--output",
    required=True,
    metavar="PATH",
    help="The golden to write: X.npz; or as a bundle X.zip, X/ or a URL.",
)


@click.group("golden", cls=Group)
def golden_command() -> None:
    """Look into recordings of runtimes, and compare, merge and prune them.

    A golden is an .npz archive, or a bundle: a folder, a .zip or a URL (docs/golden-format.md).

    \b
    tflq golden show goldens/model/
    tflq golden diff before.zip after.zip --model model.tflite
    tflq golden merge a.zip b.zip -o whole/
    tflq golden prune whole/ -o small.zip --drop-tensors
    tflq golden export golden.zip -o firmware/tests
    """


@golden_command.command("show")
@click.argument("golden")
@json_option
def show_command(golden: str, as_json: bool) -> int:
    """Show the contents of GOLDEN: its runtime and model, the number of samples and arrays."""
    from tflq.comparison.verification.curation import arrays_of
    from tflq.comparison.verification.goldens import load_golden
    from tflq.face.report.verbs.golden import golden_document, golden_report

    recording = load_golden(golden)
    arrays = arrays_of(recording)
    if as_json:
        say_document(golden_document(recording, golden, arrays))
    else:
        say(golden_report(recording, golden, arrays))
    return Exit.SAME


@golden_command.command("diff")
@click.argument("first")
@click.argument("second")
@click.option(
    "--model", required=True, metavar="MODEL", type=click.Path(), help="The model that both were recorded from."
)
@json_option
def diff_command(first: str, second: str, model: str, as_json: bool) -> int:
    """List the operators whose bits changed from recording FIRST to SECOND, and explain the first of them.

    Both need the same inputs; only recordings with --all-tensors hold operators' results. Exit code 0: the same bits;
    1: a difference; 3: something, or everything, could not be compared; 6: a difference that is explained, since the
    profiles of both runtimes reproduce every bit of their recordings.
    """
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.golden import drift_document, drift_report
    from tflq.verbs.drift import diff_goldens

    with progress_bar() as progress:
        result = diff_goldens(model, first, second, progress)
    if as_json:
        say_document(drift_document(result))
    else:
        say(drift_report(result))
    return exit_of_verdict(result.verdict)


@golden_command.command("merge")
@click.argument("goldens", nargs=-1, required=True)
@_output
@force_option
@json_option
def merge_command(goldens: tuple[str, ...], output: str, force: bool, as_json: bool) -> int:
    """Merge GOLDENS of the same model and runtime into one; samples of equal inputs are stored once."""
    from tflq.comparison.verification.curation import merge_goldens

    check_golden(output, goldens, force=force)
    return _report("tflq/golden-merge/1", output, merge_goldens(goldens, output), as_json=as_json)


@golden_command.command("prune")
@click.argument("golden")
@_output
@samples_option
@click.option("--drop-tensors", is_flag=True, help="Keep inputs and outputs only, not every operator's results.")
@force_option
@json_option
def prune_command(
    golden: str, output: str, samples: slice | None, drop_tensors: bool, force: bool, as_json: bool
) -> int:
    """Write GOLDEN again with samples of equal inputs once, and only the arrays that they use."""
    from tflq.comparison.verification.curation import prune_golden

    check_golden(output, [golden], force=force)
    count = prune_golden(golden, output, samples=samples, drop_tensors=drop_tensors)
    return _report("tflq/golden-prune/1", output, count, as_json=as_json)


def _report(schema: str, output: str, count: int, *, as_json: bool) -> int:
    from tflq.face.report.verbs.golden import written_report

    if as_json:
        say_document({"schema": schema, "output": output, "samples": count})
    else:
        say(written_report(output, count))
    return Exit.SAME


golden_command.add_command(export_command)
