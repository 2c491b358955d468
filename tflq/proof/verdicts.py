"""The verdict on an operator under two profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tflq.model.ir.signatures import place_of
from tflq.typing import Array

#: The end of a reason if profiles are equal, but runtimes only with the same libm.
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
    differ, `count` the number of differing elements. `first` and `second` are the values of the two profiles there.
    """

    inputs: Mapping[int, Array]
    output: int
    element: tuple[int, ...]
    first: float | int
    second: float | int
    count: int
    accumulator: int | None = None  # the target of the input's construction, without the bias; None if there was none


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """One operator under two profiles. `reason` describes the proof, the difference, or the obstacle."""

    first: str
    second: str
    word: Word
    reason: str
    witness: Witness | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OperatorProof:
    """One operator under several profiles. `index` counts in its subgraph.

    `verdicts` compare the first profile with each of the others. `groups` are the profiles that are proved to give the
    same bits for every input, the first profile's group first; those that refuse the operator are in none.
    `accumulators` are the lowest and highest sum of products with its bias, None for operators without such sums.
    """

    index: int
    op: str
    verdicts: tuple[Verdict, ...]
    subgraph: int = 0
    groups: tuple[tuple[str, ...], ...] = ()
    accumulators: tuple[int, int] | None = None

    @property
    def place(self) -> str:
        """Its index, after that of its subgraph if this is not the first."""
        return place_of(self.subgraph, self.index)

    @property
    def word(self) -> Word:
        """The verdict on all profiles: any difference first, then anything undecided."""
        words = {v.word for v in self.verdicts}
        return next((w for w in (Word.DIFFERS, Word.UNDECIDED) if w in words), Word.EQUAL)

    @property
    def methods(self) -> tuple[str, ...]:
        """The reasons of its verdicts, each once."""
        return tuple(dict.fromkeys(v.reason for v in self.verdicts))
