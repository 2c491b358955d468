"""`tflq golden export`: goldens as source code."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_text
from tflq.face.cli.inputs import samples_option
from tflq.face.cli.options import json_option
from tflq.face.cli.output import say, say_document


@click.command("export")
@click.argument("golden")
@click.option("-o", "--output", default=".", show_default=True, metavar="FOLDER", help="The folder of the two files.")
@click.option("--name", metavar="NAME", help="Prefix of names in the files. [default: the golden's]")
@click.option("--model", metavar="MODEL", type=click.Path(), help="Also put this model's file into the header.")
@samples_option
@click.option("--checksums", is_flag=True, help="Expect outputs by CRC-32, for small self-tests.")
@force_option
@json_option
def export_command(
    golden: str,
    output: str,
    name: str | None,
    model: str | None,
    samples: slice | None,
    checksums: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Write GOLDEN as C99: NAME.h with inputs and expected outputs; NAME_test.c, which compares a firmware with them.

    The firmware provides NAME_invoke. The test needs only the C library, and returns the number of differing outputs.

    \b
    tflq golden export golden.zip -o firmware/tests --name person
    """
    from tflq.comparison.verification.goldens import load_golden, require_model
    from tflq.errors import FileAccessError, GoldenError
    from tflq.face.report.verbs.export.c import c_name, export_c
    from tflq.face.report.verbs.export.report import export_report

    called = c_name(name or Path(golden.rstrip("/")).stem)
    paths = [os.path.join(output, f"{called}{end}") for end in (".h", "_test.c")]
    recording = load_golden(golden)
    data = None
    if model is not None:
        from tflq.engine.api.subject import subject

        target = subject(model)
        require_model(golden, recording.model_sha256, target.facts.sha256)
        data = target.data
    if any(signature is not None or continues for signature, continues in recording.steps):
        raise GoldenError(f"{golden}: holds steps of signatures; export c takes samples of a model without them")
    if not os.path.lexists(output) or output.endswith(("/", os.sep)):
        try:
            os.makedirs(output, exist_ok=True)
        except OSError as error:
            raise FileAccessError(output, error.strerror or str(error)) from error
    check_files(paths, [golden, model], force=force)
    chosen = recording.chosen(range(len(recording.observations))[samples or slice(None)])
    exported = export_c(chosen, called, data, checksums=checksums)
    for path, text in zip(paths, (exported.header, exported.test), strict=True):
        write_text(path, text)
    if as_json:
        say_document({"schema": "tflq/export-c/1", "files": paths, "samples": len(chosen.observations)})
    else:
        say(export_report(paths))
    return Exit.SAME
