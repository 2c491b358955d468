"""The profiles of a proof: those that are named, or all that take the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.engine.interpreter import make_plan
from tflq.engine.kernels.validity import SPEC
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.errors import OptionError, TflqError, brief
from tflq.model.ir import Model
from tflq.proof.operator import Refusal

#: The word for every profile of a runtime.
ALL = "all"


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The profiles that a verdict is about, and those that refuse the model, each with its reason."""

    profiles: tuple[Profile, ...]
    refused: tuple[Refusal, ...] = ()


def runtimes() -> tuple[Profile, ...]:
    """Return every profile of a runtime."""
    return tuple(p for p in PROFILES.values() if p.runtime.library != SPEC)


def select(profiles: Sequence[str | Profile] | str, parts: Sequence[Model]) -> Selection:
    """Return the named profiles; for "all", or a list that begins with it, those of them that take every subgraph.

    Raises:
        UnknownNameError: No profile has that name.
        OptionError: There are fewer than two profiles, or one is named twice.
    """
    words = [profiles] if isinstance(profiles, str) else list(profiles)
    if ALL not in words:
        if len(words) < 2:
            raise OptionError('a proof compares at least two profiles; "all" names every runtime\'s')
        return Selection(tuple(map(by_name, words)))
    named = [by_name(word) for word in words if word != ALL]
    return taking([*named, *runtimes()], parts)


def taking(profiles: Sequence[Profile], parts: Sequence[Model]) -> Selection:
    """Return the profiles, each once, by whether they take every operator of these models."""
    distinct = tuple({p.name: p for p in profiles}.values())
    refusals = {p.name: refusal for p in distinct if (refusal := _refusal(p, parts)) is not None}
    return Selection(tuple(p for p in distinct if p.name not in refusals), tuple(refusals.values()))


def _refusal(profile: Profile, parts: Sequence[Model]) -> Refusal | None:
    try:
        for part in parts:
            make_plan(part, profile)
    except TflqError as error:
        return Refusal(profile.name, brief(error))
    return None
