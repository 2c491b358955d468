"""Every operator of a model under pairs of profiles: equal for every input, different on one, or not decided.

The first of these steps that applies decides an operator:

1. Operators with equal preparation are equal.
2. Operators that a finite set of inputs decides are run on it.
3. For sums of products, the output stages are compared on every possible sum.
4. Otherwise, an input that differs is searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tflq.api.files import Source
from tflq.api.subject import ModelFacts, subject
from tflq.display import displayed_by
from tflq.errors import OptionError, TflqError
from tflq.inspection.equality import same_operator
from tflq.ir import Model, view
from tflq.ir.signatures import rooted_subgraphs
from tflq.kernels.exactness import SAME_LIBM
from tflq.profiles import Profile, by_name
from tflq.proof import codes, products
from tflq.proof.operator import Bound, Refusal, bind, compare
from tflq.proof.surroundings import Surroundings
from tflq.proof.trials import search
from tflq.proof.verdicts import ON_ONE_LIBM, OperatorProof, Verdict, Word


@displayed_by("prove:prove_card")
@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """All subgraphs of a model under every pair of `profiles`, for the shapes in the file."""

    model: ModelFacts
    profiles: tuple[str, ...]
    operators: tuple[OperatorProof, ...]

    def counts(self, first: str, second: str) -> dict[Word, int]:
        """Return the number of operators with each verdict under that pair."""
        words = [v.word for o in self.operators for v in o.verdicts if (v.first, v.second) == (first, second)]
        return {word: words.count(word) for word in Word}

    @property
    def word(self) -> Word:
        """The verdict on the whole: any difference first, then anything undecided."""
        words = {v.word for o in self.operators for v in o.verdicts}
        return next((w for w in (Word.DIFFERS, Word.UNDECIDED) if w in words), Word.EQUAL)


def prove(model: Source | Model, profiles: Sequence[str | Profile], signature: str | None = None) -> Proof:
    """Prove or disprove, operator by operator, that profiles give the same bits for every input of the operator.

    Inputs have the shapes that the file declares.

    Args:
        model: A path, the bytes of a file, or a Model. Operators of all its subgraphs are decided.
        profiles: Two or more, by name or value; each pair is compared.
        signature: Only the subgraphs that this signature runs.

    Raises:
        UnknownNameError: No profile or signature has that name.
        OptionError: There are fewer than two profiles.

    Example:
        >>> proof = tflq.prove("golden/models/digits_lstm_int8.tflite", ["litert-ref", "tflite-2.14-ref"])
        >>> proof.word.value
        'differs'
    """
    if len(profiles) < 2:
        raise OptionError("a proof compares at least two profiles")
    target = subject(model)
    chosen = [by_name(p) if isinstance(p, str) else p for p in profiles]
    graphs = rooted_subgraphs(target.model, signature)
    operators = [o for number, part in graphs for o in _subgraph(part, number, chosen)]
    return Proof(target.facts, tuple(p.name for p in chosen), tuple(operators))


def _subgraph(part: Model, number: int, profiles: Sequence[Profile]) -> Iterator[OperatorProof]:
    around = Surroundings(part, profiles)
    for op in view(part).ops:
        reason = around.objection(op.index)
        pairs = _Pairs([Refusal(p.name, reason) if reason else bind(part, op.index, p) for p in profiles])
        verdicts = tuple(pairs.verdict(a, b) for a, b in combinations(range(len(profiles)), 2))
        yield OperatorProof(op.index, op.name, verdicts, number)


def contrast(model: Model, index: int, base: Profile, others: Sequence[Profile]) -> tuple[Verdict, ...]:
    """Decide one operator of the first subgraph under `base` and each of the others."""
    profiles = (base, *others)
    reason = Surroundings(model, profiles).objection(index)
    pairs = _Pairs([Refusal(p.name, reason) if reason else bind(model, index, p) for p in profiles])
    return tuple(pairs.verdict(0, number) for number in range(1, len(profiles)))


class _Pairs:
    """Pairs of one operator's bindings; equal preparations are decided once."""

    def __init__(self, bound: Sequence[Bound | Refusal]) -> None:
        self._bound = bound
        self._kinds: list[Bound] = []
        self._kind = [self._kind_of(b) for b in bound]
        self._sums = [products.sums_of(b) for b in self._kinds]
        self._known: dict[tuple[int, int], Verdict] = {}

    def _kind_of(self, bound: Bound | Refusal) -> int:
        """Return the number of the first binding with the same preparation; -1 for a refusal."""
        if isinstance(bound, Refusal):
            return -1
        prepared = bound.step.prepared
        for number, kind in enumerate(self._kinds):
            if prepared is not None and kind.step.prepared is not None and same_operator(prepared, kind.step.prepared):
                return number
        self._kinds.append(bound)
        return len(self._kinds) - 1

    def verdict(self, first: int, second: int) -> Verdict:
        """Return the verdict on two bindings."""
        one, other = self._bound[first], self._bound[second]
        for refusal in (one, other):
            if isinstance(refusal, Refusal):
                return Verdict(one.profile, other.profile, Word.UNDECIDED, refusal.reason)
        kinds = self._kind[first], self._kind[second]
        if kinds[0] == kinds[1]:
            reason = "the same kernel with the same constants" + self._condition(*kinds)
            return Verdict(one.profile, other.profile, Word.EQUAL, reason)
        if kinds not in self._known:
            self._known[kinds] = self._decided(*kinds)
        known = self._known[kinds]
        reason = known.reason + (self._condition(*kinds) if known.word == Word.EQUAL else "")
        return Verdict(one.profile, other.profile, known.word, reason, known.witness)

    def _condition(self, *kinds: int) -> str:
        """Return the condition under which equal profiles mean equal runtimes, as an addition to a reason."""
        words = {self._kinds[kind].step.kernel.exactness.word for kind in kinds}
        return ON_ONE_LIBM if SAME_LIBM.word in words else ""

    def _decided(self, first: int, second: int) -> Verdict:
        one, other = self._kinds[first], self._kinds[second]
        try:
            verdict = _shown(one, other) or self._by_method(first, second)
        except TflqError as error:
            verdict = Verdict(one.profile, other.profile, Word.UNDECIDED, f"refuses some inputs: {error}")
        if verdict is not None and verdict.word != Word.UNDECIDED:
            return verdict
        witness = search(one, other)
        if witness is not None:
            return Verdict(one.profile, other.profile, Word.DIFFERS, "found by trial", witness)
        reason = "other kernels, too many inputs to run them all" if verdict is None else verdict.reason
        return Verdict(one.profile, other.profile, Word.UNDECIDED, f"{reason}; no trial distinguishes them")

    def _by_method(self, first: int, second: int) -> Verdict | None:
        one, other = self._sums[first], self._sums[second]
        if one is not None and other is not None:
            return products.decide(one, other)
        return codes.decide(self._kinds[first], self._kinds[second])


def _shown(first: Bound, second: Bound) -> Verdict | None:
    """Decide operators without inputs, or without elements in their outputs, by one run; None for all others."""
    is_empty = all(0 in bound.shape(t) for bound in (first, second) for t in bound.step.outputs)
    if first.inputs and not is_empty:
        return None
    witness = compare(first, second, {t: np.zeros(first.shape(t), first.dtype(t)) for t in first.inputs})
    word, what = (
        Word.EQUAL if witness is None else Word.DIFFERS,
        "outputs have no elements" if is_empty else "no inputs",
    )
    return Verdict(first.profile, second.profile, word, f"{what}: run once", witness)
