"""The options of `tflq quantize`: those of one screen, and those that a recipe file holds, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tflq.face.cli.files import force_option
from tflq.face.cli.inputs import scaling_options
from tflq.face.cli.options import html_option, json_option, limit_options, overlay_option, python_option

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
    force_option,
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
    html_option,
    overlay_option,
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
    json_option,
)


def quantize_options(function: F) -> F:
    """Add all options."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
