"""Every operator of a model under pairs of profiles: equal for every input, different on one, or not decided.

In this order: what is prepared alike is equal; operators that a finite set of inputs decides are run on it; of sums of
products the output stages are compared on every sum that can occur; what is left is searched for an input that tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tflq.api.files import Source
from tflq.api.subject import ModelFacts, subject
from tflq.errors import TflqError
from tflq.inspection.equality import same_operator
from tflq.ir import Model
from tflq.profiles import Profile, by_name
from tflq.proof import codes, products
from tflq.proof.operator import Bound, Refusal, bind
from tflq.proof.trials import search
from tflq.proof.verdicts import OperatorProof, Verdict, Word
from tflq.telling import told


@told("prove")
@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """A model's first subgraph under every pair of `profiles`."""

    model: ModelFacts
    profiles: tuple[str, ...]
    operators: tuple[OperatorProof, ...]

    def counts(self, first: str, second: str) -> dict[Word, int]:
        """How many operators have each verdict under that pair."""
        words = [v.word for o in self.operators for v in o.verdicts if (v.first, v.second) == (first, second)]
        return {word: words.count(word) for word in Word}

    @property
    def word(self) -> Word:
        """The whole in one word: any difference first, then anything undecided."""
        words = {v.word for o in self.operators for v in o.verdicts}
        return next((w for w in (Word.DIFFERS, Word.UNDECIDED) if w in words), Word.EQUAL)


def prove(model: Source | Model, profiles: Sequence[str | Profile]) -> Proof:
    """Prove or disprove, operator by operator, that profiles give the same bits for every input of the operator.

    Args:
        model: A path, the bytes of a file, or a Model. Its first subgraph is looked at.
        profiles: Two or more, by name or value; each pair is compared.

    Raises:
        UnknownNameError: No profile has that name.

    Example:
        >>> proof = tflq.prove("golden/models/digits_lstm_int8.tflite", ["litert-ref", "tflite-2.14-ref"])
        >>> proof.word.value
        'differs'
    """
    target = subject(model)
    chosen = [by_name(p) if isinstance(p, str) else p for p in profiles]
    count = len(target.model.subgraphs[0].operators)
    operators = tuple(prove_operator(target.model, index, chosen) for index in range(count))
    return Proof(target.facts, tuple(p.name for p in chosen), operators)


def prove_operator(model: Model, index: int, profiles: Sequence[Profile]) -> OperatorProof:
    """One operator of the first subgraph under every pair of profiles."""
    code = model.operator_codes[model.subgraphs[0].operators[index].opcode_index]
    pairs = _Pairs([bind(model, index, profile) for profile in profiles])
    verdicts = tuple(pairs.verdict(a, b) for a, b in combinations(range(len(profiles)), 2))
    return OperatorProof(index, code.custom_code or code.name if code.name == "CUSTOM" else code.name, verdicts)


def contrast(model: Model, index: int, base: Profile, others: Sequence[Profile]) -> tuple[Verdict, ...]:
    """One operator of the first subgraph under `base` and each of the others."""
    pairs = _Pairs([bind(model, index, profile) for profile in (base, *others)])
    return tuple(pairs.verdict(0, number) for number in range(1, len(others) + 1))


class _Pairs:
    """Pairs of one operator's bindings; those that are prepared alike are decided once."""

    def __init__(self, bound: Sequence[Bound | Refusal]) -> None:
        self._bound = bound
        self._kinds: list[Bound] = []
        self._kind = [self._kind_of(b) for b in bound]
        self._sums = [products.sums_of(b) for b in self._kinds]
        self._known: dict[tuple[int, int], Verdict] = {}

    def _kind_of(self, bound: Bound | Refusal) -> int:
        """The number of the first binding that is prepared alike; -1 for a refusal."""
        if isinstance(bound, Refusal):
            return -1
        prepared = bound.step.prepared
        for number, kind in enumerate(self._kinds):
            if prepared is not None and kind.step.prepared is not None and same_operator(prepared, kind.step.prepared):
                return number
        self._kinds.append(bound)
        return len(self._kinds) - 1

    def verdict(self, first: int, second: int) -> Verdict:
        """The verdict on two bindings."""
        one, other = self._bound[first], self._bound[second]
        for refusal in (one, other):
            if isinstance(refusal, Refusal):
                return Verdict(one.profile, other.profile, Word.UNDECIDED, refusal.reason)
        kinds = self._kind[first], self._kind[second]
        if kinds[0] == kinds[1]:
            return Verdict(one.profile, other.profile, Word.EQUAL, "the same kernel with the same constants")
        if kinds not in self._known:
            self._known[kinds] = self._decided(*kinds)
        known = self._known[kinds]
        return Verdict(one.profile, other.profile, known.word, known.reason, known.witness)

    def _decided(self, first: int, second: int) -> Verdict:
        one, other = self._kinds[first], self._kinds[second]
        sums = self._sums[first], self._sums[second]
        verdict = None
        if sums[0] is not None and sums[1] is not None:
            verdict = products.decide(sums[0], sums[1])
        else:
            try:
                verdict = codes.decide(one, other)
            except TflqError as error:
                verdict = Verdict(one.profile, other.profile, Word.UNDECIDED, f"refuses some inputs: {error}")
        if verdict is not None and verdict.word != Word.UNDECIDED:
            return verdict
        witness = search(one, other)
        if witness is not None:
            return Verdict(one.profile, other.profile, Word.DIFFERS, "found by trial", witness)
        reason = "other kernels, too many inputs to run them all" if verdict is None else verdict.reason
        return Verdict(one.profile, other.profile, Word.UNDECIDED, f"{reason}; no trial tells them apart")
