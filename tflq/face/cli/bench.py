"""`tflq bench`: a model's times under a profile and in the installed runtimes, in one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_page
from tflq.face.cli.inputs import input_options, preparation_options
from tflq.face.cli.options import PROFILE_HELP, html_option, json_option, limit_options, python_option, signature_option
from tflq.face.cli.output import is_quiet, say, say_document
from tflq.face.cli.several import Found, each_model, models_argument, only_of_one

if TYPE_CHECKING:
    from tflq.comparison.benchmark import Benched

#: The word for no runtime.
NONE = "none"


@click.command("bench")
@models_argument
@click.option(
    "--profile",
    metavar="NAME",
    multiple=True,
    default=("litert-ref",),
    show_default=True,
    help=f"{PROFILE_HELP} Repeatable: all others are compared with the first.",
)
@click.option(
    "--against",
    metavar="RUNTIME",
    multiple=True,
    help="A real runtime to compare with, or none; repeatable. [default: all that are installed]",
)
@click.option(
    "--seconds",
    metavar="S",
    type=click.FloatRange(min=0, max=86400),
    default=2.0,
    show_default=True,
    help="Time of the invokes of each side; three turns at least.",
)
@click.option("--runs", metavar="N", type=click.IntRange(1, 10**6), help="Invokes of each side, in place of --seconds.")
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Threads of each runtime; profiles use one.",
)
@input_options
@signature_option
@preparation_options
@python_option
@html_option
@force_option
@limit_options
@json_option
def bench_command(models: tuple[str, ...], html: str | None, force: bool, as_json: bool, **options: Any) -> int:
    """Time MODEL under a profile and in real runtimes, side by side in one run.

    Each side is a process of its own. They take turns of 50 ms, so that a drift of the machine affects all alike. The
    table has the median and the least time of an invoke, the ratio of the profile's median to each runtime's with its
    quartiles over the turns, the time from imports to the first result, the peak of resident memory, and whether the
    outputs have the same bits. Operators of the profile are listed with multiply-accumulates a second. Ctrl-C prints
    what was timed so far.

    \b
    tflq bench model.tflite
    tflq bench model.tflite --against litert-xnnpack --threads 2 --html bench.html
    tflq bench model.tflite --profile litert-ref --profile tflm --against none
    """
    from tflq.face.report.verbs.bench.document import bench_document
    from tflq.face.report.verbs.bench.report import bench_report

    only_of_one(models, [("--html", html)])
    check_files([html], [*models, options["inputs"]], force=force)
    if len(models) > 1:
        return each_model("bench", models, _COLUMNS, lambda model: _found(model, options), as_json=as_json)
    found = _run(models[0], options)
    shown = bench_report(found)
    if html is not None:
        write_page(html, shown, models[0], options["profile"][0], options["signature"])
    if as_json:
        say_document(bench_document(found))
    else:
        say(shown)
    if found.stop is not None:
        raise found.stop
    return _exit(found, options)


#: Columns of the summary of several models.
_COLUMNS = (("median", ">"), ("tflq / runtime", "<"), ("bits", "<"))


def _found(model: str, options: Mapping[str, Any]) -> Found:
    from tflq.face.report.numbers import seconds_text
    from tflq.face.report.verbs.bench.document import bench_document
    from tflq.face.report.verbs.bench.report import ratios_text

    found = _run(model, options)
    if found.stop is not None:
        raise found.stop
    case = next(case for case in found.cases if case.base is not None)
    assert case.base is not None
    bits = ", ".join(dict.fromkeys(side.bits for side in case.sides[1:]))
    cells = (seconds_text(case.base.median), ratios_text(case), bits)
    return "timed", cells, bench_document(found), _exit(found, options)


def _run(model: str, options: Mapping[str, Any]) -> Benched:
    """Run a benchmark; it is interrupted if a signal ends it when something was timed."""
    from tflq.errors import OptionError
    from tflq.face.report.progress import progress_bar
    from tflq.verbs.bench import bench

    against = options["against"] or None
    if against is not None and NONE in against:
        if len(against) > 1:
            raise OptionError("--against none excludes other runtimes")
        against = ()
    given = {name: value for name, value in options.items() if name not in ("profile", "against")}
    with progress_bar(quiet=is_quiet()) as progress:
        return bench(model, options["profile"], against, **given, progress=progress)


def _exit(found: Benched, options: Mapping[str, Any]) -> Exit:
    """Return RUNTIME_FAILED if a runtime that was asked for failed, or all runtimes that are installed."""
    runtimes = [side for case in found.cases for side in case.sides[1:]]
    failed = [side for side in runtimes if side.failure]
    return Exit.RUNTIME_FAILED if failed and (options["against"] or len(failed) == len(runtimes)) else Exit.SAME
