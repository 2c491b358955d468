"""Arguments and options that several verbs share.

Options about a model's inputs, and about a device's tensors.

Options about the system under test.

Float models from the command line: `.tflite` files, and formats that are converted first.

Commands with more options than one screen holds: --help shows those that most people need, --help-all all.
"""

from __future__ import annotations

import functools
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from tflq.engine.api.files import Subject

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


def _is_typed(context: click.Context, option: click.Parameter) -> bool:
    """Return whether an option's value is from the command line, and not from pyproject.toml, which may be anyone's."""
    return context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE


def with_kernels(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """Load the user's own kernels that a profile's name ends with, as litert-ref+FILE.py, if it is typed."""
    base, _, word = (text or "").rpartition("+")
    if base and _is_typed(context, option):
        from tflq.engine.api.custom import is_offered

        if word.endswith(".py") or is_offered(word):
            _load(context, word)
    return text


def _load(context: click.Context, word: str) -> None:
    from tflq.engine.api.custom import load_kernels
    from tflq.engine.profiles import own_kernels_within

    context.with_resource(own_kernels_within(load_kernels(word)))


def _kernels_option(name: str, function: F) -> F:
    """Add --kernels, after which the profile that the option `name` names is NAME+FILE.py."""

    def load(context: click.Context, option: click.Parameter, word: str | None) -> str | None:
        if word is not None:
            if not _is_typed(context, option):
                raise click.UsageError("--kernels runs code, and so is read from the command line only")
            _load(context, word)
        return word

    @functools.wraps(function)
    def extended(*words: Any, kernels: str | None, **options: Any) -> Any:
        if kernels is not None:
            base = options[name] or "litert-ref"
            if name == "target" and not base.startswith("profile:"):
                raise click.UsageError("--kernels computes in tflq: it goes with --target profile:NAME")
            options[name] = f"{base}+{kernels}"
        return function(*words, **options)

    text = (
        "Operators of your own beside the profile's: a Python file, which is run as your own code, or an entry point "
        "of tflq.kernels. Its rows come before the profile's."
    )
    return cast(F, click.option("--kernels", metavar="FILE.py|NAME", callback=load, help=text)(extended))


def _starting(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Return completions by names; of a file where no name begins so."""
    found = [CompletionItem(name) for name in names if name.startswith(incomplete.lower())]
    return found or [CompletionItem(incomplete, type="file")]


def complete_profile(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a profile, or the path of its file."""
    from tflq.engine.profiles import PROFILES

    return _starting(PROFILES, incomplete)


def complete_runtime(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a runtime or a ready target."""
    from tflq.engine.runtimes import FOREIGN, RUNTIMES

    return _starting((*RUNTIMES, *FOREIGN), incomplete)


kernels_option = functools.partial(_kernels_option, "profile")
target_kernels_option = functools.partial(_kernels_option, "target")
profile_option = click.option(
    "--profile",
    metavar="NAME",
    default="litert-ref",
    show_default=True,
    callback=with_kernels,
    shell_complete=complete_profile,
    help=PROFILE_HELP,
)
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
        from tflq.engine.interpreter.plan import Limits, limits_within

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
    from tflq.comparison.inputs.prepare import image_paths

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
        from tflq.comparison.inputs.prepare import preparation

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
    with_kernels(context, _option, text)
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


def float_subject(path: str, python: str | None) -> Subject:
    """Return the model at a path; a converter of the Python at `python` reads Keras, SavedModel and ONNX."""
    from tflq.engine.api.files import subject
    from tflq.engine.runtimes.conversion import converter_of

    if not converter_of(path):
        return subject(path)
    from tflq.quantization.source import convert_model

    model, made = convert_model(path, python)
    float_model = subject(model)
    return replace(float_model, facts=replace(float_model.facts, path=path, converter=made.by, python=python or ""))


_EVERYTHING = "tflq.help_all"


class OneScreen(click.Command):
    """A command whose --help shows the options named in `screen`, each with a brief text; --help-all shows all.

    Options that are not on the screen work like any other.
    """

    def __init__(self, *words: Any, screen: Mapping[str, str], **more: Any) -> None:
        super().__init__(*words, **more)
        self.screen = dict(screen)
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_everything,
                help="Show all options and exit.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the screen, or all of them."""
        if ctx.meta.get(_EVERYTHING):
            super().format_options(ctx, formatter)
            return
        rows = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            brief = "" if "--help" in parameter.opts else self.screen.get(parameter.name or "")
            if record is not None and brief is not None:
                rows.append((record[0], brief or record[1]))
        with formatter.section("Options"):
            formatter.write_dl(rows)


def _show_everything(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[_EVERYTHING] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()
