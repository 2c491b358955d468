"""Options about a model's inputs, and about a device's tensors."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import click

from tflq.face.cli.options import F, from_stdin, whole_number

_DUMP = "A device's tensors: an .npz (- for stdin), .npy or C file, a folder or .zip, or tflite-micro's layer by layer."
_DUMP_WORD = "tflq.dump"


def _with_dump(needed: bool) -> Callable[[F], F]:
    """Return a decorator that adds a dump: the argument after the model, or --dump."""

    def note(context: click.Context, _argument: click.Parameter, value: str | None) -> None:
        context.meta[_DUMP_WORD] = value

    def chosen(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
        word = context.meta.get(_DUMP_WORD)
        if word is not None and value is not None:
            raise click.UsageError("give the dump once: after the model, or by --dump")
        if needed and word is None and value is None:
            raise click.UsageError("Missing option '--dump'.")
        return from_stdin(context, option, value if word is None else word)

    argument = click.argument(
        "dump_word", metavar="[DUMP]", required=False, is_eager=True, expose_value=False, callback=note
    )
    option = click.option("--dump", metavar="PATH", type=click.Path(), callback=chosen, help=_DUMP)
    return lambda function: argument(option(function))


dump_option, optional_dump_option = _with_dump(needed=True), _with_dump(needed=False)
dump_inputs_option = click.option(
    "--inputs", metavar="SOURCE", callback=from_stdin, help="The model's inputs, if the dump does not hold them."
)
sample_option = click.option(
    "--sample",
    default="all",
    show_default=True,
    callback=lambda _context, _option, text: _sample(text),
    help="The number of a sample in the dump, or all.",
)


#: Options about how evidence is read; a command that reads it again needs them, too.
_READING = ("inputs", "mean", "std", "sample", "signature")


def reading_words() -> tuple[str, ...]:
    """Return the words of the running command about how its evidence is read."""
    context, words = click.get_current_context(), list[str]()
    for name in _READING:
        source, value = context.get_parameter_source(name), context.params.get(name)
        if source is click.core.ParameterSource.COMMANDLINE and value is not None:
            words += [f"--{name}", str(value)]
    return (*words, "--bgr") if context.params.get("bgr") else tuple(words)


def _sample(text: str) -> int | None:
    """Return a sample's number; None for all."""
    number = whole_number(text)
    if text != "all" and number is None:
        raise click.BadParameter(f"{text!r:.40} is neither a number nor all")
    return number


_SOURCES = "random, smooth or extremes; an .npz, .npy or raw file; an image or a folder of them; - for standard input"


def input_options(function: F) -> F:
    """Add --inputs, --samples and --seed."""
    text = f"{_SOURCES}. [default: random]"
    option = click.option("--inputs", metavar="SOURCE", help=text, callback=from_stdin)
    return option(generated_options(function))


def generated_options(function: F) -> F:
    """Add --samples and --seed of generated inputs."""
    for option in (
        click.option("--seed", default=0, show_default=True, help="Seed of generated inputs."),
        click.option("--samples", default=1, show_default=True, help="The number of inputs to generate."),
    ):
        function = option(function)
    return function


def named_input_options(function: F) -> F:
    """Add --inputs, which also takes a file for each input, --samples and --seed.

    They are passed on as `inputs`, a source or None, and `files`, words NAME=FILE.
    """

    @functools.wraps(function)
    def chosen(*words: Any, inputs: tuple[str, ...], **options: Any) -> Any:
        whole = [word for word in inputs if "=" not in word or os.path.exists(word)]
        files = tuple(word for word in inputs if word not in whole)
        if len(whole) > 1 or (whole and files):
            raise click.UsageError("give --inputs once, or once for each input as --inputs NAME=FILE")
        return function(*words, inputs=whole[0] if whole else None, files=files, **options)

    text = f"{_SOURCES}; NAME=FILE for one input, repeatable. [default: random]"
    option = click.option("--inputs", multiple=True, metavar="SOURCE", help=text, callback=_each_from_stdin)
    return option(generated_options(cast(F, chosen)))


def _each_from_stdin(context: click.Context, option: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(from_stdin(context, option, word)) for word in words)


def _bgr_option(function: F) -> F:
    """Add --bgr, which needs an image among the command's files."""

    @functools.wraps(function)
    def ordered(*words: Any, bgr: bool, **options: Any) -> Any:
        if bgr and not any(map(_is_image, options.values())):
            raise click.BadParameter("orders the channels of images, and none is given", param_hint="--bgr")
        return function(*words, bgr=bgr, **options)

    text = "Give channels of images in the order blue, green, red. --mean and --std follow that order."
    return cast(F, click.option("--bgr", is_flag=True, help=text)(ordered))


def _is_image(value: Any) -> bool:
    """Return whether an option's value names an image, or a folder of images, maybe as NAME=FILE."""
    if isinstance(value, (tuple, list)):
        return any(map(_is_image, value))
    if not isinstance(value, str):
        return False
    from tflq.comparison.verification.preparation import image_paths

    return any(image_paths(Path(part)) for part in (value, value.partition("=")[2]) if part)


def number_options(function: F) -> F:
    """Add --bgr, --mean and --std, passed on as a flag, and lists of numbers or None."""

    @functools.wraps(function)
    def prepared(*words: Any, mean: str | None, std: str | None, **options: Any) -> Any:
        means = None if mean is None else _numbers(mean, "--mean")
        return function(*words, mean=means, std=None if std is None else _numbers(std, "--std"), **options)

    prepared = _bgr_option(prepared)
    for name, what in (("--std", "Then divide by these."), ("--mean", "Subtract these from stored numbers.")):
        prepared = click.option(name, metavar="N[,N...]", help=f"{what} One number, or one per channel.")(prepared)
    return cast(F, prepared)


def scaling_options(function: F) -> F:
    """Add --bgr, and --mean and --std, passed on together as `scaling`: a Scaling, or None if neither is given."""

    @functools.wraps(function)
    def scaled(*words: Any, mean: list[float] | None, std: list[float] | None, **options: Any) -> Any:
        from tflq.comparison.verification.preparation import preparation

        return function(*words, scaling=preparation(mean, std).scaling, **options)

    return cast(F, number_options(scaled))


def preparation_options(function: F) -> F:
    """Add --bgr, --mean, --std and --quantize-inputs, passed on as lists of numbers or None, and flags."""
    function = click.option(
        "--quantize-inputs", is_flag=True, help="Quantize float values that are given for integer inputs."
    )(function)
    return number_options(function)


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number or a list like 0.5,0.5,0.5", param_hint=option) from None


def _samples(_context: Any, _option: Any, text: str | None) -> slice | None:
    """Return 10:20 as a slice."""
    if text is None:
        return None
    first, colon, stop = text.partition(":")
    numbers = [whole_number(part) for part in (first, stop)]
    if not colon or any(part and number is None for part, number in zip((first, stop), numbers, strict=True)):
        raise click.BadParameter(f"{text!r:.40} is not a range like 10:20")
    return slice(*numbers)


samples_option = click.option("--samples", metavar="A:B", callback=_samples, help="Only samples A to B-1.")
