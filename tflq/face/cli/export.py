"""`tflq golden export`: goldens as source code, or one operator's stages as vectors for hardware."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_text
from tflq.face.cli.inputs import samples_option
from tflq.face.cli.options import json_option
from tflq.face.cli.output import say, say_document

if TYPE_CHECKING:
    from tflq.comparison.verification.golden import Golden


@click.command("export")
@click.argument("golden")
@click.option("-o", "--output", default=".", show_default=True, metavar="FOLDER", help="The folder of the two files.")
@click.option("--name", metavar="NAME", help="Prefix of names in the files. [default: the golden's]")
@click.option("--model", metavar="MODEL", type=click.Path(), help="Also put this model's file into the header.")
@samples_option
@click.option("--verilog", "operator", type=int, metavar="OPERATOR", help="Write this operator's stages as vectors.")
@click.option("--profile", default="litert-ref", show_default=True, help="The arithmetic of --verilog.")
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
    from tflq.comparison.verification.goldens import load_golden, require_model
    from tflq.errors import GoldenError
    from tflq.face.report.verbs.export.c import c_name, export_c
    from tflq.face.report.verbs.export.report import export_report

    called = c_name(name or Path(golden.rstrip("/")).stem)
    paths = [os.path.join(output, f"{called}{end}") for end in (".h", "_test.c")]
    recording = load_golden(golden)
    if operator is not None and (model is None or checksums):
        raise click.UsageError("--verilog needs --model, and has no --checksums")
    data = None
    if model is not None:
        from tflq.engine.api.subject import subject

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
    if as_json:
        say_document({"schema": "tflq/export-c/1", "files": paths, "samples": len(chosen.observations)})
    else:
        say(export_report(paths))
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
    from tflq.face.report.verbs.export.report import verilog_report
    from tflq.face.report.verbs.export.verilog import verilog_files
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
    if as_json:
        say_document(
            {
                "schema": "tflq/export-verilog/1",
                "files": paths,
                "op": found.op,
                "stage": found.stage,
                "elements": found.accumulator.size,
                "recorded": found.recorded,
                "coverage": dict(found.coverage),
            }
        )
    else:
        say(verilog_report(found, paths))
    return Exit.SAME
