"""A profile: its name, its source, its arithmetic and its kernel table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tflq.engine.kernels.table import KernelTable, Rows, table
from tflq.engine.kernels.validity import RuntimeConditions
from tflq.engine.numerics.arithmetic import Arithmetic, round_once

_NONE = table()
#: States of learned operators that have rows, and the reasons that the other states are.
_EXECUTED = ("learned", "table")
_STATES = {
    "unknown": "no form of the learner's grammar gives the device's bits",
    "unstable": "the device gave different bits for equal questions",
    "refused": "the device refused it",
    "failed": "the device crashed, hung or left malformed outputs",
    "not finished": "learning ended before; the same tflq learn continues it",
}


@dataclass(frozen=True, slots=True)
class Source:
    """The runtime that a profile models.

    `vectors` names the vector extension whose float results the profile has; empty if results depend on none.
    """

    package: str
    version: str
    resolver: str
    cpu: str
    vectors: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One runtime's exact semantics.

    `runtime` are the coordinates by which its kernels were chosen, `figures` names the profile whose measured figures
    describe its close results, `stated` holds the keys of a profile's file that change single rows.
    """

    name: str
    source: Source
    arithmetic: Arithmetic
    kernels: KernelTable
    about: str = ""
    runtime: RuntimeConditions = field(default_factory=RuntimeConditions)
    figures: str = ""
    stated: Mapping[str, Any] = field(default_factory=dict)

    def derive(
        self,
        name: str,
        source: Source | None = None,
        arithmetic: Arithmetic | None = None,
        kernels: Mapping[str, Rows] = _NONE,
        without: Collection[str] = (),
    ) -> Profile:
        """Return a profile like this one except for the arguments.

        Rows of `kernels` come before its own and replace those of the same types; the operators in `without` are left
        out.
        """
        changed = self.kernels.overlaid(kernels) if kernels else self.kernels
        return replace(
            self,
            name=name,
            source=source or self.source,
            arithmetic=arithmetic or self.arithmetic,
            kernels=changed.only(lambda op: op not in without) if without else changed,
        )

    def with_first_level_cache(self, size: int) -> Profile:
        """Return the profile on a processor with a first-level data cache of `size` bytes."""
        return replace(self, arithmetic=replace(self.arithmetic, first_level_cache=size))

    def stating(self, keys: Mapping[str, Any]) -> Profile:
        """Return the profile with the keys of a file that change single rows, beside those that it has."""
        return replace(self, stated={**self.stated, **keys})

    def within(self, limits: Callable[[KernelTable], KernelTable]) -> Profile:
        """Return a profile with what `limits` leaves of its kernels."""
        return replace(self, kernels=limits(self.kernels))

    @property
    def is_learned(self) -> bool:
        """True if the profile was learned from a device: it knows nothing of what it refuses."""
        return "learned" in self.stated

    def unlearned(self, op: str, types: str) -> str:
        """Return why a learned profile lacks an operator of some types; empty if it was not learned, or has it."""
        if not self.is_learned:
            return ""
        listed = self.stated["learned"].get("operators")
        asked = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
        states = {str(one.get("types")): str(one.get("state")) for one in asked if one.get("op") == op}
        if states.get(types) in _EXECUTED:
            return ""
        if types in states:
            return f"not learned: {_STATES.get(states[types], 'no finding')}"
        other = " with these types" if states else ""
        return f"not learned: the device was not asked about it{other}; tflq learn --operators {op} asks it"

    def with_single_rounding(self) -> Profile:
        """Return a profile in which every requantizer that rounds twice rounds once.

        Source: TFLITE_SINGLE_ROUNDING, which CMSIS-NN's option, TOSA and many NPUs share.
        """
        return self.derive(f"{self.name}+single-rounding", arithmetic=round_once(self.arithmetic))
