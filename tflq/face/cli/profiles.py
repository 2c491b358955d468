"""`tflq profiles`: the runtimes whose arithmetic tflq computes, and the differences between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from tflq.face.cli.exits import Exit
from tflq.face.cli.files import check_files, force_option, write_overlay, write_page
from tflq.face.cli.options import from_stdin, html_option, json_option, overlay_option, signature_option
from tflq.face.cli.output import say, say_document
from tflq.face.cli.several import Found, each_model, only_of_one


@click.command("profiles")
@click.argument("names", nargs=-1, metavar="[PROFILE]...")
@click.option(
    "--model",
    "models",
    metavar="MODEL",
    type=click.Path(),
    multiple=True,
    callback=lambda context, option, words: tuple(str(from_stdin(context, option, word)) for word in words),
    help="List this model's operators that differ, and in which constant; repeatable.",
)
@click.option(
    "--prove", is_flag=True, help="With --model: leave out differences that are proved to change no bit for any input."
)
@click.option("--all", "everything", is_flag=True, help="With --model: name every profile, not only the first few.")
@click.option("--since", metavar="RELEASE", help="With --model: list the releases from this one on that agree on it.")
@signature_option
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
    signature: str | None,
    html: str | None,
    overlay: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """List the profiles, show one as a file, or list how two of them differ.

    With "show" and a PROFILE: the file that states it, in YAML (with --json: in JSON). Change it, and give it to any
    verb as --profile FILE.yaml.

    With two PROFILEs: the operators and types whose arithmetic differs, and the differing primitive.

    With --model: the operators that can give other bits under other PROFILEs (default: all) than under the first
    (default: litert-ref). Nothing is run; --prove also finds those that give the same bits for every input.

    With --model and --since: the releases of tflite-runtime and LiteRT that give the same bits for all its operators,
    by resolver, and where others can differ from the newest.

    PROFILE+single-rounding is that profile with fixed-point multiplications that round once (TFLITE_SINGLE_ROUNDING).
    tf-1.15-ref+static-alpha: uint8 LEAKY_RELUs of one process share the alpha of the first one that runs.

    \b
    tflq profiles
    tflq profiles show litert-xnnpack > mine.yaml
    tflq profiles litert-ref tflm
    tflq profiles litert-ref tflm --model model.tflite
    tflq profiles --model a.tflite --model b.tflite
    tflq profiles --since 2.3 --model model.tflite
    """
    from tflq.engine.profiles import PROFILES, by_name
    from tflq.errors import OptionError
    from tflq.face.report.verbs.profiles.document import effects_document, list_document, pair_document
    from tflq.face.report.verbs.profiles.report import list_report, pair_report

    if names[:1] == ("show",):
        if len(names) != 2 or models or prove or everything or since is not None or html is not None:
            raise OptionError("show takes one PROFILE, and no option except --json")
        _show(names[1], as_json)
        return Exit.SAME
    only_of_one(models, (("--html", html), ("--overlay", overlay), ("--since", since)))
    for option, value in (("--overlay", overlay), ("--signature", signature)):
        if value is not None and not models:
            raise OptionError(f"{option} needs --model")
    check_files([html, overlay], models, force=force)
    if len(models) > 1:
        return each_model(
            "profiles --model",
            models,
            _COLUMNS,
            lambda path: _row(path, names, signature, prove=prove),
            as_json=as_json,
        )
    model = next(iter(models), None)
    if since is not None:
        if names or prove or html is not None or model is None:
            raise OptionError("--since RELEASE goes with --model MODEL, and with neither PROFILE, --prove nor --html")
        _say_releases(model, since, signature, as_json)
        return Exit.SAME
    if model is not None:
        effects = _effects(model, names, signature, prove=prove)
        from tflq.face.report.verbs.profiles.effects import effects_colourings, effects_report

        shown = effects_report(effects, all_profiles=everything)
        if html is not None:
            write_page(html, shown, model, effects.base, signature)
        if overlay is not None:
            write_overlay(overlay, effects_colourings(effects))
        if as_json:
            say_document(effects_document(effects))
        else:
            say(shown)
        return Exit.UNSUPPORTED if effects.refused else Exit.SAME
    if prove:
        raise OptionError("--prove needs --model")
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
    from tflq.comparison.inspection.profile_pairs import compare_profiles

    first, second = map(by_name, names)
    found = compare_profiles(first, second)
    if html is not None:
        write_page(html, pair_report(found))
    if as_json:
        say_document(pair_document(found.first, found.second, found.differences))
    else:
        say(pair_report(found))
    return Exit.SAME


def _show(name: str, as_json: bool) -> None:
    from tflq.engine.profiles import by_name
    from tflq.engine.profiles.file import document_of, text_of

    if as_json:
        say_document(document_of(by_name(name)))
    else:
        click.echo(text_of(by_name(name)), nl=False)


#: Columns of the summary of several models.
_COLUMNS = (("operators", ">"), ("can differ", ">"), ("the same under", ">"), ("first", "<"))


def _effects(model: str, names: Sequence[str], signature: str | None, *, prove: bool) -> Any:
    from tflq.comparison.inspection.profile_effects import profile_effects
    from tflq.proof.settling import settled

    base, *others = names or ("litert-ref",)
    effects = profile_effects(model, base, others or None, signature)
    return settled(model, effects) if prove else effects


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


def _say_releases(model: str, since: str, signature: str | None, as_json: bool) -> None:
    from tflq.comparison.inspection.releases import agreements
    from tflq.face.report.verbs.profiles.document import agreements_document
    from tflq.face.report.verbs.profiles.effects import agreements_report

    found = agreements(model, since, signature)
    if as_json:
        say_document(agreements_document(found))
    else:
        say(agreements_report(found))
