"""Profiles in pairs and on a model in three lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tflq.inspection.profile_effects import Effects
from tflq.inspection.profile_pairs import ProfileComparison
from tflq.report.card import Card
from tflq.report.numbers import counted
from tflq.report.profiles.lines import effects_lines, effects_verdict, pair_lines, pair_row, pair_verdict

#: Profiles that are named.
_NAMED = 8


def pair_card(found: ProfileComparison) -> Card:
    """How many operators the profiles compute otherwise, which, and the first difference."""
    verdict = pair_verdict(found.first, found.second, found.differences)
    if not found:
        return Card(verdict, "the same kernels and arithmetic for every operator", "Next: nothing to do", "good")
    op, types, field, first, second = (cell.split("\n")[0] for cell in pair_row(found.differences[0]))
    return Card(
        verdict,
        f"First: {op} ({types}), {field}: {first} against {second}",
        "Next: .differences, each with .op, .types, .primitives and .notes",
        report=lambda: pair_lines(found.first, found.second, found.differences),
    )


def effects_card(effects: Effects) -> Card:
    """How many operators of the model can give other bits, the first of them, and where the rest is."""
    verdict = effects_verdict(effects)
    first = next((o for o in effects.operators if o.effects), None)
    where = f"{counted(len(effects.operators), 'operator')} under {', '.join(effects.profiles[:_NAMED])}"
    if first is not None:
        effect = first.effects[0]
        where = f"First: operator {first.index} {first.op} under {effect.profile}: {effect.field}"
    return Card(verdict.text, where, "Next: .operators[i].effects", verdict.style, lambda: effects_lines(effects))


CARDS: Mapping[str, Callable[[Any], Card]] = {"Effects": effects_card, "ProfileComparison": pair_card}
