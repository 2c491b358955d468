"""`tflq quantize`: from a float model and calibration data to a verified integer model."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import click

from tflq.errors import OptionError, TflqError
from tflq.face.cli.exits import Exit, exit_of_check, gravest
from tflq.face.cli.files import check_files, write_overlay, write_page
from tflq.face.cli.options import from_stdin
from tflq.face.cli.output import is_quiet, say, say_document, say_error, say_text
from tflq.face.cli.quantize_options import SCREEN, quantize_options
from tflq.face.cli.screen import OneScreen
from tflq.face.cli.sources import float_subject
from tflq.face.cli.weights import quantize_weights_of

#: Parameters that do not apply to decoders.
_NOT_OF_DECODERS = (
    "input_type",
    "output_type",
    "budget",
    "runtimes",
    "portable",
    "portable_until",
    "drop_softmax",
    "float_tail",
    "split_outputs",
    "eight_bits",
    "refine_trained",
    "norms",
    "sensitivity",
    "advise",
    "evaluate",
    "labels",
    "scaling",
    "bgr",
    "overlay",
    "keep_best",
    "resume",
    "requantize",
    "jobs",
)


@click.command("quantize", cls=OneScreen, screen=SCREEN)
@click.argument("model", required=False, type=click.Path(), callback=from_stdin)
@quantize_options
def quantize_command(
    model: str | None,
    calibration: str | None,
    output: str | None,
    force: bool,
    print_recipe: bool,
    tokenizer: str | None,
    python: str | None,
    html: str | None,
    overlay: str | None,
    resume: bool,
    advise: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Quantize float MODEL with the best configuration on held-back calibration samples, and verify it.

    MODEL is a .tflite file; a Keras file or SavedModel is converted first by TensorFlow, an ONNX file by onnx2tf. Of a
    decoder the weights are quantized, for all signatures at once; --calibration is then a text, or token ids.

    The file is written even if the verification fails. Exit code 0: LiteRT gives the same bits, or is not installed;
    5: the same bits except in float operators that are as close as promised; 1: other bits; 3: not everything could be
    compared, or more than a final SOFTMAX is not portable; 4: LiteRT refuses the model.

    \b
    tflq quantize float.tflite --calibration samples.npz -o int8.tflite
    tflq quantize float.tflite --calibration photos/ --std 255 -o int8.tflite
    tflq quantize float.tflite --calibration samples.npz -o int8.tflite \\
        --runtimes litert-xnnpack,tflm
    tflq quantize model.onnx --calibration samples.npz -o int8.tflite
    tflq quantize float.tflite --calibration samples.npz --portable -o int8.tflite
    tflq quantize decoder.tflite --mode mixed -o mixed.tflite \\
        --calibration book.txt --tokenizer tokenizer.json
    """
    from tflq.engine.api.subject import store
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.quantize.report import quantize_report
    from tflq.face.report.verbs.quantize.texts import Making
    from tflq.model.ir.signatures import is_plain
    from tflq.quantization.streams import integer_stream
    from tflq.verbs.quantize import Files, RecipeWords, quantize_files, recipe_of, weight_recipe_of

    words = RecipeWords(**{field.name: options.pop(field.name) for field in fields(RecipeWords)})
    if print_recipe:
        return _print_recipe(model, words, python, as_json=as_json)
    model, calibration, output = (
        _require(model, "model"),
        _require(calibration, "calibration"),
        _require(output, "output"),
    )
    evaluate, labels, scaling, bgr = (options.pop(name) for name in ("evaluate", "labels", "scaling", "bgr"))
    check_files([output, html, overlay], [model, calibration, words.recipe, evaluate, labels, tokenizer], force=force)
    if not words.is_for_decoders:
        recipe_of(words)  # words are refused before a model is converted
    source = float_subject(model, python)
    is_stream = not words.is_for_decoders and options["requantize"] is None
    stream = integer_stream(source.model, recipe_of(words)) if is_stream else None
    if stream is None and not is_plain(source.model):
        _refuse_for_decoders()
        recipe = weight_recipe_of(words)
        return quantize_weights_of(source, calibration, output, recipe, tokenizer, html, as_json=as_json)
    if tokenizer is not None:
        raise OptionError("--tokenizer is for decoders; this model has one signature")
    chosen = recipe_of(words)
    files = Files(calibration=calibration, evaluate=evaluate, labels=labels, scaling=scaling, bgr=bgr)
    journal = f"{output}.journal" if resume else None
    options["requantize"] = options["requantize"] is not None
    with progress_bar(lines=True, quiet=is_quiet()) as progress, _journal_reported(journal):
        result, advice = quantize_files(source.model, files, chosen, progress, resume=journal, advice=advise, **options)
    making = Making(source.facts, store(result.model, output), calibration, scaling, result, bgr, advice)
    if html is not None:
        write_page(html, quantize_report(making), source.model if stream is None else stream.step)
    if overlay is not None:
        from tflq.face.report.verbs.quantize.figures import quantize_colourings

        colourings = quantize_colourings(result.report)
        write_overlay(overlay, colourings[-1:] if options["sensitivity"] else colourings)
    if as_json:
        from tflq.face.report.verbs.quantize.document import quantize_document

        say_document(quantize_document(making))
    else:
        say(quantize_report(making))
    check, outcome = result.report.check, result.report.portable
    code = exit_of_check(None if check.report is None else check.report.verdict.value, check.error)
    return gravest([code, Exit.UNSUPPORTED if outcome is not None and outcome.left else Exit.SAME])


def _print_recipe(model: str | None, words: Any, python: str | None, *, as_json: bool) -> int:
    """Print the recipe of the options; without a model, options for decoders decide which kind it is."""
    from tflq.model.ir.signatures import is_plain
    from tflq.verbs.quantize import recipe_document_of, recipe_of, recipe_text_of, weight_recipe_of

    has_one = not words.is_for_decoders if model is None else is_plain(float_subject(model, python).model)
    if not has_one:
        _refuse_for_decoders()
    recipe = recipe_of(words) if has_one else weight_recipe_of(words)
    if as_json:
        say_document(recipe_document_of(recipe))
    else:
        say_text(recipe_text_of(recipe))
    return Exit.SAME


def _require(value: str | None, name: str) -> str:
    """Return the value of a parameter that only --print-recipe does without."""
    if value is None:
        context = click.get_current_context()
        parameter = next(p for p in context.command.params if p.name == name)
        raise click.MissingParameter(ctx=context, param=parameter)
    return value


def _refuse_for_decoders() -> None:
    """Refuse options that do not apply to a model of several signatures."""
    given: Mapping[str, Any] = click.get_current_context().params
    for name in _NOT_OF_DECODERS:
        words = ("mean", "std") if name == "scaling" else (name,)
        if any(given.get(word) not in (None, False) for word in words):
            option = "--mean or --std" if name == "scaling" else f"--{name.replace('_', '-')}"
            raise OptionError(f"{option} does not apply to a model of several signatures: its activations stay float")


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
