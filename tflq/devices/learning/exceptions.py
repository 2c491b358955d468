"""Find what the models have in common that a form does not reproduce, and those that it reproduces lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any, TypeAlias

from tflq.devices.conformance.grids.extremes import BEYOND
from tflq.devices.conformance.grids.geometric import choice_of
from tflq.devices.learning.answer import Answer
from tflq.devices.learning.form import BASE
from tflq.devices.learning.forms import Forms
from tflq.devices.learning.probes import AIM
from tflq.engine.interpreter import make_plan
from tflq.engine.kernels.families.only_where import NAMES
from tflq.engine.profiles import by_name
from tflq.errors import TflqError

#: The `only` of a profile: names of options and extents, and lists of their values.
Holds: TypeAlias = "Mapping[str, tuple[Any, ...]]"
#: Geometries that a part of an answer needs at least, and of what share of all.
_LEAST, _SHARE = 12, 0.25
#: Options that devices lack or take otherwise than the rest, with their usual values.
_USUAL: tuple[Mapping[str, str], ...] = (
    {"dilation_h": "1", "dilation_w": "1"},
    {"padding": "VALID"},
    {"padding": "SAME"},
    {"stride_h": "1", "stride_w": "1"},
    {"activation": "NONE"},
    {"groups": "1"},
)


def options_of(forms: Forms, answer: Answer) -> dict[str, str]:
    """Return the options and extents of an answer's model that may limit a row, by name."""
    found: dict[str, str] = {}
    try:
        node = make_plan(forms.model(answer.draft), by_name(BASE)).steps[0].node
    except TflqError:
        return found
    for name, read in NAMES.items():
        with suppress(KeyError, IndexError, TflqError):
            found[name] = str(read(node))
    return found


def is_held(forms: Forms, answer: Answer, holds: Holds) -> bool:
    """Return whether an answer's model is one for which a form holds."""
    own = options_of(forms, answer)
    return tuple(own.get(name, "") for name in holds["names"]) in holds["values"]


def usual_parts(forms: Forms, answers: Sequence[Answer]) -> Iterator[tuple[tuple[str, ...], list[Answer]]]:
    """Yield names of options, and the answers with their usual values, if others have other values."""
    options = [options_of(forms, answer) for answer in answers]
    for usual in _USUAL:
        some = [a for a, own in zip(answers, options, strict=True) if usual.items() <= own.items()]
        if _LEAST <= len(some) < len(answers):
            yield tuple(usual), some


def _is_of_values(answer: Answer) -> bool:
    """Return whether a model asks about values rather than options: chosen accumulators, and extreme sums."""
    return answer.draft.aim.endswith(AIM) or answer.draft.aim.startswith(BEYOND)


def holding(
    forms: Forms, wrong: Sequence[Answer], right: Sequence[Answer], names: tuple[str, ...] = ()
) -> Holds | None:
    """Return for which models a form holds, as a profile states it; None if no option or two part them.

    Values that no right answer has are not among them. Without `names`, the only options that may part them, all wrong
    answers have to be of geometries.
    """
    if any(map(_is_of_values, wrong)) or (not names and any(choice_of(one.draft.aim) is None for one in wrong)):
        return None
    bad, good = ([options_of(forms, answer) for answer in some] for some in (wrong, right))
    options = (one for one in _options(bad, good) if not names or one == names)
    for names in options if len(good) >= max(_LEAST, _SHARE * (len(wrong) + len(right))) else ():
        return {"names": names, "values": tuple(sorted({tuple(own.get(name, "") for name in names) for own in good}))}
    return None


def exception(wrong: Sequence[Answer], right: Sequence[Answer]) -> str:
    """Return for which models a form does not hold: by one option, or by two; else by number and an example."""
    count = f"({len(wrong)} of {len(wrong) + len(right)} models of other geometries and extreme sums)"
    choices = [[choice_of(answer.draft.aim) for answer in some] for some in (wrong, right)]
    bad, good = ([choice for choice in some if choice is not None] for some in choices)
    if len(bad) < len(wrong):
        beyond = [answer.draft.aim for answer in wrong if choice_of(answer.draft.aim) is None]
        if not bad:
            return f"except for {', '.join(dict.fromkeys(beyond))} {count}"
        return f"except in some models, the first {beyond[0]} {count}"
    for option in _options(bad, good):
        values = {tuple(choice[name] for name in option) for choice in bad}
        listed = " or ".join(" and ".join(map(" ".join, zip(option, v, strict=True))) for v in sorted(values))
        return f"except with {listed} {count}"
    return f"except in some geometries, the first: {', '.join(map(' '.join, bad[0].items()))} {count}"


def _options(bad: Sequence[Mapping[str, str]], good: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, ...]]:
    """Yield the options, one or two, whose values in one list do not occur in the other."""
    names = list(bad[0]) if bad else []
    for option in (*((name,) for name in names), *combinations(names, 2)):
        values = [{tuple(c.get(name, "") for name in option) for c in some} for some in (bad, good)]
        if values[0].isdisjoint(values[1]):
            yield option
