"""`tflq profiles`: the runtimes whose arithmetic tflq computes, and where two of them differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from tflq.cli.exits import Exit
from tflq.cli.files import check_files, force_option, write_overlay, write_page
from tflq.cli.options import from_stdin, html_option, json_option, overlay_option
from tflq.cli.output import say, say_document
from tflq.cli.several import Found, each_model, only_of_one


@click.command("profiles")
@click.argument("names", nargs=-1, metavar="[PROFILE]...")
@click.option(
    "--model",
    "models",
    metavar="MODEL",
    type=click.Path(),
    multiple=True,
    callback=lambda context, option, words: tuple(str(from_stdin(context, option, word)) for word in words),
    help="List which of this model's operators differ, and in which constant; repeatable.",
)
@click.option("--prove", is_flag=True, help="With --model: leave out what is proved to change no bit for any input.")
@click.option("--all", "everything", is_flag=True, help="With --model: name every profile, not only the first few.")
@click.option("--since", metavar="RELEASE", help="With --model: list which releases from this one on agree on it.")
@html_option
@overlay_option
@force_option
@json_option
def profiles_command(
    names: tuple[str, ...],
    models: tuple[str, ...],
    prove: bool,
    everything: bool,
    since: str | None,
    html: str | None,
    overlay: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """List the profiles, or how two of them differ.

    With two PROFILEs: the operators and types whose arithmetic differs, and the primitive that does.

    With --model: which operators can give other bits than under the first PROFILE (default: litert-ref) under the
    others (default: all). Nothing is run; --prove also says which of these give the same bits for every input.

    With --model and --since: which releases of tflite-runtime and LiteRT give the same bits for every operator of it,
    by resolver, and where others can part from the newest.

    PROFILE+single-rounding is that profile with fixed-point multiplications that round once (TFLITE_SINGLE_ROUNDING).

    \b
    tflq profiles
    tflq profiles litert-ref tflm
    tflq profiles litert-ref tflm --model model.tflite
    tflq profiles --model a.tflite --model b.tflite
    tflq profiles --since 2.3 --model model.tflite
    """
    from tflq.errors import OptionError
    from tflq.profiles import PROFILES, by_name
    from tflq.report.verbs.profiles.document import effects_document, list_document, pair_document
    from tflq.report.verbs.profiles.report import list_report, pair_report

    only_of_one(models, (("--html", html), ("--overlay", overlay), ("--since", since)))
    if overlay is not None and not models:
        raise OptionError("--overlay is of a --model")
    check_files([html, overlay], models, force=force)
    if len(models) > 1:
        return each_model(
            "profiles --model", models, _COLUMNS, lambda path: _row(path, names, prove=prove), as_json=as_json
        )
    model = next(iter(models), None)
    if since is not None:
        if names or prove or html is not None or model is None:
            raise OptionError("--since RELEASE goes with --model MODEL, and with neither PROFILE, --prove nor --html")
        _say_releases(model, since, as_json)
        return Exit.SAME
    if model is not None:
        effects = _effects(model, names, prove=prove)
        from tflq.report.verbs.profiles.effects import effects_colourings, effects_report

        shown = effects_report(effects, all_profiles=everything)
        if html is not None:
            write_page(html, shown, model, effects.base)
        if overlay is not None:
            write_overlay(overlay, effects_colourings(effects))
        if as_json:
            say_document(effects_document(effects))
        else:
            say(shown)
        return Exit.SAME
    if prove:
        raise OptionError("--prove is of a --model")
    if not names:
        listed = list(PROFILES.values())
        if html is not None:
            write_page(html, list_report(listed))
        if as_json:
            say_document(list_document(listed))
        else:
            say(list_report(listed))
        return Exit.SAME
    if len(names) != 2:
        raise OptionError("give two profiles to compare, or none to list them")
    from tflq.inspection.profile_pairs import compare_profiles

    first, second = map(by_name, names)
    found = compare_profiles(first, second)
    if html is not None:
        write_page(html, pair_report(found))
    if as_json:
        say_document(pair_document(found.first, found.second, found.differences))
    else:
        say(pair_report(found))
    return Exit.SAME


#: What a summary says of each model.
_COLUMNS = (("operators", ">"), ("can differ", ">"), ("the same under", ">"), ("first", "<"))


def _effects(model: str, names: Sequence[str], *, prove: bool) -> Any:
    from tflq.inspection.profile_effects import profile_effects
    from tflq.proof.settling import settled

    base, *others = names or ("litert-ref",)
    effects = profile_effects(model, base, others or None)
    return settled(model, effects) if prove else effects


def _row(path: str, names: Sequence[str], *, prove: bool) -> Found:
    from tflq.report.verbs.profiles.document import effects_document

    effects = _effects(path, names, prove=prove)
    touched = [operator for operator in effects.operators if operator.effects]
    parting = {effect.profile for operator in touched for effect in operator.effects}
    same = f"{len(effects.profiles) - len(parting)} of {len(effects.profiles)} profiles"
    first = f"{touched[0].index} {touched[0].op}" if touched else ""
    cells = (str(len(effects.operators)), str(len(touched)), same, first)
    return "can differ" if touched else "the same", cells, effects_document(effects), Exit.SAME


def _say_releases(model: str, since: str, as_json: bool) -> None:
    from tflq.inspection.releases import agreements
    from tflq.report.verbs.profiles.document import agreements_document
    from tflq.report.verbs.profiles.effects import agreements_report

    found = agreements(model, since)
    if as_json:
        say_document(agreements_document(found))
    else:
        say(agreements_report(found))
