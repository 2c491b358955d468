"""Find what the models have in common that a form does not reproduce, and those that it reproduces lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from tflq.devices.conformance.grids.geometric import choice_of
from tflq.devices.learning.answer import Answer
from tflq.engine.kernels.families.only_where import NAMES

#: Geometries that a part of an answer needs at least, and of what share of all.
_LEAST, _SHARE = 12, 0.25


def holding(wrong: Sequence[Answer], right: Sequence[Answer]) -> Mapping[str, tuple[object, ...]] | None:
    """Return for which geometries a form holds, as a profile states it; None if no option or two part them.

    Values that no right answer has are not among them.
    """
    bad, good = ([choice_of(answer.draft.aim) for answer in some] for some in (wrong, right))
    geometries = [choice for choice in good if choice is not None]
    for names in _options([choice for choice in bad if choice is not None], geometries) if None not in bad else ():
        if set(names) <= set(NAMES):
            values = sorted({tuple(choice[name] for name in names) for choice in geometries})
            if len(geometries) >= max(_LEAST, _SHARE * (len(wrong) + len(right))):
                return {"names": names, "values": tuple(values)}
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
        if {tuple(c[name] for name in option) for c in bad}.isdisjoint({tuple(c[n] for n in option) for c in good}):
            yield option
