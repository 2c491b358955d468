"""What is found of an operator under two profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


#: How the reason ends where profiles are equal, but runtimes only if they have the same libm.
ON_ONE_LIBM = ", on the same libm"


class Word(str, Enum):
    """The three verdicts."""

    EQUAL = "equal"  # proved for every input
    DIFFERS = "differs"  # an input was found and run under both profiles
    UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """Inputs on which two profiles give different outputs, as both were run.

    `inputs` are by tensor index of the model. `output` is the tensor, `element` the first index in it at which they
    part, `count` how many do. `first` and `second` are what the two profiles give there.
    """

    inputs: Mapping[int, Array]
    output: int
    element: tuple[int, ...]
    first: float | int
    second: float | int
    count: int
    accumulator: int | None = None  # that the input was made to reach, without the bias; None where none was


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """One operator under two profiles. `reason` says how it was proved, where they part, or what is missing."""

    first: str
    second: str
    word: Word
    reason: str
    witness: Witness | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OperatorProof:
    """One operator, by pair of profiles. `index` counts in its subgraph."""

    index: int
    op: str
    verdicts: tuple[Verdict, ...]
    subgraph: int = 0

    @property
    def place(self) -> str:
        """Its index, after that of its subgraph where this is not the first."""
        return f"{self.subgraph}:{self.index}" if self.subgraph else str(self.index)
