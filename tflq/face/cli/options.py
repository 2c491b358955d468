"""Arguments and options that several verbs share."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

F = TypeVar("F", bound=Callable[..., Any])


def from_stdin(context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Return the path of a temporary file with standard input's contents if the word is "-"; else the word."""
    if value != "-":
        return value
    if context.meta.setdefault("tflq.stdin", _option.name) != _option.name:
        raise click.UsageError(f"standard input is read once: '-' stands for {context.meta['tflq.stdin']} already")
    data = sys.stdin.buffer.read()
    suffix = {b"PK": ".npz", b"\x93N": ".npy"}.get(data[:2], ".tflite" if data[4:8] == b"TFL3" else ".bin")
    with tempfile.NamedTemporaryFile(prefix="stdin-", suffix=suffix, delete=False) as file:
        file.write(data)
    context.call_on_close(lambda: os.unlink(file.name))
    return file.name


model_argument = click.argument("model", type=click.Path(), callback=from_stdin)
PROFILE_HELP = "The arithmetic to compute: a name that `tflq profiles` lists, or the YAML file of a profile."
profile_option = click.option("--profile", metavar="NAME", default="litert-ref", show_default=True, help=PROFILE_HELP)
python_option = click.option(
    "--python", metavar="PATH", help="The Python in which the runtime or converter is installed, if not this one."
)


debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Also print the traceback of an error, for a bug report."
)


def watch_option(function: F) -> F:
    """Add --watch, which is read where commands run."""
    text = "Run again whenever a file that the command names has changed; Ctrl-C ends."
    return click.option("--watch", is_flag=True, expose_value=False, callback=_remember, help=text)(function)


def json_option(function: F) -> F:
    """Add --json, and --quiet, --watch and --debug, which are read where reports and errors are printed."""
    text = "Print only the first line, the verdict, and no progress."
    quiet = click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_remember, help=text)
    return click.option("--json", "as_json", is_flag=True, help="Print a JSON document (schemas/ describes it).")(
        debug_option(quiet(watch_option(function)))
    )


html_option = click.option(
    "--html", metavar="FILE", type=click.Path(), help="Also write an HTML page that needs no network."
)


overlay_option = click.option(
    "--overlay",
    metavar="FILE",
    type=click.Path(),
    help="Also write the page's colours of operators as node data for Model Explorer (JSON).",
)


def _remember(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Keep a flag with the running command."""
    context.meta[f"tflq.{option.name}"] = value


#: Maximum number of digits of a whole number on the command line.
_DIGITS = 18


def whole_number(text: str) -> int | None:
    """Return the number in decimal digits; None for any other text, or too many digits."""
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def words_of(_context: Any, _option: Any, text: str | None) -> tuple[str, ...]:
    """Return A,B as words."""
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def _tolerances(_context: click.Context, option: click.Parameter, words: tuple[str, ...]) -> dict[str, int]:
    """Return the bounds of OP=N words, by operator."""
    limits = {}
    for word in words:
        name, _, text = word.rpartition("=")
        limit = whole_number(text)
        if not name or limit is None:
            raise click.BadParameter(f"{word!r:.40} is not OP=N, such as CONV_2D=1, 12=2 or '*=1'")
        limits[name] = limit
    return limits


signature_option = click.option(
    "--signature", metavar="NAME", help="Only this signature of the model. [default: every signature]"
)
tolerance_option = click.option(
    "--tolerance",
    "tolerances",
    multiple=True,
    metavar="OP=N",
    callback=_tolerances,
    help="Allow N LSB (ULP of floats) for an operator, its index, or * for all; repeatable.",
)


def limit_options(function: F) -> F:
    """Add --memory-limit and --work-limit, which apply to every plan that the verb makes."""

    @functools.wraps(function)
    def limited(*words: Any, memory_limit: int, work_limit: int, **options: Any) -> Any:
        from tflq.engine.interpreter.limits import Limits, limits_within

        with limits_within(Limits(memory_limit, work_limit)):
            return function(*words, **options)

    limited = click.option(
        "--work-limit",
        type=click.IntRange(min=0),
        metavar="N",
        default=10**13,
        show_default=True,
        help="Multiply-accumulates, or other innermost loop iterations, that a run may take.",
    )(limited)
    limited = click.option(
        "--memory-limit",
        type=click.IntRange(min=0),
        metavar="BYTES",
        default=4 << 30,
        show_default=True,
        help="Bytes of memory that a run may use at a time, without constants.",
    )(limited)
    return cast(F, limited)
