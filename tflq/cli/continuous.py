"""Options of verbs that run in continuous integration: baselines and SARIF."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any

import click


def _day(_context: Any, _option: Any, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no day such as 2027-03-31") from None


baseline_option = click.option(
    "--baseline", metavar="FILE", type=click.Path(), help="What is known and accepted (.json): only what is new fails."
)


def continuous_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--sarif, and the options that write a baseline."""
    for option in (
        click.option("--reason", default="", metavar="TEXT", help="Why --accept-until accepts what is found."),
        click.option("--accept-until", metavar="DAY", callback=_day, help="Write all that is found to the baseline."),
        click.option("--sarif", metavar="FILE", type=click.Path(), help="Also write SARIF 2.1.0."),
    ):
        command = option(command)
    return command


def is_new(
    issues: Iterable[Any], baseline: str | None, sarif: str | None, accept_until: date | None, reason: str
) -> bool:
    """Whether there is any complaint that the baseline does not accept; writes baseline and SARIF where asked for.

    Raises:
        OptionError: --accept-until without a baseline to write, or without a reason.
    """
    from tflq.errors import OptionError
    from tflq.storage.baseline import read_baseline, write_baseline

    issues = list(issues)
    if accept_until is not None:
        if baseline is None or not reason:
            raise OptionError("--accept-until needs --baseline FILE and --reason TEXT")
        write_baseline(baseline, (issue.key for issue in issues), reason, accept_until)
    accepted = {} if baseline is None else read_baseline(baseline, date.today())
    if sarif is not None:
        from tflq.cli.files import write_text
        from tflq.report.sarif import sarif as sarif_text

        write_text(sarif, sarif_text(issues, {key: entry.reason for key, entry in accepted.items()}))
    new = [issue for issue in issues if issue.key not in accepted]
    if baseline is not None and issues:
        from tflq.cli.output import say_error

        say_error(f"{baseline}: {len(issues) - len(new):,} accepted, {len(new):,} new")
    return bool(new)
