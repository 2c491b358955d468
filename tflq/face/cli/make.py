"""`tflq quantize` and `compare`: make a model and judge it.

The options of `tflq quantize`: those of one screen, and those that a recipe file holds, too.

`tflq quantize` for decoders: their weights, for all signatures at once.

`tflq quantize`: from a float model and calibration data to a verified integer model.

`tflq compare`: how close a quantized model of any tool is to its float model.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tflq.errors import OptionError, TflqError
from tflq.face.cli.answer import (
    Delivery,
    Exit,
    drawing_options,
    exit_of_check,
    gravest,
    is_quiet,
    say_document,
    say_error,
    say_text,
)
from tflq.face.cli.many import each_model, only_of_one
from tflq.face.cli.options import (
    OneScreen,
    float_subject,
    from_stdin,
    limit_options,
    python_option,
    scaling_options,
    signature_option,
)

if TYPE_CHECKING:
    from tflq.engine.api.files import Subject
    from tflq.face.report.several import SummaryRow
    from tflq.quantization.weights.recipe import WeightRecipe

F = TypeVar("F", bound=Callable[..., Any])

#: The options that --help shows, with brief texts; nothing: the text of --help-all.
SCREEN = {
    "calibration": "Typical inputs: .npz, .npy, a folder of arrays or images.",
    "output": "",
    "force": "",
    "recipe": "fast, balanced (the default), best or a file.",
    "mode": "int8 (default), int8x4, int16x8, uint8, dynamic, weights, float16.",
    "mean": "Subtract these from stored numbers, e.g. 127.5.",
    "std": "Then divide by these: one number, or one per channel.",
    "runtimes": "Runtimes that the file is for, with commas.",
    "budget": "Spare sensitive operators: agreement>=0.99,bytes<=N ...",
    "evaluate": "Samples to which nothing is fitted, to compare on.",
    "labels": "What is right for them: classes, boxes, masks, pictures.",
    "advise": "Try options that win losses back, and judge the samples.",
    "print_recipe": "Print the recipe of these options, and run nothing.",
    "html": "Also write an HTML page.",
    "as_json": "Print a JSON document.",
    "quiet": "Print only the verdict, and no progress.",
    "help_all": "Show the other options; a recipe file holds most of them.",
}
#: All options, in the order of --help-all.
_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--calibration",
        metavar="PATH",
        type=click.Path(),
        help="Typical inputs: an .npz, .npy or folder of arrays or images.",
    ),
    click.option("-o", "--output", metavar="FILE", type=click.Path(), help="The model to write."),
    click.option(
        "--recipe", default="balanced", show_default=True, metavar="NAME|FILE", help="fast, balanced, best or a file."
    ),
    click.option(
        "--mode",
        metavar="MODE",
        help="int8, int8x4, int16x8, uint8, dynamic, dynamicx4, weights or float16; for decoders "
        "dynamic, dynamicx4 or mixed. [default: the recipe's; dynamic for decoders]",
    ),
    click.option(
        "--weights",
        type=click.Choice(["int4", "int8"]),
        help="Weights of modes int8 and dynamic; int4 is the same as --mode int8x4 or dynamicx4. [default: int8]",
    ),
    click.option(
        "--input-type",
        metavar="TYPE",
        help="Element type of the inputs, e.g. float32. [default: the recipe's, else the mode's]",
    ),
    click.option(
        "--output-type", metavar="TYPE", help="Element type of the outputs. [default: the recipe's, else the mode's]"
    ),
    click.option(
        "--keep-float",
        multiple=True,
        metavar="OP",
        help="Leave operators in float: an index, tensor name, type or FIRST..LAST; repeatable.",
    ),
    click.option(
        "--block", type=click.Choice(["0", "32", "64", "128", "256"]), help="Decoders: int4 that share a scale."
    ),
    click.option(
        "--layer",
        "layers",
        multiple=True,
        metavar="MATCH=TYPE",
        help="Decoders: the form of some weights, by role (attention, feed-forward, embedding, output) or name, as in "
        "attention=int8 or feed-forward=int4:32; repeatable.",
    ),
    click.option(
        "--tokenizer", metavar="FILE", type=click.Path(), help="Decoders: turns a text for --calibration into tokens."
    ),
    click.option("--no-constant-names", is_flag=True, help="Leave out names of weights and biases: a smaller file."),
    click.option(
        "--budget",
        metavar="BOUNDS",
        help="Make the most sensitive operators less coarse: sqnr>=DB, agreement>=SHARE, bytes<=N, share<=SHARE of the "
        "multiply-accumulates, spared=int16x8, int8 or float; several with commas.",
    ),
    click.option(
        "--runtimes",
        metavar="PROFILES",
        help="Runtimes that the file is for, with commas: candidates are judged on all, refined on the first. "
        "[default: the recipe's]",
    ),
    click.option(
        "--portable",
        is_flag=False,
        flag_value="all",
        metavar="[PROFILES]",
        help="Build a model with the same bits, for every input, on these runtimes (names or profile files, with "
        "commas), and prove it; without names, on all that tflq knows. [default: the recipe's]",
    ),
    click.option(
        "--portable-until", metavar="TENSOR", help="With --portable: only as far as this tensor; the rest as usual."
    ),
    click.option("--drop-softmax", is_flag=True, help="With --portable: outputs that SOFTMAX makes become logits."),
    click.option(
        "--float-tail",
        metavar="auto|none|OP",
        help="Outputs of several parts, such as boxes and scores: leave all from this operator on in float; auto finds "
        "the cheapest that wins back what one scale loses. [default: the recipe's, auto]",
    ),
    click.option("--split-outputs", is_flag=True, help="Make the parts of joint outputs outputs of their own."),
    click.option(
        "--eight-bits",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="With int4 weights: this share of the bytes that they save goes to operators that lose most, which keep "
        "eight bits; 0 for four bits alone. [default: the recipe's, 0.2 or 0.5]",
    ),
    click.option(
        "--refine-trained",
        is_flag=True,
        help="Round weights again that training with rounding has rounded; they keep its codes otherwise.",
    ),
    click.option(
        "--norms",
        type=click.Choice(("auto", "int8", "int16", "float")),
        help="Layer norms and sums around them, in modes int8 and int8x4: auto gives them 16 bits if that reduces the "
        "loss by a fifth; float is the fastest on CPUs. [default: the recipe's, auto]",
    ),
    click.option("--sensitivity", is_flag=True, help="Also measure the cost of quantizing each operator alone."),
    click.option(
        "--evaluate",
        metavar="PATH",
        type=click.Path(),
        help="Samples to which nothing is fitted; the result is compared with the float model on them.",
    ),
    click.option(
        "--labels",
        metavar="PATH",
        type=click.Path(),
        help="What is right for each sample of --evaluate, or else of --calibration: classes, boxes, masks or "
        "pictures, as compare takes them.",
    ),
    scaling_options,
    python_option,
    limit_options,
    click.option("--keep-best", is_flag=True, help="On Ctrl-C write the best model so far instead of none."),
    click.option(
        "--resume",
        is_flag=True,
        help="Log finished work in FILE.journal, and continue from there if the same run was interrupted before.",
    ),
    click.option(
        "--requantize",
        type=click.Choice(["bias"]),
        help="MODEL is integer: improve its biases, and keep everything else unchanged.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1),
        help="Number of worker processes; by default one per processor. Does not change the file.",
    ),
    click.option(
        "--advise",
        is_flag=True,
        help="Also judge the calibration data, and try a handful of options that may win losses back, each with its "
        "figures and its price.",
    ),
    click.option(
        "--print-recipe", is_flag=True, help="Print the recipe that the options amount to, as --recipe FILE reads it."
    ),
    drawing_options,
)


def quantize_options(function: F) -> F:
    """Add all options."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def quantize_weights_of(
    source: Subject, calibration: str, output: str, recipe: WeightRecipe, tokenizer: str | None, out: Delivery
) -> int:
    """Quantize the weights of a model of several signatures, write it and report."""
    from tflq.comparison.sessions.text import tokenizer_of
    from tflq.engine.api.files import store
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.quantize import weights_document, weights_report
    from tflq.quantization.weights.quantizing import quantize_weights

    words = tokenizer_of(tokenizer, source.facts.path)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        result = quantize_weights(source.model, calibration, recipe, progress, tokenizer=words)
    written = store(result.model, output)
    shown, check = weights_report(source.facts, written, calibration, result.report), result.report.check
    code = exit_of_check(None if check.report is None else check.report.verdict.value, check.error)
    return out.give(code, shown, lambda: weights_document(source.facts, written, calibration, result.report))


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
    print_recipe: bool,
    tokenizer: str | None,
    python: str | None,
    resume: bool,
    advise: bool,
    out: Delivery,
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
    from tflq.engine.api.files import store
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.quantize import quantize_colourings, quantize_document, quantize_report
    from tflq.face.report.verbs.quantize_texts import Making
    from tflq.model.ir.signatures import is_plain
    from tflq.quantization.advice import to_try
    from tflq.quantization.streams import integer_stream
    from tflq.verbs.quantize import Files, RecipeWords, quantize_files, recipe_of, weight_recipe_of

    words = RecipeWords(**{field.name: options.pop(field.name) for field in fields(RecipeWords)})
    if print_recipe:
        return _print_recipe(model, words, python, as_json=out.as_json)
    model, calibration, output = (
        _require(model, "model"),
        _require(calibration, "calibration"),
        _require(output, "output"),
    )
    evaluate, labels, scaling, bgr = (options.pop(name) for name in ("evaluate", "labels", "scaling", "bgr"))
    out.check(output)
    if not words.is_for_decoders:
        recipe_of(words)  # words are refused before a model is converted
    source = float_subject(model, python)
    is_stream = not words.is_for_decoders and options["requantize"] is None
    stream = integer_stream(source.model, recipe_of(words)) if is_stream else None
    if stream is None and not is_plain(source.model):
        _refuse_for_decoders()
        recipe = weight_recipe_of(words)
        return quantize_weights_of(source, calibration, output, recipe, tokenizer, out)
    if tokenizer is not None:
        raise OptionError("--tokenizer is for decoders; this model has one signature")
    chosen = recipe_of(words)
    files = Files(calibration=calibration, evaluate=evaluate, labels=labels, scaling=scaling, bgr=bgr)
    journal = f"{output}.journal" if resume else None
    options["requantize"] = options["requantize"] is not None
    with progress_bar(lines=True, quiet=is_quiet()) as progress, _journal_reported(journal):
        result, advice = quantize_files(source.model, files, chosen, progress, resume=journal, advice=advise, **options)
    untried: tuple[tuple[str, ...], ...] = ()
    if not options["requantize"] and not result.report.interrupted:
        trials = to_try(source.model, chosen, result, is_evaluated=evaluate is not None)
        untried = tuple(option for option, _ in trials)
    making = Making(source.facts, store(result.model, output), calibration, scaling, result, bgr, advice, untried)
    check, outcome = result.report.check, result.report.portable
    code = exit_of_check(None if check.report is None else check.report.verdict.value, check.error)
    return out.give(
        gravest([code, Exit.UNSUPPORTED if outcome is not None and outcome.left else Exit.SAME]),
        quantize_report(making),
        lambda: quantize_document(making),
        (source.model if stream is None else stream.step,),
        lambda: quantize_colourings(result.report)[-1 if options["sensitivity"] else 0 :],
    )


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
@limit_options
@drawing_options
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
    out: Delivery,
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
    from tflq.engine.api.files import subject
    from tflq.face.report.verbs.compare import compare_document, compare_report, fidelity_colourings
    from tflq.face.report.verbs.compare_texts import SUMMARY_COLUMNS, summary_cells
    from tflq.model.ir import only_signed
    from tflq.quantization.judge.outputs import labels_of_files
    from tflq.quantization.samples import Calibration
    from tflq.verbs.compare import compare

    only_of_one(
        others, (("--html", out.html), ("--overlay", out.overlay), ("--all", all_tensors), ("--runtimes", runtimes))
    )
    out.check()
    first = float_subject(reference, python)
    drawn = only_signed(first.model, signature).model
    samples = Calibration(drawn, data, scaling, bgr=bgr)
    known = labels_of_files(labels, data, drawn)
    if len(others) > 1:
        from tflq.face.report.several import SummaryRow

        def row(path: str) -> SummaryRow:
            second = subject(path)
            found = compare(first.model, second.model, samples, known, signature)
            document = compare_document(found, first.facts, second.facts)
            return SummaryRow("compared", summary_cells(second.facts, found), document, Exit.SAME)

        return each_model("compare", others, SUMMARY_COLUMNS, row, as_json=out.as_json)
    other = others[0]
    second = subject(other)
    profiles = () if runtimes is None else [name.strip() for name in runtimes.split(",")]
    comparison = compare(first.model, second.model, samples, known, signature, profiles)
    shown = compare_report(first.facts, second.facts, comparison, all_tensors=all_tensors)
    return out.give(
        Exit.SAME,
        shown,
        lambda: compare_document(comparison, first.facts, second.facts),
        (first.model, "litert-ref", signature),
        lambda: fidelity_colourings(comparison),
    )
