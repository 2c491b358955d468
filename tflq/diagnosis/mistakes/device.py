"""A device with a mistake: a function of one operator's inputs. A fault in listing mistakes costs one source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from numpy.typing import NDArray

from tflq.errors import TflqError
from tflq.ir import Model
from tflq.profiles import Profile
from tflq.surgery.part import Part

Values: TypeAlias = "Mapping[int, NDArray[Any]]"
#: What a device makes of an operator's inputs, by original tensor index. It raises a TflqError where it cannot run.
Device: TypeAlias = "Callable[[Part], Values]"

#: A device with a mistake, and the mistake's name.
Mistaken: TypeAlias = "tuple[str, Device]"


@dataclass(frozen=True, slots=True, eq=False)
class Under:
    """A device that runs the operator under a profile, of another model of it where there is one."""

    profile: Profile
    model: Model | None = None

    def __call__(self, part: Part) -> Values:
        """Bind and run."""
        return part.run(part.plan(self.profile, self.model))


def guarded(source: str, found: Callable[[], Iterable[Mistaken]]) -> Iterator[Mistaken]:
    """Yield mistakes. If listing them raises, yield one more, named after its source, that raises when it is run.

    A refusal (TflqError) ends the list: the operator cannot have these mistakes.
    """
    try:
        yield from found()
    except TflqError:
        return
    except Exception as error:
        yield f"mistakes in {source}", raising(error)


def raising(error: Exception) -> Device:
    """Return a device that raises an error that came up when it was made."""

    def device(_alone: Part) -> Values:
        raise error

    return device


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """Another order or reading of an array's elements, and what brings them back."""

    there: Callable[[NDArray[Any]], NDArray[Any]]
    back: Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A mistake that others can be added to: another model of the single operator, another profile, other forms of what
    it is given (by input) or of all that it makes.
    """

    name: str
    model: Model
    profile: Profile
    given: Mapping[int, Turn] = field(default_factory=dict)
    made: Turn | None = None

    def device(self, part: Part) -> Values:
        """What it makes of the operator's inputs."""
        return self.under(lambda turned: turned.run(turned.plan(self.profile)))(part)

    def of(self, part: Part) -> Part:
        """Return the operator as this mistake has it, with what it would have made but for the results' form."""
        inputs = {t: self.given[t].there(x) if t in self.given else x for t, x in part.inputs.items()}
        got = part.got if self.made is None else {t: self.made.back(y) for t, y in part.got.items()}
        return replace(part, model=self.model, inputs=inputs, got=got)

    def under(self, second: Device) -> Device:
        """Return the device that makes another mistake as well."""

        def device(part: Part) -> Values:
            values = second(self.of(part))
            turn = self.made
            return values if turn is None else {t: turn.there(values[t]) for t in part.got if t in values}

        return device
