"""Find what the models have in common that a form does not reproduce, and those that it reproduces lack."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.devices.conformance.grids.geometric import choice_of
from tflq.devices.learning.answer import Answer


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
    names = list(bad[0]) if bad else []
    for some in ([(name,) for name in names], [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]):
        for option in some:
            values = {tuple(choice[name] for name in option) for choice in bad}
            if values.isdisjoint({tuple(choice[name] for name in option) for choice in good}):
                listed = " or ".join(" and ".join(map(" ".join, zip(option, v, strict=True))) for v in sorted(values))
                return f"except with {listed} {count}"
    return f"except in some geometries, the first: {', '.join(map(' '.join, bad[0].items()))} {count}"
