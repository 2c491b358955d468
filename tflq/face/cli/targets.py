"""Options about the system under test."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import click

from tflq.face.cli.options import F

TARGET_HELP = (
    "The system under test: openvino, onnxruntime, opencv, litert or another ready one (docs/targets.md), a command "
    "that is run with a folder of cases, runtime:NAME or profile:NAME."
)


def _with_options(context: click.Context, _option: click.Parameter, words: tuple[str, ...]) -> None:
    """Keep the settings of a target until its name is read; see target_option."""
    for word in words:
        if not word.partition("=")[1]:
            raise click.BadParameter(f"{word!r:.40} is not NAME=VALUE")
    context.meta[_TARGET_OPTIONS] = words


def _whole_target(context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    """Return a target's name with its settings after it."""
    words = context.meta.get(_TARGET_OPTIONS, ())
    if words and text is None:
        raise click.UsageError("--target-option goes with --target")
    return text if text is None or not words else f"{text} {shlex.join(words)}"


_TARGET_OPTIONS = "tflq.target_options"


def target_option(*, needed: bool = False, start: str = "") -> Callable[[F], F]:
    """Return a decorator that adds --target and --target-option, passed on together as `target`."""
    option = click.option(
        "--target", metavar="NAME|CMD", required=needed, callback=_whole_target, help=start + TARGET_HELP
    )
    settings = click.option(
        "--target-option",
        metavar="NAME=VALUE",
        multiple=True,
        is_eager=True,
        expose_value=False,
        callback=_with_options,
        help="A setting of a ready target, such as precision=bf16; repeatable.",
    )
    return lambda function: option(settings(function))


timeout_option = click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=600.0, show_default=True, help="Seconds allowed for a call."
)
