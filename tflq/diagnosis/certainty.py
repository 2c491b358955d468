"""The rule by which a cause is certain, and the evidence against it.

A cause that reproduces every bit was selected from many hypotheses, so a wrong one may fit by chance. Model of a wrong
hypothesis: on each telling element, independently, it gives the dump's value with probability at most 1/2. If the value
lies d LSB (or ULP) from the profile's, and no other element has this distance, the probability is at most 1/(2d). A
telling element differs from the profile, lies inside its type's range, and repeats no other one. So n of them are n
bits of evidence, and each distance d among them adds log2(d). Of `tried` hypotheses with different results, tried *
2**-bits wrong ones are then expected to reproduce all of these elements.

- certain: at most 1/1024 of a wrong one is expected, so bits >= log2(tried) + 10;
- likely: at most 1/2, so bits >= log2(tried) + 1;
- below that, a wrong hypothesis is to be expected, and no cause is named.

A certain cause also needs several stimuli and no rival: every other hypothesis that reproduces every bit must be proved
to be the same function. If the cause does not hold for other operators of the same kernel, or if inputs were computed
and not dumped, twice as many bits are needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.difference import difference, digest_of, unequal
from tflq.diagnosis.hypotheses import HypothesisKind, Results
from tflq.engine.api.many import Part
from tflq.engine.kernels.facts import OPERATORS
from tflq.typing import Array

#: Binary orders of magnitude by which telling elements must outweigh the tried hypotheses.
_CERTAIN, _LIKELY = 10, 1
#: Operators whose results in one row, along the last axis, depend on the same elements of the input.
_BY_ROWS = frozenset(op for op, fact in OPERATORS.items() if fact.by_rows)
#: Operators with separate constants for every channel.
_BY_CHANNEL = frozenset(op for op, fact in OPERATORS.items() if fact.by_channel)


class Certainty(str, Enum):
    """How reliable a named cause is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Weighed:
    """The evidence of a dump on one operator.

    `telling` counts distinct elements, `stimuli` distinct inputs of these, `tried` hypotheses with different results:
    those of a kind and of all kinds before it. `far` is the number of bits that their distances from the profile add.
    """

    telling: int = 0
    stimuli: int = 0
    tried: Mapping[HypothesisKind, int] = field(default_factory=dict)
    far: int = 0

    @property
    def bits(self) -> int:
        """Binary orders of magnitude of the dump's evidence against wrong hypotheses."""
        return self.telling + self.far

    def needed(self, kind: HypothesisKind, *, is_doubted: bool, certainty: Certainty = Certainty.CERTAIN) -> int:
        """Return the bits of evidence that a cause of that kind needs."""
        bits = math.log2(max(1, self.tried.get(kind, 1)))
        needed = math.ceil(bits) + (_CERTAIN if certainty == Certainty.CERTAIN else _LIKELY)
        return 2 * needed if is_doubted else needed

    def reaches(self, kind: HypothesisKind, *, is_doubted: bool) -> Certainty:
        """Return the certainty that a cause of that kind can reach by the bits of evidence alone."""
        for certainty in (Certainty.CERTAIN, Certainty.LIKELY):
            if self.bits >= self.needed(kind, is_doubted=is_doubted, certainty=certainty):
                return certainty
        return Certainty.NONE


def evidence_of(pairs: list[tuple[Part, Results]], tried: Mapping[HypothesisKind, int]) -> Weighed:
    """Return the evidence of samples; each is an operator with its dumped results, and the profile's."""
    seen = [_seen(alone, values, k) for k, (alone, values) in enumerate(_distinct(pairs))]
    keys = {key for sample, _, _ in seen for key in sample}
    distances = {d for _, _, sample in seen for d in sample}
    far = math.floor(sum(math.log2(d) for d in distances))
    return Weighed(len(keys), sum(len(places) for _, places, _ in seen), tried, far)


def _distinct(pairs: list[tuple[Part, Results]]) -> list[tuple[Part, Results]]:
    """Return samples with distinct inputs."""
    kept = {digest_of(part.inputs.values()): (part, values) for part, values in pairs}
    return list(kept.values())


def _seen(alone: Part, values: Results, sample: int) -> tuple[set[Any], set[Any], set[int]]:
    """Return the telling elements by channel, expected and dumped value; their inputs; and their distances."""
    keys: set[Any] = set()
    places: set[Any] = set()
    apart: set[int] = set()
    name = alone.op.builtin
    for tensor, dumped in alone.got.items():
        expected = values.get(tensor)
        if expected is None or (expected.shape, expected.dtype) != (dumped.shape, dumped.dtype):
            continue
        at = np.flatnonzero(_inside(unequal(expected, dumped), dumped))
        channels = dumped.shape[-1] if dumped.ndim else 1
        channel = at % channels if name in _BY_CHANNEL else np.zeros_like(at)
        before, after = (_numbers(array.reshape(-1)[at]) for array in (expected, dumped))
        keys |= {(tensor, *key) for key in zip(channel.tolist(), before, after, strict=True)}
        apart |= _distances(expected.reshape(-1)[at], dumped.reshape(-1)[at])
        rows = at // channels if name in _BY_ROWS else at
        places |= {(sample, tensor, row) for row in np.unique(rows).tolist()}
    return keys, places, apart


def inside(values: Array) -> int:
    """Return the number of elements that are neither the lowest nor the highest of their type."""
    return int(np.count_nonzero(_inside(np.ones(values.shape, bool), values)))


def _inside(apart: NDArray[np.bool_], dumped: Array) -> NDArray[np.bool_]:
    """Return the mask without results at the ends of their type, where any overshoot saturates."""
    if dumped.dtype.kind not in "iu":
        return apart
    limits = np.iinfo(dumped.dtype)
    between: NDArray[np.bool_] = apart & (dumped != limits.min) & (dumped != limits.max)
    return between


def _distances(expected: Array, dumped: Array) -> set[int]:
    """Return the distances between elements: in LSB, or in ULP up to the histogram's reach for other types."""
    if expected.dtype.kind in "iu" and expected.dtype.itemsize < 8:
        return set(np.unique(np.abs(dumped.astype(np.int64) - expected)).tolist())
    return {abs(d) for d, _ in difference(expected, dumped).histogram if d}


def _numbers(values: Array) -> list[Any]:
    """Return elements that can be compared and hashed bit by bit."""
    return [value.tobytes() for value in values] if values.dtype.kind in "fc" else values.tolist()
