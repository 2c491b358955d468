"""`tflq profiles`: the runtimes whose arithmetic tflq computes, how they differ, and their effect on models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_overlay, write_page
from tflq.face.cli.options import html_option, json_option, model_argument, overlay_option, signature_option
from tflq.face.cli.output import say, say_document
from tflq.face.cli.several import Found, each_model, models_argument, only_of_one
from tflq.face.cli.start import Group


class Profiles(Group):
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
@html_option
@force_option
@json_option
def list_command(html: str | None, force: bool, as_json: bool) -> int:
    """List the profiles, with the runtime of each."""
    from tflq.engine.profiles import PROFILES
    from tflq.face.report.verbs.profiles.document import list_document
    from tflq.face.report.verbs.profiles.report import list_report

    check_files([html], [], force=force)
    listed = list(PROFILES.values())
    if html is not None:
        write_page(html, list_report(listed))
    if as_json:
        say_document(list_document(listed))
    else:
        say(list_report(listed))
    return Exit.SAME


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
@html_option
@force_option
@json_option
def diff_command(first: str, second: str, html: str | None, force: bool, as_json: bool) -> int:
    """List the operators and types whose arithmetic differs between two profiles, and the primitive that differs."""
    from tflq.comparison.inspection.profile_pairs import compare_profiles
    from tflq.engine.profiles import by_name
    from tflq.face.report.verbs.profiles.document import pair_document
    from tflq.face.report.verbs.profiles.report import pair_report

    check_files([html], [], force=force)
    found = compare_profiles(by_name(first), by_name(second))
    if html is not None:
        write_page(html, pair_report(found))
    if as_json:
        say_document(pair_document(found.first, found.second, found.differences))
    else:
        say(pair_report(found))
    return Exit.SAME


@profiles_command.command("effects")
@models_argument
@click.option(
    "--profile", "names", metavar="NAME", multiple=True, help="The base, then others; repeatable. [default: all]"
)
@click.option("--prove", is_flag=True, help="Leave out differences that are proved to change no bit for any input.")
@click.option("--all", "everything", is_flag=True, help="Name every profile, not only the first few.")
@signature_option
@html_option
@overlay_option
@force_option
@json_option
def effects_command(
    models: tuple[str, ...],
    names: tuple[str, ...],
    prove: bool,
    everything: bool,
    signature: str | None,
    html: str | None,
    overlay: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """List MODEL's operators that can give other bits under other profiles than under the base, litert-ref.

    Nothing is run; --prove also finds those that give the same bits for every input. Several models get a row each.

    \b
    tflq profiles effects model.tflite
    tflq profiles effects model.tflite --profile litert-ref --profile tflm
    """
    from tflq.face.report.verbs.profiles.document import effects_document
    from tflq.face.report.verbs.profiles.effects import effects_colourings, effects_report

    only_of_one(models, (("--html", html), ("--overlay", overlay)))
    check_files([html, overlay], models, force=force)
    if len(models) > 1:
        row = partial(_row, names=names, signature=signature, prove=prove)
        return each_model("profiles effects", models, _COLUMNS, row, as_json=as_json)
    effects = _effects(models[0], names, signature, prove=prove)
    shown = effects_report(effects, all_profiles=everything)
    if html is not None:
        write_page(html, shown, models[0], effects.base, signature)
    if overlay is not None:
        write_overlay(overlay, effects_colourings(effects))
    if as_json:
        say_document(effects_document(effects))
    else:
        say(shown)
    return Exit.UNSUPPORTED if effects.refused else Exit.SAME


@profiles_command.command("releases")
@model_argument
@click.option("--since", metavar="RELEASE", default="2.3", show_default=True, help="The first release.")
@signature_option
@json_option
def releases_command(model: str, since: str, signature: str | None, as_json: bool) -> int:
    """List the releases of tflite-runtime and LiteRT that give the same bits for all operators of MODEL, by resolver.

    Where others can differ, the change from the newest is named.
    """
    from tflq.comparison.inspection.releases import agreements
    from tflq.face.report.verbs.profiles.document import agreements_document
    from tflq.face.report.verbs.profiles.effects import agreements_report

    found = agreements(model, since, signature)
    if as_json:
        say_document(agreements_document(found))
    else:
        say(agreements_report(found))
    return Exit.SAME


#: Columns of the summary of several models.
_COLUMNS = (("operators", ">"), ("can differ", ">"), ("the same under", ">"), ("first", "<"))


def _effects(model: str, names: Sequence[str], signature: str | None, *, prove: bool) -> Any:
    from tflq.comparison.inspection.profile_effects import profile_effects
    from tflq.proof.settling import settle

    base, *others = names or ("litert-ref",)
    effects = profile_effects(model, base, others or None, signature)
    return settle(model, effects) if prove else effects


def _row(path: str, names: Sequence[str], signature: str | None, *, prove: bool) -> Found:
    from tflq.face.report.verbs.profiles.document import effects_document

    effects = _effects(path, names, signature, prove=prove)
    touched = [operator for operator in effects.operators if operator.effects]
    parting = {effect.profile for operator in touched for effect in operator.effects}
    same = f"{len(effects.profiles) - len(parting)} of {len(effects.profiles)} profiles"
    first = f"{touched[0].place} {touched[0].op}" if touched else ""
    cells = (str(len(effects.operators)), str(len(touched)), same, first)
    if effects.refused:
        return "refused", cells, effects_document(effects), Exit.UNSUPPORTED
    return "can differ" if touched else "the same", cells, effects_document(effects), Exit.SAME
