"""`tflq conform`: suites of single-operator models, and devices tested with them."""

from __future__ import annotations

import shlex
from typing import Any

import click

from tflq.face.cli.conform_results import claim_command, diff_command, merge_command
from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option
from tflq.face.cli.judged import LEVELS, check_reports, level_option, report_options, report_verdicts, shard_option
from tflq.face.cli.options import json_option, profile_option, python_option
from tflq.face.cli.output import is_quiet, say, say_document, say_written
from tflq.face.cli.start import Group
from tflq.face.cli.targets import target_option, timeout_option

#: Cases of one question, in place of all.
FOCUSES = ("layout",)


@click.group("conform", cls=Group)
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
    from tflq.face.report.verbs.conform.report import suite_report
    from tflq.verbs.conform import make_suite

    check_files([output], [], force=force)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        written = make_suite(
            output, profile, level=level, focus=focus, seed=seed, shard=shard, jobs=jobs, progress=progress
        )
    if as_json:
        cases = len(written.suite.cases)
        say_document({"schema": "tflq/conform-make/1", "output": output, "cases": cases, "left_out": written.left_out})
    else:
        say(suite_report(output, len(written.suite.cases), written.suite.profile))
    return Exit.SAME


@conform_command.command("run")
@click.argument("suite", type=click.Path())
@target_option(needed=True)
@click.option("--profile", metavar="NAME", help="Expect this profile's bits in place of the suite's.")
@level_option
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
@report_options
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
    Models that the target refuses to run are counted separately. Ctrl-C judges what is answered so far; with --work,
    the same command continues. `tflq explain WORK/CASE` explains a case.
    """
    from tflq.face.report.progress import progress_bar
    from tflq.verbs.conform import conform

    check_reports(suite, reports, results)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        verdicts = conform(
            suite,
            target,
            profile,
            level=level,
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
        from tflq.face.report.numbers import counted
        from tflq.face.report.verbs.conform.rows import write_rows

        write_rows(results, verdicts.cases)
        say_written(results, f"a row for each of {counted(len(verdicts.cases), 'case')}")
    return report_verdicts(verdicts, suite, work=work, python=python, as_json=as_json, **reports)


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

    from tflq.face.report.verbs.conform.report import skeleton_report
    from tflq.verbs.conform import new_target

    skeleton = new_target(name, language, output, replace=force)
    if as_json:
        say_document({"schema": "tflq/conform-new-target/1", **asdict(skeleton)})
    else:
        say(skeleton_report(skeleton))
    return Exit.SAME


@conform_command.command("pack")
@click.argument("suite", type=click.Path())
@click.option("-o", "--output", required=True, metavar="FOLDER", type=click.Path(), help="A new folder.")
@level_option
@shard_option
@json_option
def pack_command(suite: str, output: str, level: str, shard: tuple[int, int], as_json: bool) -> int:
    """Unpack SUITE's models and inputs into a folder that a device can run; `check` then judges its outputs."""
    from tflq.face.report.verbs.conform.report import packed_report
    from tflq.verbs.conform import pack_suite

    count = pack_suite(suite, output, level=level, shard=shard)
    if as_json:
        say_document({"schema": "tflq/conform-pack/1", "output": output, "cases": count})
    else:
        say(packed_report(suite, output, count))
    return Exit.SAME


@conform_command.command("check")
@click.argument("suite", type=click.Path())
@click.argument("folder", type=click.Path())
@level_option
@shard_option
@report_options
@json_option
def check_command(
    suite: str, folder: str, level: str, shard: tuple[int, int], max_refused: Any, as_json: bool, **reports: Any
) -> int:
    """Judge the outputs that a device wrote into a folder made by `pack`. Exit codes are those of `run`."""
    from tflq.face.report.progress import progress_bar
    from tflq.verbs.conform import check_outputs

    check_reports(suite, reports)
    with progress_bar(lines=True, quiet=is_quiet()) as progress:
        verdicts = check_outputs(suite, folder, level=level, shard=shard, max_refused=max_refused, progress=progress)
    again = shlex.join(("tflq", "conform", "check", suite, folder))
    return report_verdicts(verdicts, suite, work=folder, again=again, as_json=as_json, **reports)


for command in (diff_command, merge_command, claim_command):
    conform_command.add_command(command)
