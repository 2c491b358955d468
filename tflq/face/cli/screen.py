"""Commands with more options than one screen holds: --help shows those that most people need, --help-all all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

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
