"""`tflq run`: compute a model's outputs under a profile. No runtime takes part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, read_words, write_arrays, write_page
from tflq.face.cli.inputs import named_input_options, preparation_options
from tflq.face.cli.options import html_option, json_option, limit_options, profile_option, signature_option
from tflq.face.cli.output import say, say_document
from tflq.face.cli.several import Found, each_model, fill, models_argument, only_of_one

if TYPE_CHECKING:
    from tflq.verbs.run import Ran


@click.command("run")
@models_argument
@named_input_options
@signature_option
@preparation_options
@click.option(
    "--labels",
    metavar="FILE",
    type=click.Path(),
    help="Names of the classes, one per line; the 5 likeliest are listed.",
)
@click.option(
    "-o", "--output", metavar="OUT.npz", type=click.Path(), help="Where to write the outputs; - for standard output."
)
@click.option("--all-tensors", is_flag=True, help="Also write every tensor, as t<index>.")
@html_option
@force_option
@profile_option
@limit_options
@json_option
def run_command(
    models: tuple[str, ...], output: str | None, html: str | None, force: bool, as_json: bool, **options: Any
) -> int:
    """Run MODEL and write its outputs, named as in the model, to an .npz file.

    With several samples, names begin with s<k>_. For images, or with --labels, the 5 likeliest classes are listed.
    Of a model with several signatures, every one runs, and its outputs are named as in decode/logits. Several models
    get a row each; --output then names a file for each by {stem} or {folder}.

    \b
    tflq run model.tflite
    tflq run model.tflite --inputs x=x.npy -o out.npz
    tflq run model.tflite --profile tflm --inputs samples.npz -o out.npz
    tflq run model.tflite --inputs cat.jpg --std 255 --labels labels.txt
    tflq run decoder.tflite --signature decode --inputs decode.npz
    tflq run models/*.tflite -o 'out/{stem}.npz'
    """
    from tflq.errors import OptionError
    from tflq.face.report.verbs.run import run_document, run_report

    files, inputs = options["files"], options["inputs"]
    to_stdout = output == "-"
    only_of_one(models, (("--html", html), ("--output -", to_stdout), ("--inputs NAME=FILE", files or None)))
    outputs = [None if output is None or to_stdout else fill(output, model) for model in models]
    if output is not None and len(set(outputs)) < len(models):
        raise OptionError("--output names one file for several models; write {stem} or {folder} in it", got=output)
    check_files([*outputs, html], [*models, inputs, *(word.rpartition("=")[2] for word in files)], force=force)
    if len(models) > 1:
        paths = dict(zip(models, outputs, strict=True))
        return each_model("run", models, _COLUMNS, lambda model: _row(model, paths[model], options), as_json=as_json)
    ran = _run(models[0], options, drawn=html is not None)
    written = outputs[0] or ""
    if html is not None:
        write_page(html, run_report(ran, written), models[0], options["profile"], options["signature"])
    if output:
        write_arrays(output if to_stdout else written, ran.arrays)
    if as_json and not to_stdout:
        say_document(run_document(ran, written))
    elif not to_stdout:
        say(run_report(ran, written))
    return Exit.SAME


#: Columns of the summary of several models.
_COLUMNS = (("samples", ">"), ("outputs", ">"), ("promise", "<"), ("written to", "<"))


def _row(model: str, output: str | None, options: Mapping[str, Any]) -> Found:
    from tflq.face.report.verbs.run import run_document

    ran = _run(model, options, drawn=False)
    if output:
        write_arrays(output, ran.arrays)
    samples = ran.inputs.samples
    words = ", ".join(dict.fromkeys(promise.word for promise in ran.promises.values()))
    cells = (str(samples), str(len(ran.arrays) // max(samples, 1)), words, output or "")
    return "done", cells, run_document(ran, output or ""), Exit.SAME


def _run(model: str, options: Mapping[str, Any], *, drawn: bool) -> Ran:
    from tflq.verbs.run import run

    labels = options["labels"]
    kept = ("files", "samples", "seed", "signature", "mean", "std", "quantize_inputs", "bgr", "all_tensors")
    return run(
        model,
        options["inputs"],
        options["profile"],
        labels=None if labels is None else read_words(labels),
        keep_values=drawn,
        **{name: options[name] for name in kept},
    )
