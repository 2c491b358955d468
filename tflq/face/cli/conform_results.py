"""`tflq conform` on recorded runs: what changed between two, parts merged, and the level that a run meets."""

from __future__ import annotations

import shlex
from typing import Any

import click

from tflq.face.cli.exits import Exit, exit_of_verdict
from tflq.face.cli.files import check_files, force_option, write_page
from tflq.face.cli.judged import check_reports, level_option, report_options, report_verdicts, shard_option
from tflq.face.cli.options import html_option, json_option, python_option
from tflq.face.cli.output import is_quiet, say, say_document, say_text, say_written
from tflq.face.cli.targets import timeout_option


@click.command("diff")
@click.argument("runs", metavar="[BEFORE AFTER]", nargs=-1, type=click.Path())
@click.option("--suite", metavar="SUITE", type=click.Path(), help="The suite: needed to run targets, and by --cases.")
@click.option("--before", metavar="NAME|CMD", help="The target before, with --suite.")
@click.option("--after", metavar="NAME|CMD", help="The target after, with --suite.")
@level_option
@shard_option
@timeout_option
@python_option
@click.option(
    "--cases", metavar="FOLDER", type=click.Path(), help="Unpack the smallest changed case of each operator here."
)
@click.option("--markdown", is_flag=True, help="Print Markdown for a pull request.")
@html_option
@force_option
@json_option
def diff_command(
    runs: tuple[str, ...],
    suite: str | None,
    before: str | None,
    after: str | None,
    level: str,
    shard: tuple[int, int],
    timeout: float,
    python: str | None,
    cases: str | None,
    markdown: bool,
    html: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Compare two runs: which operators, types and options changed bits, and what computed them before and after.

    BEFORE and AFTER are what `run --json` printed. Cases are matched by a digest of their model and inputs, so the runs
    may be of different versions of a suite. With --suite, two targets are run instead. Exit code 1: something changed;
    3: nothing ran in both.

    \b
    tflq conform diff before.json after.json
    tflq conform diff --suite suite.npz --before ./old --after ./new --markdown
    """
    from tflq.errors import OptionError
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.conform.changes import changes_document, changes_markdown, changes_report
    from tflq.verbs.conform import conform, diff_verdicts, pack_changes

    targets = [one for one in (before, after) if one is not None]
    if (len(runs), len(targets)) not in ((2, 0), (0, 2)) or (targets and suite is None):
        raise OptionError("give two recorded runs, BEFORE AFTER, or --suite SUITE with --before CMD and --after CMD")
    if cases is not None and suite is None:
        raise OptionError("--cases needs --suite SUITE, which holds the models")
    if markdown and as_json:
        raise OptionError("give one of --markdown and --json")
    check_files([html], [*runs, suite], force=force)
    if targets:
        with progress_bar(lines=True, quiet=is_quiet()) as progress:
            options = {"level": level, "shard": shard, "python": python, "timeout": timeout, "progress": progress}
            made = []
            for target in targets:
                made.append(conform(suite, target, **options))  # type: ignore[arg-type]
                if made[-1].stop is not None:
                    raise made[-1].stop
        found = diff_verdicts(*made)
    else:
        found = diff_verdicts(*runs)
    if cases is not None:
        say_written(cases, f"{pack_changes(found, suite or '', cases)} of {len(found.kernels)} smallest cases")
    if html is not None:
        write_page(html, changes_report(found))
    if as_json:
        say_document(changes_document(found))
    elif markdown:
        say_text(changes_markdown(found))
    else:
        say(changes_report(found))
    return exit_of_verdict(found.verdict)


@click.command("merge")
@click.argument("results", metavar="RESULT...", nargs=-1, required=True, type=click.Path())
@report_options
@json_option
def merge_command(results: tuple[str, ...], max_refused: Any, as_json: bool, **reports: Any) -> int:
    """Merge the verdicts on all parts of a suite into one. Exit codes are those of `run`.

    A RESULT is what `run --shard I/N --json` or `check --shard I/N --json` printed. Parts of different targets or
    suites are refused, and so are missing parts.

    \b
    tflq conform run suite.npz --target CMD --shard 1/2 --json > part1.json
    tflq conform run suite.npz --target CMD --shard 2/2 --json > part2.json
    tflq conform merge part1.json part2.json --junit report.xml
    """
    from tflq.verbs.conform import merge_verdicts

    check_reports(results[0], reports, sources=results)
    again = shlex.join(("tflq", "conform", "merge", *results))
    return report_verdicts(merge_verdicts(results, max_refused), "SUITE", again=again, as_json=as_json, **reports)


@click.command("report")
@click.argument("run", type=click.Path())
@click.option("--exclude", metavar="FILE", type=click.Path(), help="Requirements to leave out: a list with reasons.")
@click.option("--level", type=click.Choice(["smoke", "standard", "full"]), default="standard", show_default=True)
@json_option
def claim_command(run: str, exclude: str | None, level: str, as_json: bool) -> int:
    """Report which level of conformance a run meets, requirement by requirement.

    RUN is what `run --json` printed. FILE is a YAML list; each entry has a requirement, such as CONV_2D/int16/*, a
    reason and a date. Exit code 0: --level is met; 1: it is not.

    \b
    tflq conform report run.json --exclude exclusions.yaml
    """
    from tflq.face.report.verbs.conform.requirements import requirements_document, requirements_report
    from tflq.verbs.conform import claim_conformance

    found = claim_conformance(run, exclude)
    if as_json:
        say_document(requirements_document(found))
    else:
        say(requirements_report(found))
    names = [standing.level for standing in found.levels]
    return Exit.SAME if found.met and names.index(found.met) >= names.index(level) else Exit.DIFFERS
