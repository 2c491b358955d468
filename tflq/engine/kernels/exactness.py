"""How far a kernel's results can be promised to be the runtime's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exactness:
    """How far a row's results can be promised to be the runtime's own, bit by bit.

    `ulp` is the largest difference measured, where the results are only close, in units in the last place of the
    largest magnitude in its tensor: sums that cancel lose any number of their own. None if nothing is claimed.
    """

    word: str  # "exact", "exact on the same libm", "close"
    reason: str = ""
    ulp: int | None = 0

    def __str__(self) -> str:
        if self.word != "close":
            return self.word
        return "close, not measured" if self.ulp is None else f"close, {self.ulp:,} ULP measured"

    @property
    def strength(self) -> tuple[int, float]:
        """Key that orders promises: the less, the more is promised."""
        return _WORDS.index(self.word), float("inf") if self.ulp is None else self.ulp

    def after(self, sources: Iterable[Exactness]) -> Exactness:
        """Return this promise of an operator, weakened by the promises of its inputs.

        How a difference grows in the next operator was never measured.
        """
        weakest = max(sources, key=lambda promise: promise.strength, default=EXACT)
        if weakest.word == "close":
            return Exactness("close", weakest.reason, None)
        return max(self, weakest, key=lambda promise: promise.strength)


_WORDS = ("exact", "exact on the same libm", "close")
EXACT = Exactness("exact")
SAME_LIBM = Exactness("exact on the same libm", "libm's results are its version's own")


def close(reason: str, ulp: int | None = None) -> Exactness:
    """Return the promise of results that are near, but not claimed to be equal, and why."""
    return Exactness("close", reason, ulp)
