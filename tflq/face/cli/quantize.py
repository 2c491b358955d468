"""`tflq quantize`: from a float model and calibration data to a verified integer model."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tflq.errors import InputWarning, OptionError, TflqError
from tflq.face.cli.exits import Exit, exit_of_check, gravest
from tflq.face.cli.files import check_files, force_option, write_overlay, write_page
from tflq.face.cli.options import (
    html_option,
    json_option,
    limit_options,
    model_argument,
    overlay_option,
    python_option,
    scaling_options,
)
from tflq.face.cli.output import is_quiet, say, say_document, say_error
from tflq.face.cli.sources import float_subject
from tflq.face.cli.weights import Choice, quantize_weights_of
from tflq.statements import Statement


@click.command("quantize")
@model_argument
@click.option(
    "--calibration",
    required=True,
    metavar="PATH",
    type=click.Path(),
    help="Typical inputs: an .npz, .npy or folder of arrays or images.",
)
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(), help="The model to write.")
@force_option
@click.option(
    "--recipe", default="balanced", show_default=True, metavar="NAME|FILE", help="fast, balanced, best or a file."
)
@click.option(
    "--mode",
    metavar="MODE",
    help="int8, int8x4, int16x8, uint8, dynamic, dynamicx4 or weights; for decoders dynamic, dynamicx4 or mixed. "
    "[default: the recipe's; dynamic for decoders]",
)
@click.option(
    "--weights",
    type=click.Choice(["int4", "int8"]),
    help="Weights of modes int8 and dynamic; int4 is the same as --mode int8x4 or dynamicx4. [default: int8]",
)
@click.option(
    "--input-type",
    metavar="TYPE",
    help="Element type of the inputs, e.g. float32. [default: the recipe's, else the mode's]",
)
@click.option(
    "--output-type", metavar="TYPE", help="Element type of the outputs. [default: the recipe's, else the mode's]"
)
@click.option(
    "--keep-float",
    multiple=True,
    metavar="OP",
    help="Leave operators in float: an index, tensor name, type or FIRST..LAST; repeatable.",
)
@click.option("--block", type=click.Choice(["0", "32", "64", "128", "256"]), help="Decoders: int4 that share a scale.")
@click.option(
    "--layer",
    "layers",
    multiple=True,
    metavar="MATCH=TYPE",
    help="Decoders: the form of some weights, by role (attention, feed-forward, embedding, output) or name, as in "
    "attention=int8 or feed-forward=int4:32; repeatable.",
)
@click.option(
    "--tokenizer", metavar="FILE", type=click.Path(), help="Decoders: turns a text for --calibration into tokens."
)
@click.option("--no-constant-names", is_flag=True, help="Leave out names of weights and biases: a smaller file.")
@click.option(
    "--budget",
    metavar="BOUNDS",
    help="Make the most sensitive operators less coarse: sqnr>=DB, agreement>=SHARE, bytes<=N, share<=SHARE of the "
    "multiply-accumulates, spared=int16x8, int8 or float; several with commas.",
)
@click.option(
    "--runtimes",
    "--profile",
    "runtimes",
    metavar="PROFILES",
    help="Runtimes that the file is for, with commas: candidates are judged on all, refined on the first. "
    "[default: the recipe's]",
)
@click.option(
    "--portable",
    is_flag=False,
    flag_value="all",
    metavar="[PROFILES]",
    help="Build a model with the same bits, for every input, on these runtimes (names or profile files, with commas), "
    "and prove it; without names, on all that tflq knows. [default: the recipe's]",
)
@click.option(
    "--portable-until", metavar="TENSOR", help="With --portable: only as far as this tensor; the rest as usual."
)
@click.option("--drop-softmax", is_flag=True, help="With --portable: outputs that SOFTMAX makes become logits.")
@click.option(
    "--float-tail",
    metavar="auto|none|OP",
    help="Outputs of several parts, such as boxes and scores: leave all from this operator on in float; auto finds the "
    "cheapest that wins back what one scale loses. [default: the recipe's, auto]",
)
@click.option("--split-outputs", is_flag=True, help="Make the parts of joint outputs outputs of their own.")
@click.option("--sensitivity", is_flag=True, help="Also measure the cost of quantizing each operator alone.")
@click.option(
    "--evaluate",
    metavar="PATH",
    type=click.Path(),
    help="Samples to which nothing is fitted; the result is compared with the float model on them.",
)
@click.option(
    "--labels",
    metavar="PATH",
    type=click.Path(),
    help="What is right for each sample of --evaluate, or else of --calibration: classes, boxes, masks or pictures, as "
    "compare takes them.",
)
@scaling_options
@python_option
@html_option
@overlay_option
@limit_options
@click.option("--keep-best", is_flag=True, help="On Ctrl-C write the best model so far instead of none.")
@click.option(
    "--resume",
    is_flag=True,
    help="Log finished work in FILE.journal, and continue from there if the same run was interrupted before.",
)
@click.option(
    "--requantize",
    type=click.Choice(["bias"]),
    help="MODEL is integer: improve its biases, and keep everything else unchanged.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Number of worker processes; by default one per processor. Does not change the file.",
)
@json_option
def quantize_command(
    model: str,
    calibration: str,
    output: str,
    force: bool,
    recipe: str,
    mode: str | None,
    weights: str | None,
    input_type: str | None,
    output_type: str | None,
    keep_float: tuple[str, ...],
    block: str | None,
    layers: tuple[str, ...],
    tokenizer: str | None,
    no_constant_names: bool,
    budget: str | None,
    runtimes: str | None,
    portable: str | None,
    portable_until: str | None,
    drop_softmax: bool,
    float_tail: str | None,
    split_outputs: bool,
    sensitivity: bool,
    evaluate: str | None,
    labels: str | None,
    scaling: Any,
    bgr: bool,
    python: str | None,
    html: str | None,
    overlay: str | None,
    keep_best: bool,
    resume: bool,
    requantize: str | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Quantize float MODEL with the best configuration on held-back calibration samples, and verify it.

    MODEL is a .tflite file; a Keras file or SavedModel is converted first, by TensorFlow. Of a decoder the weights are
    quantized, for all signatures at once; --calibration is then a text, or token ids.

    The file is written even if the verification fails. Exit code 0: LiteRT gives the same bits, or is not installed;
    5: the same bits except in float operators that are as close as promised; 1: other bits; 3: not everything could be
    compared, or more than a final SOFTMAX is not portable; 4: LiteRT refuses the model.

    \b
    tflq quantize float.tflite --calibration samples.npz -o int8.tflite
    tflq quantize float.tflite --calibration photos/ --std 255 -o int8.tflite
    tflq quantize float.tflite --calibration samples.npz -o int8.tflite \\
        --runtimes litert-xnnpack,tflm
    tflq quantize float.tflite --calibration samples.npz --portable -o int8.tflite
    tflq quantize decoder.tflite --mode mixed -o mixed.tflite \\
        --calibration book.txt --tokenizer tokenizer.json
    """
    from tflq.engine.api.subject import stored
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.quantize.report import quantize_report
    from tflq.face.report.verbs.quantize.texts import Making
    from tflq.model.ir.signatures import is_plain
    from tflq.quantization.calibration import Calibration
    from tflq.quantization.judge.truths import labels_of_files
    from tflq.quantization.pipeline import quantize
    from tflq.quantization.processes import available
    from tflq.quantization.recipe.files import changed_recipe, read_recipe

    check_files([output, html, overlay], [model, calibration, recipe, evaluate, labels, tokenizer], force=force)
    journal = f"{output}.journal" if resume else None
    source = float_subject(model, python)
    if not is_plain(source.model):
        others = {
            "--input-type": input_type,
            "--output-type": output_type,
            "--budget": budget,
            "--runtimes": runtimes,
            "--portable": portable,
            "--portable-until": portable_until,
            "--drop-softmax": drop_softmax,
            "--float-tail": float_tail,
            "--split-outputs": split_outputs,
            "--sensitivity": sensitivity,
            "--evaluate": evaluate,
            "--labels": labels,
            "--mean or --std": scaling,
            "--bgr": bgr,
            "--overlay": overlay,
            "--keep-best": keep_best,
            "--resume": resume,
            "--requantize": requantize,
            "--jobs": jobs,
        }
        mode = _mode(mode or "dynamic", weights) if weights else mode
        size = None if block is None else int(block)
        names = not no_constant_names
        choice = Choice(
            model, calibration, output, recipe, mode, size, layers, keep_float, tokenizer, names, html, as_json, others
        )
        return quantize_weights_of(source, choice)
    only = next(
        (name for name, given in (("--block", block), ("--layer", layers), ("--tokenizer", tokenizer)) if given), None
    )
    if only is not None:
        raise OptionError(f"{only} is for decoders; this model has one signature")
    mode = _mode(mode, weights)
    words = {"mode": mode, "input_type": input_type, "output_type": output_type}
    chosen = changed_recipe(read_recipe(recipe), keep_float, budget, words, runtimes, portable)
    if no_constant_names:
        chosen = replace(chosen, constant_names=False)
    if portable_until or drop_softmax:
        chosen = replace(chosen, portable_until=portable_until or "", drop_softmax=drop_softmax)
    if float_tail is not None:
        chosen = replace(chosen, float_tail=float_tail)
    if split_outputs:
        chosen = replace(chosen, split_outputs=True)
    with progress_bar(lines=True, quiet=is_quiet()) as progress, _journal_reported(journal):
        samples = Calibration(source.model, calibration, scaling, bgr=bgr)
        known = labels_of_files(labels, calibration if evaluate is None else evaluate, source.model)
        kept_back = None if evaluate is None else Calibration(source.model, evaluate, scaling, bgr=bgr)
        if scaling is None:
            _warn_of_plain_images(calibration)
        result = quantize(
            source.model,
            samples,
            chosen,
            progress,
            sensitivity=sensitivity,
            keep_best=keep_best,
            jobs=available() if jobs is None else jobs,
            requantize=requantize is not None,
            labels=known,
            resume=journal,
            evaluation=kept_back,
        )
    making = Making(source.facts, stored(result.model, output), calibration, scaling, result, bgr)
    if html is not None:
        write_page(html, quantize_report(making), source.model)
    if overlay is not None:
        from tflq.face.report.verbs.quantize.figures import quantize_colourings

        colourings = quantize_colourings(result.report)
        write_overlay(overlay, colourings[-1:] if sensitivity else colourings)
    if as_json:
        from tflq.face.report.verbs.quantize.document import quantize_document

        say_document(quantize_document(making))
    else:
        say(quantize_report(making))
    check, outcome = result.report.check, result.report.portable
    code = exit_of_check(None if check.report is None else check.report.verdict.value, check.error)
    return gravest([code, Exit.UNSUPPORTED if outcome is not None and outcome.left else Exit.SAME])


@contextmanager
def _journal_reported(journal: str | None) -> Iterator[None]:
    """Report, at the exit from an unfinished run, where it can continue."""
    try:
        yield
    finally:
        if journal is not None and os.path.exists(journal) and not isinstance(sys.exc_info()[1], TflqError):
            size = os.path.getsize(journal)
            say_error(
                f"tflq: {journal} ({size:,} bytes) holds the finished work; the same command continues from there"
            )


def _mode(mode: str | None, weights: str | None) -> str | None:
    """Return the mode for --mode and --weights."""
    if weights is None:
        return mode
    kinds = {"int8": "int8x4", "int8x4": "int8x4", "dynamic": "dynamicx4", "dynamicx4": "dynamicx4"}
    narrow = kinds.get(mode or "int8")
    if narrow is None:
        raise click.BadParameter(f"applies to modes int8 and dynamic, not to {mode}", param_hint="--weights")
    return narrow if weights == "int4" else narrow.removesuffix("x4")


def _warn_of_plain_images(calibration: str) -> None:
    """Warn that images enter as numbers 0 to 255: most models are trained on scaled ones."""
    from tflq.comparison.verification.preparation import image_paths

    if image_paths(Path(calibration)):
        text = "images enter as 0 to 255, which few models take: give the --mean and --std of the training"
        examples = "--std 255 for 0 to 1, --mean 127.5 --std 127.5 for -1 to 1, --std 1 if 0 to 255 is right"
        stated = Statement(f"{text} ({examples})", "plain-images", name=calibration)
        warnings.warn(InputWarning(stated), stacklevel=2)
