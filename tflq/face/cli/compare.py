"""`tflq compare`: how close a quantized model of any tool is to its float model."""

from __future__ import annotations

from typing import Any

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_overlay, write_page
from tflq.face.cli.inputs import scaling_options
from tflq.face.cli.options import (
    html_option,
    json_option,
    limit_options,
    overlay_option,
    python_option,
    signature_option,
)
from tflq.face.cli.output import say, say_document
from tflq.face.cli.several import Found, each_model, only_of_one
from tflq.face.cli.sources import float_subject


@click.command("compare")
@click.argument("reference", metavar="FLOAT", type=click.Path())
@click.argument("others", metavar="INT8...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--inputs",
    "data",
    required=True,
    metavar="PATH",
    type=click.Path(),
    help="Inputs: an .npz, .npy or folder of arrays or images.",
)
@click.option(
    "--labels",
    metavar="PATH",
    type=click.Path(),
    help="What is right for each sample: classes (.npy, .npz, text), boxes (COCO's .json, a folder of YOLO texts, an "
    ".npz with boxes and classes), masks or pictures (.npz).",
)
@click.option(
    "--runtimes",
    metavar="PROFILES",
    help="Runtimes to run INT8 on, with commas (names or profile files): a row of figures for each one's own bits. The "
    "others are compared with the first. [default: litert-ref]",
)
@signature_option
@scaling_options
@python_option
@click.option("--all", "all_tensors", is_flag=True, help="List all tensors, in order of execution.")
@html_option
@overlay_option
@force_option
@limit_options
@json_option
def compare_command(
    reference: str,
    others: tuple[str, ...],
    data: str,
    labels: str | None,
    runtimes: str | None,
    signature: str | None,
    scaling: Any,
    bgr: bool,
    python: str | None,
    all_tensors: bool,
    html: str | None,
    overlay: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Run both models on the same inputs: signal-to-noise ratio of every tensor, decisions that change.

    FLOAT and INT8 may be any two models with the same inputs and outputs, from any converter. Tensors are matched by
    name. Models with several signatures need --signature. The exit code is 0 even if the models differ. Several INT8
    models get a row each.

    \b
    tflq compare float.tflite int8.tflite --inputs samples.npz
    tflq compare float.tflite int8.tflite int16x8.tflite --inputs samples.npz
    tflq compare float.tflite int8.tflite --inputs photos/ --std 255
    tflq compare float.tflite int8.tflite --inputs samples.npz \\
        --runtimes litert-ref,litert-xnnpack,tflm-cmsis-nn
    """
    from tflq.engine.api.subject import subject
    from tflq.face.report.verbs.compare.document import compare_document
    from tflq.face.report.verbs.compare.report import compare_report
    from tflq.face.report.verbs.compare.texts import SUMMARY_COLUMNS, summary_cells
    from tflq.model.ir import only_signed
    from tflq.quantization.calibration import Calibration
    from tflq.quantization.judge.truths import labels_of_files
    from tflq.verbs.compare import compare

    only_of_one(others, (("--html", html), ("--overlay", overlay), ("--all", all_tensors), ("--runtimes", runtimes)))
    check_files([html, overlay], [reference, *others, data, labels], force=force)
    first = float_subject(reference, python)
    drawn = only_signed(first.model, signature).model
    samples = Calibration(drawn, data, scaling, bgr=bgr)
    known = labels_of_files(labels, data, drawn)
    if len(others) > 1:

        def row(path: str) -> Found:
            second = subject(path)
            found = compare(first.model, second.model, samples, known, signature)
            document = compare_document(first.facts, second.facts, found)
            return "compared", summary_cells(second.facts, found), document, Exit.SAME

        return each_model("compare", others, SUMMARY_COLUMNS, row, as_json=as_json)
    other = others[0]
    second = subject(other)
    profiles = () if runtimes is None else [name.strip() for name in runtimes.split(",")]
    comparison = compare(first.model, second.model, samples, known, signature, profiles)
    shown = compare_report(first.facts, second.facts, comparison, all_tensors=all_tensors)
    if html is not None:
        write_page(html, shown, first.model, signature=signature)
    if overlay is not None:
        from tflq.face.report.verbs.compare.figures import fidelity_colourings

        write_overlay(overlay, fidelity_colourings(comparison))
    if as_json:
        say_document(compare_document(first.facts, second.facts, comparison))
    else:
        say(shown)
    return Exit.SAME
