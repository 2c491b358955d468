"""A run: cases drawn one after the other from a seed, proved, and searched for contradictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.compare import difference_of
from opfuzz.remote import Ran, Remote
from prooffuzz.draw import draw_case
from prooffuzz.refute import counterexample, feeds
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.flatbuf import read
from tflq.model.ir import Model
from tflq.proof import ProfileVerdict, Word
from tflq.proof.operator import BoundOperator, bind
from tflq.proof.proof import pairs

#: Profiles, of which each case uses some.
PROFILES = (
    "litert-ref",
    "litert-opt",
    "litert-xnnpack",
    "litert-xnnpack-arm64",
    "litert-opt-arm64",
    "litert-1.0-opt",
    "litert-1.0-xnnpack",
    "tflite-2.14-ref",
    "tflite-2.14-opt",
    "tflite-2.14-opt-arm64",
    "tflite-2.12-opt",
    "tflite-2.9-opt",
    "tf-2.5-opt",
    "tf-2.3-opt",
    "tf-1.15-ref",
    "tf-1.15-opt",
    "tflm",
    "tflm-cmsis-nn",
    "litert-ref+single-rounding",
)
#: Beginning of the reason for two kernels with equal preparation.
_SAME = "the same kernel"
#: Profiles that LiteRT itself runs, and its resolvers.
LIVE = {"litert-ref": "BUILTIN_REF", "litert-opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "litert-xnnpack": "BUILTIN"}
#: Number of inputs for LiteRT.
_LIVE_INPUTS = 40
#: Numbers of profiles that are compared per case, and of inputs for kernels with equal preparation.
_AT_ONCE, _ALIKE = 7, 40


@dataclass(frozen=True)
class Contradiction:
    """A verdict "equal", and an input on which the two differ."""

    number: int
    form: str
    case: Case
    verdict: ProfileVerdict
    feed: Mapping[int, Array]
    where: str = ""

    def __str__(self) -> str:
        v = self.verdict
        fed = {tensor: value.reshape(-1)[:24].tolist() for tensor, value in self.feed.items()}
        return f"case {self.number} ({self.form}): {v.first}, {v.second}: {v.reason} {self.where}\n{self.case}\n  {fed}"


@dataclass
class Tally:
    """Counts of a run. A proof is a pair of kernels with different preparation, or one pair with equal preparation."""

    drawn: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    words: Counter[tuple[str, str]] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    live: int = 0
    wrong: list[Contradiction] = field(default_factory=list)

    @property
    def equal(self) -> int:
        """Number of verdicts "equal" that were searched for a contradiction."""
        return sum(self.ways.values())


class Search:
    """One seed's cases, under some of `profiles` each.

    `live` is the share of pairs proved equal that are also run in LiteRT; `python` is the command of a Python with it.
    """

    def __init__(
        self, seed: int, live: float = 0.0, python: Sequence[str] = (), profiles: Sequence[str] = PROFILES
    ) -> None:
        self._seed, self._share, self._python, self._profiles = seed, live, python, profiles
        self._remotes: dict[str, Remote] = {}

    def run(self, numbers: Iterator[int] | Sequence[int], tally: Tally) -> Iterator[int]:
        """Judge the cases of these numbers; yield each number when it is done."""
        for number in numbers:
            self._judge(number, tally)
            yield number

    def close(self) -> None:
        """End the runtimes."""
        for remote in self._remotes.values():
            remote.close()

    def _judge(self, number: int, tally: Tally) -> None:
        rng = np.random.default_rng([self._seed, number, 1])
        form, case = draw_case(self._seed, number)
        tally.drawn[form] += 1
        try:
            model = read(case.model())
        except (TflqError, OverflowError):  # for a case that no file can hold
            tally.refused += 1
            return
        taking = (
            name
            for name in rng.permutation(np.array(self._profiles))
            if isinstance(bind(model, 0, by_name(name)), BoundOperator)
        )
        names = list(islice(taking, _AT_ONCE))
        if len(names) < 2:
            tally.refused += 1
            return
        verdicts = pairs(model, 0, [by_name(name) for name in names])
        for verdict in _distinct(verdicts):
            tally.words[form, verdict.word.value] += 1
            if verdict.word == Word.EQUAL:
                tally.ways[_way(verdict)] += 1
                self._contradict(number, form, case, model, verdict, rng, tally)

    def _contradict(
        self,
        number: int,
        form: str,
        case: Case,
        model: Model,
        verdict: ProfileVerdict,
        rng: np.random.Generator,
        tally: Tally,
    ) -> None:
        bound = [bind(model, 0, by_name(name)) for name in (verdict.first, verdict.second)]
        first, second = bound
        if not isinstance(first, BoundOperator) or not isinstance(second, BoundOperator):
            raise TypeError(f"equal, but refused: {bound}")
        feed = counterexample(first, second, rng, _ALIKE if verdict.reason.startswith(_SAME) else None)
        if feed is not None:
            tally.wrong.append(Contradiction(number, form, case, verdict, feed))
        elif {verdict.first, verdict.second} <= LIVE.keys() and rng.random() < self._share:
            self._ask(number, form, case, verdict, first, second, rng, tally)

    def _ask(
        self,
        number: int,
        form: str,
        case: Case,
        verdict: ProfileVerdict,
        first: BoundOperator,
        second: BoundOperator,
        rng: np.random.Generator,
        tally: Tally,
    ) -> None:
        """Compare both in LiteRT."""
        every = list(feeds(first, second, rng))
        fed = [every[i] for i in rng.permutation(len(every))[:_LIVE_INPUTS]]
        samples = tuple(tuple(feed[t] for t in first.inputs) for feed in fed)
        results = [self._remote(name).run(replace(case, samples=samples)) for name in (verdict.first, verdict.second)]
        one, other = results
        if not isinstance(one, Ran) or not isinstance(other, Ran):
            return
        tally.live += 1
        for feed, mine, theirs in zip(fed, one.outputs, other.outputs, strict=True):
            said = [difference_of(a, b) for a, b in zip(mine, theirs, strict=True)]
            if any(said):
                tally.wrong.append(Contradiction(number, form, case, verdict, feed, f"LiteRT: {said}"))
                return

    def _remote(self, profile: str) -> Remote:
        if profile not in self._remotes:
            self._remotes[profile] = Remote(self._python, "ai_edge_litert.interpreter", LIVE[profile], 60)
        return self._remotes[profile]


def _distinct(verdicts: Sequence[ProfileVerdict]) -> Iterator[ProfileVerdict]:
    """Yield one verdict for each pair of kernels with different preparation, and one with equal preparation."""
    kind: dict[str, str] = {}
    alike = [v for v in verdicts if v.reason.startswith(_SAME)]
    for verdict in alike:
        kind[verdict.second] = kind.setdefault(verdict.first, verdict.first)
    yield from alike[:1]
    known: set[frozenset[Any]] = set()
    for verdict in verdicts:
        pair = frozenset(kind.get(name, name) for name in (verdict.first, verdict.second))
        if len(pair) > 1 and pair not in known:
            known.add(pair)
            yield verdict


def _way(verdict: ProfileVerdict) -> str:
    """Return the kind of proof, without numbers."""
    words = (_SAME, "no input reaches", "breakpoints", "all sums", "place", "sums of", "run once")
    return next((word for word in words if word in verdict.reason), verdict.reason)
