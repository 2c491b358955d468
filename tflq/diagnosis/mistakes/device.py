"""What a device with a mistake is to the rest: a function of one operator's inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from numpy.typing import NDArray

from tflq.ir import Model
from tflq.profiles import Profile
from tflq.surgery.part import Part

#: What a device makes of an operator's inputs, by original tensor index. It raises a TflqError where it cannot run.
Device: TypeAlias = "Callable[[Part], Mapping[int, NDArray[Any]]]"

#: A device with a mistake, and the mistake's name.
Mistaken: TypeAlias = "tuple[str, Device]"


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A mistake that others can be added to: another model of the single operator, another profile, or both."""

    name: str
    model: Model
    profile: Profile

    def device(self, part: Part) -> Mapping[int, NDArray[Any]]:
        """What it makes of the operator's inputs."""
        return part.run(part.plan(self.profile, self.model))

    def of(self, part: Part) -> Part:
        """The operator as this mistake has it, to be given another one."""
        return replace(part, model=self.model)
