"""The `tflq` command: find the verb, load only that, and turn errors into exit codes.

The first screen: a few commands for a group of verbs, and the verbs by task.

Nothing here imports NumPy or a compiler.

Exit codes are those of `exits.Exit`.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from inspect import cleandoc
from typing import Any

import click

from tflq.errors import FileAccessError, InputWarning, out_of_memory
from tflq.face.cli.answer import (
    CONFIGURATION,
    STANDARD_OUTPUT,
    Exit,
    accept_all_text,
    end_output,
    exit_of,
    forget_the_reader,
    say_document,
    say_error,
    say_text,
    say_warning,
)
from tflq.face.report.progress import compiling
from tflq.interrupts import import_whole
from tflq.texts import printable

#: Task -> its verbs, in the order in which they are needed.
TASKS = {
    "look": ("inspect", "lint", "view", "profiles", "doctor"),
    "check": ("run", "verify", "record", "golden", "court", "prove", "session", "bench"),
    "find why": ("why", "explain", "fit", "reduce", "extract", "diff", "learn"),
    "make": ("quantize", "compare"),
    "ship": ("conform",),
}
#: Endings of files that are inspected if no verb is given.
MODELS = (".tflite", ".lite", ".litertlm", ".task")
#: Distributions of the runtimes, as pip names them.
_PACKAGES = ("ai-edge-litert", "ai-edge-litert-nightly", "tflite-runtime", "tensorflow", "tflite-micro")

_FIRST = (
    ("look", "tflq inspect model.tflite", "operators, scales, shifts"),
    ("check", "tflq verify model.tflite", "the same bits as the runtime?"),
    ("find why", "tflq why model.tflite dump.npz", "where and why a device differs"),
    ("make", "tflq quantize float.tflite --calibration x.npz -o int8.tflite", ""),
    ("ship", "tflq conform make -o suite.npz", "test cases for a device or CI"),
)


def overview() -> str:
    """Return the answer to `tflq` alone: a command for each task, the installed runtimes, the next step."""
    from importlib import metadata

    commands = [f"  {task:<9} {command:<31} {what}".rstrip() for task, command, what in _FIRST]
    return "\n".join(
        [
            f"tflq {metadata.version('tflq')}: run, verify, debug and quantize .tflite models, bit by bit",
            "",
            *commands,
            "",
            f"Installed runtimes: {', '.join(_install()) or 'none (pip install ai-edge-litert adds one)'}",
            "All verbs: tflq --help; words: tflq help words; one verb: tflq help VERB",
        ]
    )


def _install() -> Iterator[str]:
    from importlib import metadata

    for name in _PACKAGES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue


def with_verb(words: list[str]) -> list[str]:
    """Return the words of a command line with the verb spelled out.

    A model without a verb is inspected, `version` is an option, and `help VERB` is `VERB --help`.
    """
    first = words[0] if words else ""
    if first == "version" and len(words) == 1:
        return ["--version"]
    if first == "help":
        return [*with_verb(words[1:]), "--help"]
    if not first.startswith("-") and first.partition(":")[0].lower().endswith(MODELS):
        return ["inspect", *words]
    return words


class VerbGroup(click.Group):
    """A group of verbs: alone, it prints its first screen."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; without any, print the first screen and end with exit code 0."""
        if not args and not ctx.resilient_parsing:
            say_text(self.first_screen(ctx))
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb; an option without its value is misuse, where click takes the next option as the value."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group) and not ctx.resilient_parsing:
            _refuse_swallowed(click.Context(command, ctx, name), rest)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs, each with its whole first sentence."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _sentence(command)) for name, command in commands if command is not None])

    def first_screen(self, ctx: click.Context) -> str:
        """Return the purpose of the group, its examples, and the next step."""
        purpose, *paragraphs = cleandoc(self.help or "").split("\n\n")
        examples = [text.removeprefix("\b\n") for text in paragraphs if text.startswith("\b\n")]
        lines = [f"  {line}" for text in examples[:1] for line in text.splitlines()]
        path = f"tflq {self.name}"
        head = click.wrap_text(f"{path}: {' '.join(purpose.split())}", 80)
        return "\n".join([head, "", *lines, "", f"All verbs: {path} --help; one verb: {path} VERB --help"])


def _refuse_swallowed(ctx: click.Context, words: list[str]) -> None:
    """Raise UsageError if the value of an option would be another option of the command of `ctx`.

    Words with the value after `=`, and all words after `--`, are as they are meant.
    """
    options = [p for p in ctx.command.get_params(ctx) if isinstance(p, click.Option)]
    known = {name: option for option in options for name in (*option.opts, *option.secondary_opts)}
    before_end = words[: words.index("--")] if "--" in words else words
    for position, word in enumerate(before_end):
        option = known.get(word)
        if option is None or option.is_flag or option.count:
            continue
        values = before_end[position + 1 : position + 1 + option.nargs]
        taken = next((value for value in values if value in known), None)
        if taken is not None and not getattr(option, "_flag_needs_value", False):
            meant = (
                f"; write {word}={taken} if that is the value" if word.startswith("--") and option.nargs == 1 else ""
            )
            raise click.UsageError(f"{word} needs a value, and {taken} is an option{meant}", ctx)


def _sentence(command: click.Command) -> str:
    """Return the first sentence of a command's help."""
    return command.get_short_help_str(1000)


def write_verbs(ctx: click.Context, group: click.Group, formatter: click.HelpFormatter) -> None:
    """Write the verbs of the command by task, each with its first sentence."""
    for task, verbs in TASKS.items():
        commands = [(verb, group.get_command(ctx, verb)) for verb in verbs]
        rows = [(verb, _sentence(command)) for verb, command in commands if command is not None]
        with formatter.section(task.capitalize()):
            formatter.write_dl(rows)


#: Words that are no verbs, and the verbs that are meant.
_MEANT = {"check": "lint"}
#: verb -> (module, command); loaded when the verb is used
VERBS = {
    "bench": ("tflq.face.cli.system", "bench_command"),
    "compare": ("tflq.face.cli.make", "compare_command"),
    "conform": ("tflq.face.cli.conform", "conform_command"),
    "court": ("tflq.face.cli.prove", "court_command"),
    "doctor": ("tflq.face.cli.system", "doctor_command"),
    "explain": ("tflq.face.cli.causes", "explain_command"),
    "fit": ("tflq.face.cli.causes", "fit_command"),
    "diff": ("tflq.face.cli.look", "diff_command"),
    "extract": ("tflq.face.cli.look", "extract_command"),
    "golden": ("tflq.face.cli.goldens", "golden_command"),
    "inspect": ("tflq.face.cli.look", "inspect_command"),
    "learn": ("tflq.face.cli.conform", "learn_command"),
    "lint": ("tflq.face.cli.check", "lint_command"),
    "profiles": ("tflq.face.cli.system", "profiles_command"),
    "prove": ("tflq.face.cli.prove", "prove_command"),
    "quantize": ("tflq.face.cli.make", "quantize_command"),
    "record": ("tflq.face.cli.check", "record_command"),
    "reduce": ("tflq.face.cli.causes", "reduce_command"),
    "run": ("tflq.face.cli.check", "run_command"),
    "session": ("tflq.face.cli.prove", "session_command"),
    "view": ("tflq.face.cli.look", "view_command"),
    "verify": ("tflq.face.cli.check", "verify_command"),
    "why": ("tflq.face.cli.causes", "why_command"),
}


class Stopped(BaseException):
    """A signal that ends this process: it passes through every `finally`, so nothing is left behind."""

    def __init__(self, code: Exit) -> None:
        self.code = code
        super().__init__(code)


class Verbs(VerbGroup):
    """A group that imports commands on demand, and turns their errors into exit codes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words with the verb spelled out."""
        if args == ["help", "words"]:
            from tflq.face.report.render.text import line_width
            from tflq.face.report.wording import glossary_text

            say_text(glossary_text(line_width() or 100))
            ctx.exit()
        return super().parse_args(ctx, with_verb(args))

    def first_screen(self, ctx: click.Context) -> str:
        """Return a command for each task, and the installed runtimes."""
        return overview()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs by task."""
        write_verbs(ctx, self, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs, in alphabetical order."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb's command, or None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        module, name = VERBS[cmd_name]
        command: click.Command = getattr(import_whole(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb, with the defaults from [tool.tflq]; suggest the nearest one for a misspelt verb."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            word = args[0].lower()
            near = [_MEANT[word]] if word in _MEANT else get_close_matches(word, tuple(VERBS), 1)
            meant = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(self.list_commands(ctx))}."
            raise click.UsageError(f"No such command {args[0]!r}. {meant}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and name is not None:
            values, path = _configure(command)
            ctx.default_map, ctx.meta[CONFIGURATION] = {name: values}, path
        return name, command, rest

    def main(self, args: Any = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run the command and exit with its code. With --json among the arguments, errors are also JSON documents."""
        words = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        if "--watch" in words and not {"--help", "-h"} & set(words):
            from tflq.face.cli.settings import files_of, watch

            once = [word for word in words if word != "--watch"]
            try:
                code = watch(lambda: self._run(once, prog_name, extra), files_of(once), say_error)
            except Stopped as stop:
                code = int(stop.code)
            except KeyboardInterrupt:
                code = int(Exit.INTERRUPTED)
            sys.exit(code)
        sys.exit(self._run(words, prog_name, extra))

    def _run(self, words: list[str], prog_name: str | None, extra: dict[str, Any]) -> int:
        """Run once and return the exit code."""
        try:
            with compiling(quiet="--quiet" in words or "-q" in words), _said_warnings():
                code = super().main(words, prog_name or "tflq", **extra)
        except Stopped as stop:
            code = stop.code
            say_error(f"tflq: {code.name.lower()}")
        except click.exceptions.Abort:
            code = Exit.INTERRUPTED
        except SystemExit:  # click ends this way if nobody reads its own output, such as the help
            forget_the_reader()
            code = Exit.SAME
        except (KeyboardInterrupt, Exception) as error:
            code = exit_of(error)
            with suppress(FileAccessError):  # standard output is closed or full
                _report_error(error, code, as_json="--json" in words, debug="--debug" in words)
        end_output()
        return int(code or 0)


@contextmanager
def _said_warnings() -> Iterator[None]:
    """Print warnings of inputs as lines on standard error, each text once."""

    def say(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, InputWarning):
            show(message, category, *place, **more)
        else:
            say_warning(message.args[0] if isinstance(message, Warning) else message)

    with warnings.catch_warnings():
        show, warnings.showwarning = warnings.showwarning, say
        warnings.simplefilter("always", InputWarning)
        yield


def _configure(command: click.Command) -> tuple[dict[str, Any], str]:
    """Return the defaults of a command's options, and the file that gives them."""
    from pathlib import Path

    from tflq.face.cli.settings import configuration, defaults

    table, path = configuration(Path.cwd())
    return defaults(command, table, path, tuple(VERBS)) if table else {}, path


def _report_error(error: BaseException, code: Exit, *, as_json: bool, debug: bool) -> None:
    """Print an error: one line, or a document; the traceback if it is requested."""
    if debug:
        say_error("\n".join(printable(line) for line in "".join(traceback.format_exception(error)).splitlines()))
    message = _message(error, code)
    if as_json and getattr(error, "path", "") != STANDARD_OUTPUT:
        from tflq.face.report.json import error_document

        say_document({**error_document(error, code), "message": message})
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        say_error(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n\nError: {message}")
    elif code != Exit.INTERRUPTED:
        say_error(f"tflq: {message}")


def _message(error: BaseException, code: Exit) -> str:
    """Return the error's text; for an unforeseen error also its place and the next step."""
    if isinstance(error, click.ClickException):
        return printable(error.format_message())
    if isinstance(error, MemoryError):
        return str(out_of_memory("this command", error))
    if code != Exit.UNFORESEEN:
        return printable(str(error) or type(error).__name__)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return (
        printable(f"error in tflq: {type(error).__name__}{where}: {error}", 600)
        + "; please report it, with the files and the output of --debug"
    )


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(None, "-V", "--version", package_name="tflq", message="%(prog)s %(version)s")
def cli() -> None:
    """Run, verify and quantize .tflite models with bit-exact results.

    \b
    tflq inspect model.tflite                        the contents of the model
    tflq verify model.tflite                         compare with a real runtime
    tflq why model.tflite device.npz                 where a device differs, why
    tflq quantize float.tflite --calibration samples.npz -o int8.tflite

    \b
    Exit codes:
      0    same, or done
      1    differs
      2    misuse or bad input
      3    unsupported or incomplete
      4    the runtime failed
      5    close: other bits, within a promise or a tolerance
      6    explained: each of two known runtimes has its own bits
      70   an error in tflq itself, please report it
      130  interrupted; 143 terminated

    [tool.tflq] in pyproject.toml gives options their defaults. Tab completion: docs/how-to/command-line.md.
    """


def main() -> None:
    """Run the console script."""
    accept_all_text()
    if with_verb(sys.argv[1:])[:1] in (["inspect"], ["lint"]):
        # They prepare operators but run none: plain Python makes small tables faster than a compiler that must first be
        # imported.
        os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup and similar commands ignore it
            signal.signal(number, _stop)
    cli()


def _stop(number: int, _frame: object) -> None:
    raise Stopped(Exit(128 + number))


if __name__ == "__main__":
    main()
