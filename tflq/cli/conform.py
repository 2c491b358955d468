"""`tflq conform`: suites of single-operator models, and devices tested with them."""

from __future__ import annotations

import os
from datetime import date
from typing import Any

import click

from tflq.cli.continuous import Continuous, baseline_option, continuous_options, exit_of_run
from tflq.cli.exits import Exit
from tflq.cli.files import check_files, force_option, write_page, write_text
from tflq.cli.options import html_option, json_option, profile_option, python_option, whole_number
from tflq.cli.output import say, say_document
from tflq.cli.start import Group

LEVELS = ("smoke", "standard", "exhaustive")
_level = click.option(
    "--level", type=click.Choice(LEVELS), default="standard", show_default=True, help="Cases up to this level."
)


def _shard(_context: Any, _option: Any, text: str) -> tuple[int, int]:
    """Return 2/5 as (2, 5)."""
    first, last = (whole_number(word) for word in (*text.partition("/")[::2],))
    if first is None or last is None or not 1 <= first <= last:
        raise click.BadParameter(f"{text!r:.40} is not a part like 2/5")
    return first, last


_part = click.option(
    "--shard", metavar="I/N", default="1/1", callback=_shard, help="Only the I-th of N parts of the suite."
)


def _most_refused(_context: Any, _option: Any, text: str | None) -> Any:
    """Return 12 or 5% as a limit on refusals."""
    from tflq.conformance.session import any_number, at_most, share

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


def _reports(command: Any) -> Any:
    """Add the options of the verbs that judge."""
    junit = click.option("--junit", metavar="FILE", type=click.Path(), help="Also write JUnit XML.")
    return _refused(junit(baseline_option(continuous_options(html_option(force_option(command))))))


@click.group("conform", cls=Group)
def conform_command() -> None:
    """Make suites of single-operator models, and test a device, a compiler or a runtime with them.

    \b
    tflq conform make -o suite.npz --level smoke
    tflq conform run suite.npz --target "python target.py"
    tflq conform pack suite.npz -o carried/
    tflq conform check suite.npz carried/
    """


@conform_command.command("make")
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(), help="The suite to write (.npz).")
@force_option
@_level
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of scales, weights and inputs."
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Worker processes: no effect on the output.",
)
@profile_option
@json_option
def make_command(output: str, force: bool, level: str, seed: int, jobs: int, profile: str, as_json: bool) -> int:
    """Make a suite under a profile: single-operator models, their inputs, and the expected outputs.

    Equal options give equal bytes.
    """
    from tflq.conformance.session import Order, make_suite
    from tflq.report.verbs.conform.report import suite_report

    check_files([output], [], force=force)
    written = make_suite(output, Order(profile, level, seed), jobs)
    if as_json:
        cases = len(written.suite.cases)
        say_document({"schema": "tflq/conform-make/1", "output": output, "cases": cases, "left_out": written.left_out})
    else:
        say(suite_report(output, len(written.suite.cases), written.suite.profile))
    return Exit.SAME


@conform_command.command("run")
@click.argument("suite", type=click.Path())
@click.option(
    "--target",
    required=True,
    metavar="CMD",
    help="A command that is run with a folder of cases, runtime:NAME or profile:NAME.",
)
@click.option("--profile", metavar="NAME", help="Expect this profile's bits in place of the suite's.")
@_level
@_part
@click.option(
    "--work",
    metavar="FOLDER",
    type=click.Path(),
    help="Keep the target's outputs here; a later run continues from them.",
)
@click.option(
    "--batch", type=click.IntRange(min=1), default=500, show_default=True, help="Cases per call of the command."
)
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=600.0, show_default=True, help="Seconds allowed for a call."
)
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes of this machine.")
@click.option("--scheduler", metavar="URL", help="A Dask scheduler, tcp://host:8786: its workers run the target.")
@click.option("--results", metavar="FILE", type=click.Path(), help="Also write a row per case: .jsonl or .parquet.")
@_reports
@python_option
@json_option
def run_command(
    suite: str,
    target: str,
    profile: str | None,
    level: str,
    shard: tuple[int, int],
    work: str | None,
    batch: int,
    timeout: float,
    jobs: int,
    scheduler: str | None,
    results: str | None,
    python: str | None,
    max_refused: Any,
    as_json: bool,
    **reports: Any,
) -> int:
    """Run a target on every case of SUITE and compare its outputs bit by bit.

    docs/target-protocol.md describes what a target receives and what it must write. Exit code 1: a case fails; 3: no
    case was compared, or more are refused than --max-refused allows; 4: the target failed after its last answer.
    Models that the target refuses to run are counted separately.
    """
    from tflq.conformance.session import restate, run_suite
    from tflq.conformance.targets import target_of
    from tflq.errors import OptionError
    from tflq.runtimes.children import temporary_folder

    if work is not None and (scheduler is not None or jobs > 1):
        raise OptionError("--work is for one process; for several, use --shard I/N and a folder each")
    _check(suite, reports, results)
    system = target_of(target, python, timeout)
    with temporary_folder() as folder:
        asked = suite
        if profile is not None:
            asked = os.path.join(folder, "suite.npz")
            left_out = restate(suite, asked, profile, level, shard)
            shard = (1, 1)  # the part is the whole of the suite that is asked
            if left_out:
                click.echo(f"{left_out} cases are left out, which {profile} refuses", err=True)
        if scheduler is None and jobs == 1:
            verdicts = run_suite(asked, system, level, shard, work, batch, max_refused)
        else:
            from tflq.conformance.spreading import Part, spread

            whole = Part(asked, target, python, timeout, level, shard, batch)
            verdicts = spread(whole, system.name, jobs, scheduler, max_refused)
    if results is not None:
        from tflq.report.verbs.conform.rows import write_rows

        write_rows(results, verdicts.cases)
    return _report(verdicts, suite, as_json=as_json, **reports)


@conform_command.command("pack")
@click.argument("suite", type=click.Path())
@click.option("-o", "--output", required=True, metavar="FOLDER", type=click.Path(), help="A new folder.")
@_level
@_part
@json_option
def pack_command(suite: str, output: str, level: str, shard: tuple[int, int], as_json: bool) -> int:
    """Unpack SUITE's models and inputs into a folder that a device can run; `check` then judges its outputs."""
    from tflq.conformance.session import pack
    from tflq.report.verbs.conform.report import packed_report

    count = pack(suite, output, level, shard)
    if as_json:
        say_document({"schema": "tflq/conform-pack/1", "output": output, "cases": count})
    else:
        say(packed_report(suite, output, count))
    return Exit.SAME


@conform_command.command("check")
@click.argument("suite", type=click.Path())
@click.argument("folder", type=click.Path())
@_level
@_part
@_reports
@json_option
def check_command(
    suite: str, folder: str, level: str, shard: tuple[int, int], max_refused: Any, as_json: bool, **reports: Any
) -> int:
    """Judge the outputs that a device wrote into a folder made by `pack`. Exit codes are those of `run`."""
    from tflq.conformance.session import check

    _check(suite, reports)
    return _report(check(suite, folder, level, shard, max_refused), suite, as_json=as_json, **reports)


def _check(suite: str, reports: dict[str, Any], results: str | None = None) -> None:
    """Refuse reports that cannot be written, before the run."""
    force = reports.pop("force")
    written = [*(reports[name] for name in ("junit", "sarif", "html")), results]
    check_files(written, [suite, reports["baseline"]], force=force)


def _report(
    verdicts: Any,
    suite: str,
    *,
    junit: str | None,
    html: str | None,
    baseline: str | None,
    sarif: str | None,
    accept_until: date | None,
    reason: str,
    as_json: bool,
) -> int:
    from tflq.report.issues import compared_of_verdicts, issues_of_verdicts
    from tflq.report.verbs.conform.document import verdict_document
    from tflq.report.verbs.conform.junit import junit as junit_text
    from tflq.report.verbs.conform.report import conform_report

    shown = conform_report(verdicts, suite)
    if junit is not None:
        write_text(junit, junit_text(verdicts))
    if html is not None:
        write_page(html, shown)
    if as_json:
        say_document(verdict_document(verdicts))
    else:
        say(shown)
    kept = Continuous(baseline, sarif, accept_until, reason)
    issues, compared = issues_of_verdicts(verdicts, suite), compared_of_verdicts(verdicts)
    return exit_of_run(verdicts.verdict, verdicts.rest, issues, compared, kept)
