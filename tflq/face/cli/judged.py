"""Options and reports of the verbs of `tflq conform` that judge a target."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.continuous import Continuous, baseline_option, continuous_options
from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_junit, write_page
from tflq.face.cli.options import html_option, whole_number
from tflq.face.cli.output import say, say_document, say_error

if TYPE_CHECKING:
    from tflq.devices.conformance.judging import Verdicts

LEVELS = ("smoke", "standard", "exhaustive")
level_option = click.option(
    "--level", type=click.Choice(LEVELS), default="standard", show_default=True, help="Cases up to this level."
)


def _shard(_context: Any, _option: Any, text: str) -> tuple[int, int]:
    """Return 2/5 as (2, 5)."""
    first, last = (whole_number(word) for word in (*text.partition("/")[::2],))
    if first is None or last is None or not 1 <= first <= last:
        raise click.BadParameter(f"{text!r:.40} is not a part like 2/5")
    return first, last


shard_option = click.option(
    "--shard", metavar="I/N", default="1/1", callback=_shard, help="Only the I-th of N parts of the suite."
)


def _most_refused(_context: Any, _option: Any, text: str | None) -> Any:
    """Return 12 or 5% as a limit on refusals."""
    from tflq.devices.conformance.session import any_number, at_most, share

    if text is None:
        return any_number
    count = whole_number(text)
    if count is not None:
        return at_most(count)
    number = text.removesuffix("%")
    try:
        percent = float(number)
    except ValueError:
        percent = -1.0
    if number == text or not 0 <= percent <= 100:
        raise click.BadParameter(f"{text!r:.40} is neither a number of cases nor a share such as 5%")
    return share(percent)


_refused = click.option(
    "--max-refused",
    metavar="N|P%",
    callback=_most_refused,
    help="More refused cases, or a larger share of those that should run, do not pass. [default: any, except all]",
)


def report_options(command: Any) -> Any:
    """Add the options of the verbs that judge."""
    junit = click.option("--junit", metavar="FILE", type=click.Path(), help="Also write JUnit XML.")
    table = click.option(
        "--table", "has_table", is_flag=True, help="Also print a table of all operators, and the failing cases."
    )
    return table(_refused(junit(baseline_option(continuous_options(html_option(force_option(command)))))))


def check_reports(
    suite: str, reports: dict[str, Any], results: str | None = None, sources: tuple[str, ...] = ()
) -> None:
    """Refuse reports that cannot be written, before the run."""
    force = reports.pop("force")
    written = [*(reports[name] for name in ("junit", "sarif", "html")), results]
    check_files(written, [suite, *sources, reports["baseline"]], force=force)


def report_verdicts(
    verdicts: Verdicts,
    suite: str,
    *,
    work: str | None = None,
    again: str = "",
    python: str | None = None,
    has_table: bool,
    junit: str | None,
    html: str | None,
    baseline: str | None,
    sarif: str | None,
    accept_until: date | None,
    reason: str,
    as_json: bool,
) -> int:
    """Print verdicts and write their files; return the exit code. A run that was interrupted ends as its signal asks.

    Args:
        verdicts: The verdicts.
        suite: The path of the suite.
        work: The folder that keeps the cases, if there is one.
        again: The command that made the verdicts, if it was not `run`.
        python: The Python that ran the target, if it was named.
        has_table: Whether text has the table of operators.
        junit: A file to write.
        html: A file to write.
        baseline: See Continuous.
        sarif: See Continuous.
        accept_until: See Continuous.
        reason: See Continuous.
        as_json: Whether a document is printed.
    """
    from tflq.face.report.issues import compare_of_verdicts, issues_of_verdicts
    from tflq.face.report.verbs.conform.document import verdict_document
    from tflq.face.report.verbs.conform.junit import junit as junit_text
    from tflq.face.report.verbs.conform.report import conform_report

    if verdicts.left and accept_until is not None:
        say_error("the run was interrupted: no baseline is written")
        accept_until = None
    kept = Continuous(baseline, sarif, accept_until, reason)
    issues, compared = issues_of_verdicts(verdicts, suite), compare_of_verdicts(verdicts)
    judged = kept.judge(verdicts.verdict, verdicts.rest, issues, compared)
    verdicts = replace(verdicts, accepted=judged.is_accepted)
    shown = conform_report(verdicts, suite, work=work, has_table=has_table, again=again, python=python)
    if junit is not None:
        write_junit(junit, junit_text(verdicts))
    if html is not None:
        write_page(html, shown)
    if as_json:
        say_document(verdict_document(verdicts))
    else:
        say(shown)
    judged.say()
    if verdicts.stop is not None:
        raise verdicts.stop
    return Exit.INTERRUPTED if verdicts.left else judged.code
