"""`tflq golden`: show, compare, merge, prune and export goldens.

`tflq golden export`: goldens as source code, or one operator's stages as vectors for hardware.

`tflq golden`: show, compare, merge and prune goldens.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.face.cli.answer import Exit, check_files, check_golden, exit_of_verdict, force_option, say_answer, write_text
from tflq.face.cli.main import VerbGroup
from tflq.face.cli.options import complete_profile, json_option, samples_option

if TYPE_CHECKING:
    from tflq.comparison.goldens.golden import Golden


@click.command("export")
@click.argument("golden")
@click.option("-o", "--output", default=".", show_default=True, metavar="FOLDER", help="The folder of the two files.")
@click.option("--name", metavar="NAME", help="Prefix of names in the files. [default: the golden's]")
@click.option("--model", metavar="MODEL", type=click.Path(), help="Also put this model's file into the header.")
@samples_option
@click.option("--verilog", "operator", type=int, metavar="OPERATOR", help="Write this operator's stages as vectors.")
@click.option(
    "--profile",
    default="litert-ref",
    show_default=True,
    shell_complete=complete_profile,
    help="The arithmetic of --verilog.",
)
@click.option("--checksums", is_flag=True, help="Expect outputs by CRC-32, for small self-tests.")
@force_option
@json_option
def export_command(
    golden: str,
    output: str,
    name: str | None,
    model: str | None,
    samples: slice | None,
    operator: int | None,
    profile: str,
    checksums: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Write GOLDEN as C99: NAME.h with inputs and expected outputs; NAME_test.c, which compares a firmware with them.

    The firmware provides NAME_invoke. The test needs only the C library, and returns the number of differing outputs.

    With --verilog, write one operator of the first sample instead: NAME.vh with parameters, and NAME_STAGE.hex for
    $readmemh and cocotb, one file each for accumulators, products after the first rounding, scaled values and codes.

    \b
    tflq golden export golden.zip -o firmware/tests --name person
    tflq golden export golden.zip --model model.tflite --verilog 3 -o rtl/vectors
    """
    from tflq.comparison.goldens.stored import load_golden, require_model
    from tflq.errors import GoldenError
    from tflq.face.report.verbs.export import c_name, export_c, export_report

    called = c_name(name or Path(golden.rstrip("/")).stem)
    paths = [os.path.join(output, f"{called}{end}") for end in (".h", "_test.c")]
    recording = load_golden(golden)
    if operator is not None and (model is None or checksums):
        raise click.UsageError("--verilog needs --model, and has no --checksums")
    data = None
    if model is not None:
        from tflq.engine.api.files import subject

        target = subject(model)
        require_model(golden, recording.model_sha256, target.facts.sha256)
        data = target.data
    if any(signature is not None or continues for signature, continues in recording.steps):
        raise GoldenError(f"{golden}: holds steps of signatures; export c takes samples of a model without them")
    chosen = recording.chosen(range(len(recording.observations))[samples or slice(None)])
    if operator is not None:
        return _export_verilog(
            chosen, [golden, str(model)], operator, profile, output, called, force=force, as_json=as_json
        )
    _make_folder(output)
    check_files(paths, [golden, model], force=force)
    exported = export_c(chosen, called, data, checksums=checksums)
    for path, text in zip(paths, (exported.header, exported.test), strict=True):
        write_text(path, text)
    document = {"schema": "tflq/export-c/1", "files": paths, "samples": len(chosen.observations)}
    say_answer(export_report(paths), lambda: document, as_json=as_json)
    return Exit.SAME


def _make_folder(output: str) -> None:
    """Make the folder of the files, if a path is to be one."""
    from tflq.errors import FileAccessError

    if not os.path.lexists(output) or output.endswith(("/", os.sep)):
        try:
            os.makedirs(output, exist_ok=True)
        except OSError as error:
            raise FileAccessError(output, error.strerror or str(error)) from error


def _export_verilog(
    golden: Golden,
    sources: list[str],
    operator: int,
    profile: str,
    output: str,
    name: str,
    *,
    force: bool,
    as_json: bool,
) -> int:
    """Write an operator's stages for the first sample of a golden of the model `sources[1]`."""
    from tflq.comparison.verification.stage_values import operands_of, stage_values
    from tflq.engine.api.files import load
    from tflq.engine.profiles import by_name
    from tflq.face.report.verbs.export import verilog_files, verilog_report
    from tflq.model.ir import view

    subject = load(sources[1])
    graph, first = view(subject), next(iter(golden.observations))
    given = dict(zip(graph.inputs, first.inputs, strict=True))
    recorded = {**first.tensors, **dict(zip(graph.outputs, first.outputs, strict=True))}
    found = stage_values(subject, by_name(profile), operator, given, recorded)
    values = {**given, **{tensor: value for tensor, value in recorded.items() if value is not None}}
    files = verilog_files(found, operands_of(subject, operator, values, found), name)
    paths = [os.path.join(output, file) for file in files]
    _make_folder(output)
    check_files(paths, sources, force=force)
    for path, text in zip(paths, files.values(), strict=True):
        write_text(path, text)
    document = {
        "schema": "tflq/export-verilog/1",
        "files": paths,
        "op": found.op,
        "stage": found.stage,
        "elements": found.accumulator.size,
        "recorded": found.recorded,
        "coverage": dict(found.coverage),
    }
    say_answer(verilog_report(found, paths), lambda: document, as_json=as_json)
    return Exit.SAME


_output = click.option(
    "-o",
    "--output",
    required=True,
    metavar="PATH",
    help="The golden to write: X.npz; or as a bundle X.zip, X/ or a URL.",
)


@click.group("golden", cls=VerbGroup)
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
    from tflq.comparison.goldens.stored import arrays_of, load_golden
    from tflq.face.report.verbs.golden import golden_document, golden_report

    recording = load_golden(golden)
    arrays = arrays_of(recording)
    say_answer(
        golden_report(recording, golden, arrays), lambda: golden_document(recording, golden, arrays), as_json=as_json
    )
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

    Both need the same inputs; only recordings with --all-tensors hold operators' results. Two logs (.log, .txt) of a
    board are read as by `tflq why`. Exit code 0: the same bits; 1: a difference; 3: something, or everything, could not
    be compared; 6: a difference that is explained, since the profiles of both runtimes reproduce every bit of their
    recordings.
    """
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.golden import drift_document, drift_report
    from tflq.verbs.drift import diff_goldens

    with progress_bar() as progress:
        result = diff_goldens(model, first, second, progress)
    say_answer(drift_report(result), lambda: drift_document(result), as_json=as_json)
    return exit_of_verdict(result.verdict)


@golden_command.command("merge")
@click.argument("goldens", nargs=-1, required=True)
@_output
@force_option
@json_option
def merge_command(goldens: tuple[str, ...], output: str, force: bool, as_json: bool) -> int:
    """Merge GOLDENS of the same model and runtime into one; samples of equal inputs are stored once."""
    from tflq.comparison.goldens.stored import merge_goldens

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
    from tflq.comparison.goldens.stored import prune_golden

    check_golden(output, [golden], force=force)
    count = prune_golden(golden, output, samples=samples, drop_tensors=drop_tensors)
    return _report("tflq/golden-prune/1", output, count, as_json=as_json)


def _report(schema: str, output: str, count: int, *, as_json: bool) -> int:
    from tflq.face.report.verbs.golden import written_report

    say_answer(
        written_report(output, count), lambda: {"schema": schema, "output": output, "samples": count}, as_json=as_json
    )
    return Exit.SAME


golden_command.add_command(export_command)
