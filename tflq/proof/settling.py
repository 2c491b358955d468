"""Operators with different preparation that are proved to give the same bits."""

from __future__ import annotations

from dataclasses import replace

from tflq.comparison.inspection.profile_effects import Effects, OperatorEffects
from tflq.engine.api.files import Source
from tflq.engine.api.subject import subject
from tflq.engine.profiles import by_name
from tflq.model.ir import Model
from tflq.model.ir.signatures import root_subgraphs
from tflq.proof.proof import contrast
from tflq.proof.verdicts import Word


def settle(model: Source | Model, effects: Effects) -> Effects:
    """Return the effects without those that change no bit for any input; these profiles are listed as proved."""
    parts = dict(root_subgraphs(subject(model).model))
    operators = (_settle(parts[one.subgraph], effects.base, one) for one in effects.operators)
    return replace(effects, operators=tuple(operators))


def _settle(model: Model, base: str, operator: OperatorEffects) -> OperatorEffects:
    others = [by_name(effect.profile) for effect in operator.effects if effect.field != "refused"]
    if not others:
        return operator
    verdicts = contrast(model, operator.index, by_name(base), others)
    equal = tuple(verdict.second for verdict in verdicts if verdict.word == Word.EQUAL)
    left = tuple(effect for effect in operator.effects if effect.profile not in equal)
    return replace(operator, effects=left, proved=equal)
