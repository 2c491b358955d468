"""The first screen: a few commands for a group of verbs, and the verbs by task.

Nothing here imports NumPy or a compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc

import click

from tflq.face.cli.output import say_text

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


class Group(click.Group):
    """A group of verbs: alone, it prints its first screen."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; without any, print the first screen and end with exit code 0."""
        if not args and not ctx.resilient_parsing:
            say_text(self.first_screen(ctx))
            ctx.exit()
        return super().parse_args(ctx, args)

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
