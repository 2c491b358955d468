"""`tflq profiles`: whose arithmetic can be computed, and where two of them part."""

from __future__ import annotations

import click

from tflq.cli.exits import Exit
from tflq.cli.options import json_option
from tflq.cli.output import say, say_document


@click.command("profiles")
@click.argument("names", nargs=-1, metavar="[PROFILE]...")
@click.option("--model", metavar="MODEL", type=click.Path(), help="Which of this model's operators differ, and where.")
@json_option
def profiles_command(names: tuple[str, ...], model: str | None, as_json: bool) -> int:
    """List the profiles; or say how two of them differ.

    With two PROFILEs: the operators and types whose arithmetic differs, and the primitive that does.

    With --model: which operators can give other bits than under the first PROFILE (default: litert-ref) under the
    others (default: all). Nothing is run.

    PROFILE+single-rounding is any profile with every fixed-point rounding made once.
    """
    from tflq.errors import OptionError
    from tflq.profiles import PROFILES, by_name
    from tflq.report.profiles.document import effects_document, list_document, pair_document
    from tflq.report.profiles.lines import effects_lines, list_lines, pair_lines

    if model is not None:
        from tflq.inspection.profile_effects import profile_effects

        base, *others = [by_name(name) for name in names or ("litert-ref",)]
        chosen = others or [profile for name, profile in PROFILES.items() if name != base.name]
        effects = profile_effects(model, base, chosen)
        if as_json:
            say_document(effects_document(effects))
        else:
            say(effects_lines(effects))
        return Exit.SAME
    if not names:
        listed = list(PROFILES.values())
        if as_json:
            say_document(list_document(listed))
        else:
            say(list_lines(listed))
        return Exit.SAME
    if len(names) != 2:
        raise OptionError("give two profiles to compare, or none to list them")
    from tflq.inspection.profile_pairs import compare_profiles

    first, second = map(by_name, names)
    found = compare_profiles(first, second)
    if as_json:
        say_document(pair_document(first.name, second.name, found))
    else:
        say(pair_lines(first.name, second.name, found))
    return Exit.SAME
