"""The `tflq` command: finds the verb, loads only that, and turns errors into exit codes.

Exit codes: 0 same, or done; 1 differs; 2 misuse or bad input; 3 unsupported or incomplete; 4 the runtime failed;
130 interrupted.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from tflq.cli.exits import Exit, exit_of

#: verb -> (module, command); loaded when the verb is used
VERBS = {
    "compare": ("tflq.cli.compare", "compare_command"),
    "explain": ("tflq.cli.explain", "explain_command"),
    "fit": ("tflq.cli.fit", "fit_command"),
    "diff": ("tflq.cli.diff", "diff_command"),
    "extract": ("tflq.cli.extract", "extract_command"),
    "inspect": ("tflq.cli.inspect", "inspect_command"),
    "lint": ("tflq.cli.lint", "lint_command"),
    "profiles": ("tflq.cli.profiles", "profiles_command"),
    "quantize": ("tflq.cli.quantize", "quantize_command"),
    "record": ("tflq.cli.record", "record_command"),
    "reduce": ("tflq.cli.reduce", "reduce_command"),
    "run": ("tflq.cli.run", "run_command"),
    "verify": ("tflq.cli.verify", "verify_command"),
}


class Verbs(click.Group):
    """A group whose commands are imported when they are asked for, and whose errors become exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in alphabetical order."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, or None where there is no such verb."""
        if cmd_name not in VERBS:
            return None
        module, name = VERBS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command

    def main(self, args: Any = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run, and leave with an exit code. With --json among the arguments errors are JSON documents too."""
        words = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            code = super().main(words, prog_name or "tflq", **extra)
        except click.exceptions.Abort:
            code = Exit.INTERRUPTED
        except (KeyboardInterrupt, Exception) as error:
            code = exit_of(error)
            if code is None:
                raise
            _tell(error, int(code), as_json="--json" in words)
        sys.exit(int(code or 0))


def _tell(error: BaseException, code: int, *, as_json: bool) -> None:
    if as_json:
        from tflq.cli.output import say_document
        from tflq.report.json import error_document

        message = error.format_message() if isinstance(error, click.ClickException) else None
        document = error_document(error, code)
        say_document(document if message is None else {**document, "message": message})
    elif isinstance(error, click.ClickException):
        error.show()
    elif code != Exit.INTERRUPTED:
        click.echo(f"tflq: {error or type(error).__name__}", err=True)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="tflq", message="%(prog)s %(version)s")
def cli() -> None:
    """Bit-exact execution, verification and quantization of .tflite models.

    Exit codes: 0 same, or done; 1 differs; 2 misuse or bad input; 3 unsupported or incomplete; 4 the runtime failed.
    """


def main() -> None:
    """The console script."""
    if sys.argv[1:2] == ["inspect"]:
        # Inspecting prepares operators but runs none: small tables are made faster by plain Python than by a compiler
        # that first has to be imported.
        os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
    cli()


if __name__ == "__main__":
    main()
