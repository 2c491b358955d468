"""The `tflq` command: find the verb, load only that, and turn errors into exit codes.

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
from typing import Any

import click

from tflq.errors import FileAccessError, InputWarning, out_of_memory
from tflq.escaping import printable
from tflq.face.cli.exits import Exit, exit_of
from tflq.face.cli.output import (
    CONFIGURATION,
    STANDARD_OUTPUT,
    accept_all_text,
    end_output,
    forget_the_reader,
    say_document,
    say_error,
    say_text,
    say_warning,
)
from tflq.face.cli.start import Group, overview, with_verb, write_verbs
from tflq.face.report.compiling import compiling
from tflq.interrupts import import_whole

#: verb -> (module, command); loaded when the verb is used
VERBS = {
    "bench": ("tflq.face.cli.bench", "bench_command"),
    "compare": ("tflq.face.cli.compare", "compare_command"),
    "conform": ("tflq.face.cli.conform", "conform_command"),
    "court": ("tflq.face.cli.court", "court_command"),
    "doctor": ("tflq.face.cli.doctor", "doctor_command"),
    "explain": ("tflq.face.cli.explain", "explain_command"),
    "fit": ("tflq.face.cli.fit", "fit_command"),
    "diff": ("tflq.face.cli.diff", "diff_command"),
    "extract": ("tflq.face.cli.extract", "extract_command"),
    "golden": ("tflq.face.cli.golden", "golden_command"),
    "inspect": ("tflq.face.cli.inspect", "inspect_command"),
    "learn": ("tflq.face.cli.learn", "learn_command"),
    "lint": ("tflq.face.cli.lint", "lint_command"),
    "profiles": ("tflq.face.cli.profiles", "profiles_command"),
    "prove": ("tflq.face.cli.prove", "prove_command"),
    "quantize": ("tflq.face.cli.quantize", "quantize_command"),
    "record": ("tflq.face.cli.record", "record_command"),
    "reduce": ("tflq.face.cli.reduce", "reduce_command"),
    "run": ("tflq.face.cli.run", "run_command"),
    "session": ("tflq.face.cli.session", "session_command"),
    "view": ("tflq.face.cli.view", "view_command"),
    "verify": ("tflq.face.cli.verify", "verify_command"),
    "why": ("tflq.face.cli.why", "why_command"),
}


class Stopped(BaseException):
    """A signal that ends this process: it passes through every `finally`, so nothing is left behind."""

    def __init__(self, code: Exit) -> None:
        self.code = code
        super().__init__(code)


class Verbs(Group):
    """A group that imports commands on demand, and turns their errors into exit codes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words with the verb spelled out."""
        if args == ["help", "words"]:
            from tflq.face.report.render.text import line_width
            from tflq.face.report.words import glossary_text

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
            near = get_close_matches(args[0].lower(), tuple(VERBS), 1)
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
            from tflq.face.cli.watching import files_of, watch

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

    from tflq.face.cli.configuration import configuration, defaults

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
