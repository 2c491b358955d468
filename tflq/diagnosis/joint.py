"""Causes that many operators or cases share, as values."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.diagnosis.certainty import Certainty


@dataclass(frozen=True, slots=True)
class Reproduced:
    """The cases of one kernel that a cause reproduces, bit by bit.

    `reproduced` of `cases` are reproduced, among them `failing` of `all_failing` that differ from the profile. `bits`
    are the bits of evidence of the failing ones, `needed` those that a certain cause needs.
    """

    op: str
    types: str
    reproduced: int
    cases: int
    failing: int
    all_failing: int
    bits: int = 0
    needed: int = 0

    @property
    def is_whole(self) -> bool:
        """True if every case is reproduced."""
        return self.reproduced == self.cases

    @property
    def is_certain(self) -> bool:
        """True if every case is reproduced, and with enough evidence."""
        return self.is_whole and self.bits >= self.needed


@dataclass(frozen=True, slots=True)
class JointCause:
    """One cause of failing cases of one operator or of several.

    `others` reproduce as much. `names` are the failing cases that it reproduces, `failing` counts the failing cases of
    their groups. `kernels` have its evidence, if it was compared with every case; else it was with some of each group.
    """

    name: str
    others: tuple[str, ...]
    groups: int
    failing: int
    operators: tuple[str, ...]
    names: tuple[str, ...]
    kernels: tuple[Reproduced, ...] = ()

    @property
    def certainty(self) -> Certainty | None:
        """Certain: every case of every kernel is reproduced with enough evidence, and by nothing else."""
        if not self.kernels:
            return None
        if self.others or not all(kernel.is_certain for kernel in self.kernels):
            return Certainty.LIKELY
        return Certainty.CERTAIN

    @property
    def first(self) -> str:
        """The case to look at."""
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Joint:
    """Arithmetics that were compared with every case, by the failing cases that they reproduce, most first.

    `nearest` are the kernels without one, each with the nearest arithmetic and what it reproduces. `fault` is the
    reason why something was not searched.
    """

    causes: tuple[JointCause, ...] = ()
    nearest: tuple[tuple[str, Reproduced], ...] = ()
    fault: str = ""

    @property
    def faults(self) -> tuple[str, ...]:
        """The fault, if there is one, as a sentence."""
        return (f"an arithmetic for many operators could not be searched: {self.fault}",) if self.fault else ()


#: No arithmetic was searched, or none was found.
NONE = Joint()
