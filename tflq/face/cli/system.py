"""`tflq profiles`, `doctor` and `bench`: what runtimes there are, and how fast.

`tflq profiles`: the runtimes whose arithmetic tflq computes, how they differ, and their effect on models.

`tflq doctor`: the installed runtimes, their profiles, a self-test of tflq on this machine, and code made ahead.

`tflq bench`: a model's times under a profile and in the installed runtimes, in one run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tflq.face.cli.answer import (
    Delivery,
    Exit,
    delivery_options,
    drawing_options,
    exit_of_verdict,
    is_quiet,
    say_answer,
    say_document,
)
from tflq.face.cli.main import VerbGroup
from tflq.face.cli.many import each_model, models_argument, only_of_one
from tflq.face.cli.options import (
    PROFILE_HELP,
    complete_profile,
    complete_runtime,
    input_options,
    json_option,
    limit_options,
    model_argument,
    preparation_options,
    profile_option,
    python_option,
    signature_option,
)

if TYPE_CHECKING:
    from tflq.comparison.bench import Benched
    from tflq.face.report.several import SummaryRow


class Profiles(VerbGroup):
    """The group, which lists the profiles if no verb follows."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; without a verb they are those of `list`."""
        if not {"-h", "--help"} & set(args[:1]) and all(word.startswith("-") for word in args[:1]):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group("profiles", cls=Profiles)
def profiles_command() -> None:
    """List the profiles, show one as a file, or find what differs between them.

    PROFILE+single-rounding is that profile with fixed-point multiplications that round once (TFLITE_SINGLE_ROUNDING).
    tf-1.15-ref+static-alpha: uint8 LEAKY_RELUs of one process share the alpha of the first one that runs.

    \b
    tflq profiles
    tflq profiles show litert-xnnpack > mine.yaml
    tflq profiles diff litert-ref tflm
    tflq profiles effects model.tflite
    tflq profiles releases model.tflite --since 2.3
    """


@profiles_command.command("list")
@delivery_options
def list_command(out: Delivery) -> int:
    """List the profiles, with the runtime of each."""
    from tflq.engine.profiles import PROFILES
    from tflq.face.report.verbs.profiles import list_document, list_report

    out.check()
    listed = list(PROFILES.values())
    return out.give(Exit.SAME, list_report(listed), lambda: list_document(listed))


@profiles_command.command("show")
@click.argument("profile")
@json_option
def show_command(profile: str, as_json: bool) -> int:
    """Print the file that states PROFILE, in YAML, or in JSON with --json.

    Change it, and give it to any verb as --profile FILE.yaml.
    """
    from tflq.engine.profiles import by_name
    from tflq.engine.profiles.file import document_of, text_of

    if as_json:
        say_document(document_of(by_name(profile)))
    else:
        click.echo(text_of(by_name(profile)), nl=False)
    return Exit.SAME


@profiles_command.command("diff")
@click.argument("first")
@click.argument("second")
@delivery_options
def diff_command(first: str, second: str, out: Delivery) -> int:
    """List the operators and types whose arithmetic differs between two profiles, and the primitive that differs."""
    from tflq.comparison.inspection.profile_pairs import compare_profiles
    from tflq.engine.profiles import by_name
    from tflq.face.report.verbs.profiles import pair_document, pair_report

    out.check()
    found = compare_profiles(by_name(first), by_name(second))
    return out.give(Exit.SAME, pair_report(found), lambda: pair_document(found))


@profiles_command.command("effects")
@models_argument
@click.option(
    "--profile",
    "names",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_profile,
    help="The base, then others; repeatable. [default: all]",
)
@click.option("--prove", is_flag=True, help="Leave out differences that are proved to change no bit for any input.")
@click.option("--all", "everything", is_flag=True, help="Name every profile, not only the first few.")
@signature_option
@drawing_options
def effects_command(
    models: tuple[str, ...], names: tuple[str, ...], prove: bool, everything: bool, signature: str | None, out: Delivery
) -> int:
    """List MODEL's operators that can give other bits under other profiles than under the base, litert-ref.

    Nothing is run; --prove also finds those that give the same bits for every input. Several models get a row each.

    \b
    tflq profiles effects model.tflite
    tflq profiles effects model.tflite --profile litert-ref --profile tflm
    """
    from tflq.face.report.verbs.profiles import effects_colourings, effects_document, effects_report

    only_of_one(models, (("--html", out.html), ("--overlay", out.overlay)))
    out.check()
    if len(models) > 1:
        row = partial(_row, names=names, signature=signature, prove=prove)
        return each_model("profiles effects", models, _COLUMNS, row, as_json=out.as_json)
    effects = _effects(models[0], names, signature, prove=prove)
    return out.give(
        Exit.UNSUPPORTED if effects.refused else Exit.SAME,
        effects_report(effects, all_profiles=everything),
        lambda: effects_document(effects),
        (models[0], effects.base, signature),
        lambda: effects_colourings(effects),
    )


@profiles_command.command("releases")
@model_argument
@click.option("--since", metavar="RELEASE", default="2.3", show_default=True, help="The first release.")
@signature_option
@json_option
def releases_command(model: str, since: str, signature: str | None, as_json: bool) -> int:
    """List the releases of tflite-runtime and LiteRT that give the same bits for all operators of MODEL, by resolver.

    Where others can differ, the change from the newest is named.
    """
    from tflq.comparison.inspection.profile_effects import profile_releases
    from tflq.face.report.verbs.profiles import agreements_document, agreements_report

    found = profile_releases(model, since, signature)
    say_answer(agreements_report(found), lambda: agreements_document(found), as_json=as_json)
    return Exit.SAME


#: Columns of the summary of several models.
_COLUMNS = (("operators", ">"), ("can differ", ">"), ("the same under", ">"), ("first", "<"))


def _effects(model: str, names: Sequence[str], signature: str | None, *, prove: bool) -> Any:
    from tflq.comparison.inspection.profile_effects import profile_effects
    from tflq.proof.checking import settle

    base, *others = names or ("litert-ref",)
    effects = profile_effects(model, base, others or None, signature)
    return settle(model, effects) if prove else effects


def _row(path: str, names: Sequence[str], signature: str | None, *, prove: bool) -> SummaryRow:
    from tflq.face.report.several import SummaryRow
    from tflq.face.report.verbs.profiles import effects_document

    effects = _effects(path, names, signature, prove=prove)
    touched = [operator for operator in effects.operators if operator.effects]
    parting = {effect.profile for operator in touched for effect in operator.effects}
    same = f"{len(effects.profiles) - len(parting)} of {len(effects.profiles)} profiles"
    first = f"{touched[0].place} {touched[0].op}" if touched else ""
    cells = (str(len(effects.operators)), str(len(touched)), same, first)
    if effects.refused:
        return SummaryRow("refused", cells, effects_document(effects), Exit.UNSUPPORTED)
    return SummaryRow("can differ" if touched else "the same", cells, effects_document(effects), Exit.SAME)


@click.command("doctor")
@click.argument("models", nargs=-1, metavar="[MODEL]...", type=click.Path())
@click.option(
    "--warm", is_flag=True, help="Instead, compile the code of MODELs and keep it. [default: a sample of all operators]"
)
@click.option("--install", metavar="NAME", help="Instead, install a ready target into an environment of its own.")
@profile_option
@limit_options
@python_option
@json_option
def doctor_command(
    models: tuple[str, ...], warm: bool, install: str | None, profile: str, python: str | None, as_json: bool
) -> int:
    """List the installed runtimes and the profile of each, and run a self-test of a few seconds.

    Attach the output of --json to bug reports. Exit code 1 if the self-test fails, 3 if it could not be made.

    With --warm, later processes start at once: machine code is kept in tflq/machine-code of NUMBA_CACHE_DIR, or of
    your folder of caches.

    With --install, a target such as openvino gets the versions of docs/targets.md; every verb that names it then runs
    it there. The environment lies in tflq/targets of your folder of data, or in TFLQ_TARGETS, and may be deleted.

    \b
    tflq doctor
    tflq doctor --install openvino
    tflq doctor --json
    tflq doctor --warm model.tflite
    NUMBA_CACHE_DIR=/opt/tflq tflq doctor --warm
    """
    from tflq.devices.suites.doctor import examine
    from tflq.errors import OptionError
    from tflq.face.report.verbs.models import doctor_document, doctor_report

    if install is not None:
        if warm or models or python is not None:
            raise OptionError("--install takes nothing beside it")
        return _install(install, as_json=as_json)
    if warm:
        return _warm(models, profile, as_json=as_json)
    if models:
        raise OptionError("a MODEL is for --warm; `tflq inspect MODEL` shows it")
    examination = examine(python)
    say_answer(doctor_report(examination), lambda: doctor_document(examination), as_json=as_json)
    return exit_of_verdict("fails" if examination.failing else "passes" if examination.tested else "nothing compared")


def _warm(models: tuple[str, ...], profile: str, *, as_json: bool) -> int:
    from tflq.devices.suites.doctor import cases
    from tflq.engine.api.many import warm
    from tflq.face.report.verbs.models import warm_document, warm_report

    warmed = warm(models or [draft.model() for draft in cases()], profile)
    say_answer(warm_report(warmed), lambda: warm_document(warmed), as_json=as_json)
    return Exit.SAME


def _install(name: str, *, as_json: bool) -> int:
    from tflq.engine.runtimes.conversion import PINNED, install
    from tflq.face.report.blocks import Headline, Next, Report

    python = install(name.lower())
    packages = PINNED[name.lower()]
    target = "litert-ref" if name.lower() == "litert" else name.lower()
    verdict = Headline(f"{', '.join(packages)} in {python}", "good", "INSTALLED", name.lower())
    document = {"schema": "tflq/installed/1", "target": name.lower(), "python": python, "packages": list(packages)}
    report = Report("doctor", [verdict, Next([f"tflq verify MODEL --against {target}"])])
    say_answer(report, lambda: document, as_json=as_json)
    return Exit.SAME


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
    shell_complete=complete_profile,
    help=f"{PROFILE_HELP} Repeatable: all others are compared with the first.",
)
@click.option(
    "--against",
    metavar="RUNTIME",
    multiple=True,
    shell_complete=complete_runtime,
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
@limit_options
@delivery_options
def bench_command(models: tuple[str, ...], out: Delivery, **options: Any) -> int:
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
    from tflq.face.report.verbs.bench import bench_document, bench_report

    only_of_one(models, [("--html", out.html)])
    out.check()
    if len(models) > 1:
        return each_model("bench", models, _BENCH_COLUMNS, lambda model: _found(model, options), as_json=out.as_json)
    found = _run(models[0], options)
    drawn = (models[0], options["profile"][0], options["signature"])
    code = out.give(_exit(found, options), bench_report(found), lambda: bench_document(found), drawn)
    if found.stop is not None:
        raise found.stop
    return code


#: Columns of the summary of several models.
_BENCH_COLUMNS = (("median time of a run", "<"), ("bits", "<"))


def _found(model: str, options: Mapping[str, Any]) -> SummaryRow:
    from tflq.face.report.several import SummaryRow
    from tflq.face.report.verbs.bench import bench_document, times_text

    found = _run(model, options)
    if found.stop is not None:
        raise found.stop
    case = next(case for case in found.cases if case.base is not None)
    bits = ", ".join(dict.fromkeys(side.bits for side in case.sides[1:]))
    cells = (times_text(case), bits)
    return SummaryRow("timed", cells, bench_document(found), _exit(found, options))


def _run(model: str, options: Mapping[str, Any]) -> Benched:
    """Run a benchmark; it is interrupted if a signal ends it when something was timed."""
    from tflq.errors import OptionError
    from tflq.face.report.progress import progress_bar
    from tflq.verbs.compare import bench

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
