"""A run: cases drawn one after the other from a seed, judged, and counted by operator."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np

from opfuzz.case import Case
from opfuzz.compare import WRONG, Outcome, Verdict, judge
from opfuzz.draw import Draw
from opfuzz.evidence import Evidence
from opfuzz.families import SPECS
from opfuzz.remote import Remote

#: Operators whose outputs can hardly vary: drawn in one of ten rounds.
DULL = frozenset({"RANK", "SHAPE", "ZEROS_LIKE", "REDUCE_ANY", "REDUCE_ALL"})
#: Operators with many options: drawn three times per round.
RICH = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "BATCH_MATMUL", "STRIDED_SLICE"})
#: The least share of models with outputs that vary, for a significant run.
HONEST = 0.9


@dataclass(frozen=True)
class Judged:
    """One case of a run."""

    number: int
    case: Case
    outcome: Outcome

    @property
    def wrong(self) -> bool:
        """True if this is a difference."""
        return self.outcome.verdict in WRONG


@dataclass
class Tally:
    """The counts of a run."""

    verdicts: dict[str, Counter[Verdict]] = field(default_factory=dict)
    constant: Counter[str] = field(default_factory=Counter)
    wrong: list[Judged] = field(default_factory=list)
    evidence: Evidence = field(default_factory=Evidence)
    elements: int = 0

    def add(self, judged: Judged) -> None:
        """Count one case."""
        op, outcome = judged.case.op, judged.outcome
        self.verdicts.setdefault(op, Counter())[outcome.verdict] += 1
        self.constant[op] += outcome.verdict == Verdict.SAME and not outcome.varies
        self.elements += outcome.elements
        self.evidence.add(op, judged.case.types, judged.case.version, outcome.elements)
        if judged.wrong:
            self.wrong.append(judged)

    @property
    def models(self) -> int:
        """Number of judged models."""
        return sum(sum(counts.values()) for counts in self.verdicts.values())

    @property
    def varied(self) -> float:
        """The share of models that ran in both with outputs that vary."""
        same = sum(counts[Verdict.SAME] for counts in self.verdicts.values())
        return (same - self.constant.total()) / max(1, self.models)


def operators(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the operators that can be drawn and match one of the patterns (all if there is none)."""
    return tuple(op for op in SPECS if not patterns or any(fnmatch.fnmatch(op, p.upper()) for p in patterns))


def draw_case(seed: int, number: int) -> Case:
    """Return the case of that number; it depends only on the seed, the number and the drawing functions."""
    op = operator_of(seed, number)
    return SPECS[op](Draw(np.random.default_rng([seed, number])), op)


def operator_of(seed: int, number: int) -> str:
    """Return the operator of the case of that number: they take turns, in an order that the seed gives."""
    ops = _turns()
    round_, place = divmod(number, len(ops))
    return ops[int(_order(seed, round_)[place])]


@cache
def _turns() -> tuple[str, ...]:
    """Return ten rounds of all operators."""
    return tuple(op for op in SPECS for _ in range(1 if op in DULL else 30 if op in RICH else 10))


@lru_cache(maxsize=4)
def _order(seed: int, round_: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng([seed, round_, 0]).permutation(len(_turns()))


def numbers(seed: int, ops: Sequence[str], start: int = 0) -> Iterator[int]:
    """Yield the numbers of the cases of these operators, without end."""
    wanted, number = frozenset(ops), start
    while True:
        if operator_of(seed, number) in wanted:
            yield number
        number += 1


def judged(seed: int, chosen: Iterator[int] | Sequence[int], live: Remote) -> Iterator[Judged]:
    """Judge the cases of these numbers."""
    for number in chosen:
        case = draw_case(seed, number)
        outcome = judge(case, live)
        yield Judged(number, case, outcome)


def undrawn(table: Mapping[str, object]) -> tuple[str, ...]:
    """Return the operators of a kernel table that this fuzzer cannot draw."""
    return tuple(op for op in table if op not in SPECS)
