"""A device with a mistake: a function of one operator's inputs. An error while listing mistakes loses one source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model
from tflq.typing import Array

Values: TypeAlias = "Mapping[int, Array]"
#: A device's results for an operator's inputs, by original tensor index. It raises a TflqError if it cannot run.
Device: TypeAlias = "Callable[[Part], Values]"

#: A device with a mistake, and the mistake's name.
Mistaken: TypeAlias = "tuple[str, Device]"


@dataclass(frozen=True, slots=True, eq=False)
class Under:
    """A device that runs the operator under a profile, and another model of it if one is given."""

    profile: Profile
    model: Model | None = None

    def __call__(self, part: Part) -> Values:
        """Bind the operator and run it."""
        return part.run(part.plan(self.profile, self.model))


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """Another order or reading of an array's elements, and its inverse."""

    there: Callable[[Array], Array]
    back: Callable[[Array], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A mistake: another profile or model of the single operator, or other forms of its inputs or of all its results.

    `run` computes the results, if these parts do not describe the mistake. Only a mistake with a profile can come
    before another one: see `of` and `under`.
    """

    name: str
    profile: Profile | None = None
    model: Model | None = None
    given: Mapping[int, Turn] = field(default_factory=dict)
    made: Turn | None = None
    run: Device | None = None

    def device(self, part: Part) -> Values:
        """Return the results of the operator's inputs."""
        if self.run is not None:
            return self.run(part)
        return self.under(lambda turned: turned.run(turned.plan(self.first)))(part)

    @property
    def first(self) -> Profile:
        """The profile under which another mistake is searched."""
        assert self.profile is not None
        return self.profile

    def of(self, part: Part) -> Part:
        """Return the operator with this mistake, and the results before their form changes."""
        inputs = {t: self.given[t].there(x) if t in self.given else x for t, x in part.inputs.items()}
        got = part.got if self.made is None else {t: self.made.back(y) for t, y in part.got.items()}
        return replace(part, model=self.model or part.model, inputs=inputs, got=got)

    def under(self, second: Device) -> Device:
        """Return the device that also makes another mistake."""

        def device(part: Part) -> Values:
            values = second(self.of(part))
            turn = self.made
            return values if turn is None else {t: turn.there(values[t]) for t in part.got if t in values}

        return device


#: The changes that a module of mistakes yields for an operator and the profile that it should follow.
Source: TypeAlias = "Callable[[Part, Profile], Iterable[Change]]"


def running(found: Callable[[Part, Profile], Iterable[Mistaken]]) -> Source:
    """Return a source of devices as a source of changes, none of which can come before another mistake."""
    return lambda alone, profile: (Change(name, run=device) for name, device in found(alone, profile))


def guard(name: str, source: Source, alone: Part, profile: Profile) -> Iterator[Change]:
    """Yield a source's changes. If listing them raises, yield one more, named after the source, that raises when run.

    A refusal (TflqError) ends the list: the operator cannot have these mistakes.
    """
    try:
        yield from source(alone, profile)
    except TflqError:
        return
    except Exception as error:
        yield Change(f"mistakes in {name}", run=raising(error))


def raising(error: Exception) -> Device:
    """Return a device that raises an error from its construction."""

    def device(_alone: Part) -> Values:
        raise error

    return device
