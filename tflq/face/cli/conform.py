"""`tflq conform` and `learn`: devices tested by suites, and learned.

Options and reports of the verbs of `tflq conform` that judge a target.

`tflq conform` on recorded runs: what changed between two, parts merged, and the level that a run meets.

`tflq conform`: suites of single-operator models, and devices tested with them.

`tflq learn`: an unknown device's arithmetic, learned by questions, as a profile that executes it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.answer import (
    Delivery,
    Exit,
    check_files,
    delivery_options,
    exit_of_verdict,
    force_option,
    is_quiet,
    say,
    say_answer,
    say_document,
    say_error,
    say_text,
    say_written,
    write_page,
    write_text,
)
from tflq.face.cli.main import VerbGroup
from tflq.face.cli.many import Continuous, baseline_option, continuous_options, junit_option
from tflq.face.cli.options import (
    complete_profile,
    json_option,
    profile_option,
    python_option,
    target_kernels_option,
    target_option,
    timeout_option,
    whole_number,
    with_kernels,
    words_of,
)

if TYPE_CHECKING:
    from tflq.devices.learning.findings import LearnFindings
    from tflq.devices.suites.judge import Verdicts

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

ops_option = click.option(
    "--ops", metavar="A,B", callback=words_of, help="Only cases of these operators.  [default: all]"
)


def _most_refused(_context: Any, _option: Any, text: str | None) -> Any:
    """Return 12 or 5% as a limit on refusals."""
    from tflq.devices.suites.run import any_number, at_most, share

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
    table = click.option(
        "--table", "has_table", is_flag=True, help="Also print a table of all operators, and the failing cases."
    )
    return table(_refused(junit_option(baseline_option(continuous_options(delivery_options(command))))))


def check_reports(out: Delivery, reports: Mapping[str, Any], results: str | None = None) -> None:
    """Refuse reports that cannot be written, before the run."""
    out.check(*reports["kept"].files, results)


def report_verdicts(
    verdicts: Verdicts,
    suite: str,
    out: Delivery,
    *,
    work: str | None = None,
    again: str = "",
    python: str | None = None,
    has_table: bool,
    kept: Continuous,
) -> int:
    """Print verdicts and write their files; return the exit code. A run that was interrupted ends as its signal asks.

    Args:
        verdicts: The verdicts.
        suite: The path of the suite.
        out: How the answer is given.
        work: The folder that keeps the cases, if there is one.
        again: The command that made the verdicts, if it was not `run`.
        python: The Python that ran the target, if it was named.
        has_table: Whether text has the table of operators.
        kept: The baseline, and the files for continuous integration.
    """
    from tflq.face.report.issues import complaints_of_verdicts
    from tflq.face.report.verbs.conform import conform_report, junit, verdict_document

    if verdicts.left and kept.accept_until is not None:
        say_error("the run was interrupted: no baseline is written")
        kept = replace(kept, accept_until=None)
    judged = kept.judge(verdicts.verdict, complaints_of_verdicts(verdicts, suite))
    verdicts = replace(verdicts, accepted=judged.is_accepted)
    shown = conform_report(verdicts, suite, work=work, has_table=has_table, again=again, python=python)
    kept.write_junit(lambda: junit(verdicts))
    out.give(judged.code, shown, lambda: verdict_document(verdicts))
    judged.say()
    if verdicts.stop is not None:
        raise verdicts.stop
    return Exit.INTERRUPTED if verdicts.left else judged.code


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
@delivery_options
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
    out: Delivery,
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
    from tflq.face.report.verbs.conform_changes import changes_document, changes_markdown, changes_report
    from tflq.verbs.conform import conform, diff_verdicts, pack_changes

    targets = [one for one in (before, after) if one is not None]
    if (len(runs), len(targets)) not in ((2, 0), (0, 2)) or (targets and suite is None):
        raise OptionError("give two recorded runs, BEFORE AFTER, or --suite SUITE with --before CMD and --after CMD")
    if cases is not None and suite is None:
        raise OptionError("--cases needs --suite SUITE, which holds the models")
    if markdown and out.as_json:
        raise OptionError("give one of --markdown and --json")
    out.check()
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
    if not markdown:
        return out.give(found.verdict, changes_report(found), lambda: changes_document(found))
    if out.html is not None:
        write_page(out.html, changes_report(found))
    say_text(changes_markdown(found))
    return exit_of_verdict(found.verdict)


@click.command("merge")
@click.argument("results", metavar="RESULT...", nargs=-1, required=True, type=click.Path())
@report_options
def merge_command(results: tuple[str, ...], max_refused: Any, out: Delivery, **reports: Any) -> int:
    """Merge the verdicts on all parts of a suite into one. Exit codes are those of `run`.

    A RESULT is what `run --shard I/N --json` or `check --shard I/N --json` printed. Parts of different targets or
    suites are refused, and so are missing parts.

    \b
    tflq conform run suite.npz --target CMD --shard 1/2 --json > part1.json
    tflq conform run suite.npz --target CMD --shard 2/2 --json > part2.json
    tflq conform merge part1.json part2.json --junit report.xml
    """
    from tflq.verbs.conform import merge_verdicts

    check_reports(out, reports)
    again = shlex.join(("tflq", "conform", "merge", *results))
    return report_verdicts(merge_verdicts(results, max_refused), "SUITE", out, again=again, **reports)


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
    from tflq.face.report.verbs.conform_changes import requirements_document, requirements_report
    from tflq.verbs.conform import claim_conformance

    found = claim_conformance(run, exclude)
    say_answer(requirements_report(found), lambda: requirements_document(found), as_json=as_json)
    names = [standing.level for standing in found.levels]
    return Exit.SAME if found.met and names.index(found.met) >= names.index(level) else Exit.DIFFERS


#: Cases of one question, in place of all.
FOCUSES = ("layout",)


@click.group("conform", cls=VerbGroup)
def conform_command() -> None:
    """Make suites of single-operator models, and test a device, a compiler or a runtime with them.

    \b
    tflq conform make -o suite.npz --level smoke
    tflq conform run suite.npz --target openvino
    tflq conform run suite.npz --target "python target.py"
    tflq conform pack suite.npz -o carried/
    tflq conform check suite.npz carried/
    tflq conform diff before.json after.json
    tflq conform report run.json --exclude exclusions.yaml
    """


@conform_command.command("make")
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(), help="The suite to write (.npz).")
@force_option
@click.option("--level", type=click.Choice(LEVELS), help="Cases up to this level.  [default: standard]")
@click.option("--focus", type=click.Choice(FOCUSES), help="Only cases that ask what kernels get wrong by layout.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of scales, weights and inputs."
)
@ops_option
@shard_option
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Worker processes: no effect on the output.",
)
@profile_option
@json_option
def make_command(
    output: str,
    force: bool,
    level: str | None,
    focus: str | None,
    ops: tuple[str, ...],
    seed: int,
    shard: tuple[int, int],
    jobs: int,
    profile: str,
    as_json: bool,
) -> int:
    """Make a suite under a profile: single-operator models, their inputs, and the expected outputs.

    Equal options give equal bytes. With --shard, each machine makes a part and runs it; `merge` joins the results.
    --focus layout makes a suite of its own, without levels: tails behind vectors of 2 to 16 lanes, few channels,
    several images, operands at odd addresses.
    """
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.conform import suite_report
    from tflq.verbs.conform import make_suite

    check_files([output], [], force=force)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        written = make_suite(
            output, profile, level=level, focus=focus, ops=ops, seed=seed, shard=shard, jobs=jobs, progress=progress
        )
    if as_json:
        cases = len(written.suite.cases)
        say_document({"schema": "tflq/conform-make/1", "output": output, "cases": cases, "left_out": written.left_out})
    else:
        say(suite_report(output, written.suite))
    return Exit.SAME


@conform_command.command("run")
@click.argument("suite", type=click.Path())
@target_kernels_option
@target_option(needed=True)
@click.option(
    "--profile",
    metavar="NAME",
    callback=with_kernels,
    shell_complete=complete_profile,
    help="Expect this profile's bits in place of the suite's.",
)
@level_option
@ops_option
@shard_option
@click.option(
    "--work",
    metavar="FOLDER",
    type=click.Path(),
    help="Keep the target's outputs here; a later run continues from them.",
)
@click.option(
    "--batch", type=click.IntRange(min=1), default=500, show_default=True, help="Cases per call of the command."
)
@timeout_option
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes of this machine.")
@click.option("--scheduler", metavar="URL", help="A Dask scheduler, tcp://host:8786: its workers run the target.")
@click.option("--results", metavar="FILE", type=click.Path(), help="Also write a row per case: .jsonl or .parquet.")
@python_option
@report_options
def run_command(
    suite: str,
    target: str,
    profile: str | None,
    level: str,
    ops: tuple[str, ...],
    shard: tuple[int, int],
    work: str | None,
    batch: int,
    timeout: float,
    jobs: int,
    scheduler: str | None,
    results: str | None,
    python: str | None,
    max_refused: Any,
    out: Delivery,
    **reports: Any,
) -> int:
    """Run a target on every case of SUITE and compare its outputs bit by bit.

    docs/target-protocol.md describes what a target receives and what it must write. Exit code 1: a case fails; 3: no
    case was compared, or more are refused than --max-refused allows; 4: the target failed after its last answer.
    Models that the target refuses to run are counted separately. Ctrl-C judges what is answered so far; with --work,
    the same command continues. `tflq explain WORK/CASE` explains a case.
    """
    from tflq.face.report.progress import progress_bar
    from tflq.verbs.conform import conform

    check_reports(out, reports, results)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        verdicts = conform(
            suite,
            target,
            profile,
            level=level,
            ops=ops,
            shard=shard,
            work=work,
            batch=batch,
            max_refused=max_refused,
            jobs=jobs,
            scheduler=scheduler,
            python=python,
            timeout=timeout,
            progress=progress,
        )
    if verdicts.left_out and not is_quiet():
        click.echo(f"{verdicts.left_out} cases are left out, which {profile} refuses", err=True)
    if results is not None:
        from tflq.face.report.verbs.conform import write_rows
        from tflq.face.report.wording import counted

        write_rows(results, verdicts.cases)
        say_written(results, f"a row for each of {counted(len(verdicts.cases), 'case')}")
    return report_verdicts(verdicts, suite, out, work=work, python=python, **reports)


@conform_command.command("new-target")
@click.argument("name")
@click.option(
    "--language",
    type=click.Choice(("python", "c", "node")),
    default="python",
    show_default=True,
    help="Of the skeleton.",
)
@click.option(
    "-o", "--output", metavar="FOLDER", default=".", type=click.Path(), help="Where to write it. [default: here]"
)
@force_option
@json_option
def new_target_command(name: str, language: str, output: str, force: bool, as_json: bool) -> int:
    """Write a target in Python, C or node: a complete program that runs one operator and refuses the rest.

    It passes as it is; replace the function that runs a model.
    """
    from dataclasses import asdict

    from tflq.face.report.verbs.conform import skeleton_report
    from tflq.verbs.conform import new_target

    skeleton = new_target(name, language, output, replace=force)
    say_answer(
        skeleton_report(skeleton), lambda: {"schema": "tflq/conform-new-target/1", **asdict(skeleton)}, as_json=as_json
    )
    return Exit.SAME


@conform_command.command("pack")
@click.argument("suite", type=click.Path())
@click.option("-o", "--output", required=True, metavar="FOLDER", type=click.Path(), help="A new folder.")
@level_option
@shard_option
@json_option
def pack_command(suite: str, output: str, level: str, shard: tuple[int, int], as_json: bool) -> int:
    """Unpack SUITE's models and inputs into a folder that a device can run; `check` then judges its outputs."""
    from tflq.face.report.verbs.conform import packed_report
    from tflq.verbs.conform import pack_suite

    count = pack_suite(suite, output, level=level, shard=shard)
    say_answer(
        packed_report(suite, output, count),
        lambda: {"schema": "tflq/conform-pack/1", "output": output, "cases": count},
        as_json=as_json,
    )
    return Exit.SAME


@conform_command.command("check")
@click.argument("suite", type=click.Path())
@click.argument("folder", type=click.Path())
@level_option
@shard_option
@report_options
def check_command(
    suite: str, folder: str, level: str, shard: tuple[int, int], max_refused: Any, out: Delivery, **reports: Any
) -> int:
    """Judge the outputs that a device wrote into a folder made by `pack`. Exit codes are those of `run`."""
    from tflq.face.report.progress import progress_bar
    from tflq.verbs.conform import check_outputs

    check_reports(out, reports)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        verdicts = check_outputs(suite, folder, level=level, shard=shard, max_refused=max_refused, progress=progress)
    again = shlex.join(("tflq", "conform", "check", suite, folder))
    return report_verdicts(verdicts, suite, out, work=folder, again=again, **reports)


for command in (diff_command, merge_command, claim_command):
    conform_command.add_command(command)


@click.command("learn")
@target_option()
@click.option(
    "--dump", "evidence", metavar="PATH", multiple=True, help="Instead of a target: a device's dump; may repeat."
)
@click.option("--model", "models", metavar="FILE", multiple=True, help="The model of each dump, in their order.")
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(), help="The profile to write (.yaml).")
@click.option("--operators", metavar="A,B", callback=words_of, help="Only these operators. [default: all]")
@click.option("--types", metavar="A,B", callback=words_of, default="int8", show_default=True, help="Types of codes.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all questions.")
@click.option(
    "--fresh", type=click.IntRange(1, 1000), default=32, show_default=True, help="Fresh models for each operator."
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="Models after which nothing is asked.",
)
@timeout_option
@click.option(
    "--work",
    metavar="FOLDER",
    help="Keep the device's answers here; a later run goes on from them. [default: FILE.answers, until it ends]",
)
@python_option
@delivery_options
def learn_command(target: str | None, output: str, work: str | None, out: Delivery, **options: Any) -> int:
    """Ask a device thousands of questions, and write its arithmetic as a profile that runs, verifies and quantizes.

    Each question is a model of one operator; docs/target-protocol.md describes what the target receives. The profile
    refuses operators that were not learned. Ctrl-C ends the questions, and what is known by then is written; the same
    command with --force goes on and asks nothing twice. Exit code 1: some operator is not known; 3: nothing was
    learned.

    \b
    tflq learn --target ./my_npu.sh -o my-npu.yaml --html my-npu.html
    """
    from tflq.devices.learning.words import text_of
    from tflq.errors import OptionError
    from tflq.face.report.progress import progress_bar
    from tflq.face.report.verbs.learn import learn_document, learn_report
    from tflq.verbs.conform import learn

    out.check(output)
    if not output.lower().endswith((".yaml", ".yml")):
        raise OptionError(f"-o {output}: name a .yaml file; --profile knows profiles by that ending")
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        folder = work or f"{output}.answers"
        found = learn(target, **options, work=folder, keep=work is not None, progress=progress)
    write_text(output, text_of(found))
    return out.give(_exit(found), learn_report(found, output), lambda: learn_document(found, output))


def _exit(found: LearnFindings) -> Exit:
    """Return the exit code of what was learned."""
    if found.reason == "interrupted":
        return Exit.INTERRUPTED
    if found.reason:
        return Exit.RUNTIME_FAILED
    states = [one.state.value for one in found.operators]
    if not any(one.is_executed for one in found.operators):
        return Exit.UNSUPPORTED
    return Exit.SAME if all(state in ("learned", "table", "refused") for state in states) else Exit.DIFFERS
