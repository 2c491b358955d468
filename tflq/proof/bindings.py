"""One operator bound under several profiles: pairs of them are decided, and profiles with the same bits are grouped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.comparison.inspection.equality import same_operator
from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.errors import TflqError
from tflq.model.ir import OperatorView
from tflq.proof import codes, holding, products
from tflq.proof.operator import Bound, Held, Refusal, compare
from tflq.proof.trials import search
from tflq.proof.verdicts import ON_ONE_LIBM, Verdict, Word


class Bindings:
    """Bindings of one operator, by position. Equal preparations are one *kind*, and each pair of kinds is decided once.

    Equality of bits is an equivalence, so that kinds fall into groups: a kind that equals one of a group equals all.
    """

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
        return self._refuse(first, second) or self._name(first, second, self._kind[first], self._kind[second])

    def against_first(self) -> tuple[Verdict, ...]:
        """Return the verdict on the first binding and each of the others, also by way of a third one."""
        is_bound = isinstance(self._bound[0], Bound)
        group = self._groups()[0] if is_bound else []
        return tuple(self._against(group, number) for number in range(1, len(self._bound)))

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of profiles that are proved to give the same bits, the first profile's group first.

        Profiles that refuse the operator are in none.
        """
        return tuple(
            tuple(b.profile for b, kind in zip(self._bound, self._kind, strict=True) if kind in group)
            for group in self._groups()
        )

    def accumulators(self) -> tuple[int, int] | None:
        """Return the lowest and highest sum of products with its bias; None if the operator is none with weights."""
        sums = next((s for s in self._sums if s is not None), None)
        return None if sums is None else sums.with_bias

    def given(self, op: OperatorView, held: Mapping[int, Held]) -> Held | None:
        """Return the values that the operator's outputs can hold; None if they can hold any of their type."""
        if any(isinstance(bound, Refusal) for bound in self._bound):
            return None
        return holding.given(op, self._kinds, self._sums, held)

    def _groups(self) -> list[list[int]]:
        """Return kinds, grouped. A kind that no member of a group is proved equal to begins another."""
        groups: list[list[int]] = []
        for kind in range(len(self._kinds)):
            group = next((group for group in groups if self._joins(group, kind)), None)
            if group is None:
                groups.append([kind])
            else:
                group.append(kind)
        return groups

    def _joins(self, group: Sequence[int], kind: int) -> bool:
        """Return whether a member is proved equal; the first member that differs shows that none is."""
        words = (self._decide(member, kind).word for member in group)
        return next((word for word in words if word != Word.UNDECIDED), None) == Word.EQUAL

    def _against(self, group: Sequence[int], number: int) -> Verdict:
        """Return the verdict on the first binding, whose group is given, and another one."""
        direct = self.verdict(0, number)
        if direct.word != Word.UNDECIDED or self._kind[number] not in group:
            return direct
        between = next(k for k in group if self._decide(k, self._kind[number]).word == Word.EQUAL)
        reason = f"both are equal to {self._kinds[between].profile}" + self._condition(*group)
        return Verdict(direct.first, direct.second, Word.EQUAL, reason)

    def _refuse(self, first: int, second: int) -> Verdict | None:
        one, other = self._bound[first], self._bound[second]
        refusal = next((b for b in (one, other) if isinstance(b, Refusal)), None)
        return None if refusal is None else Verdict(one.profile, other.profile, Word.UNDECIDED, refusal.reason)

    def _name(self, first: int, second: int, *kinds: int) -> Verdict:
        """Return the verdict on two kinds with the names of two bindings."""
        names = self._bound[first].profile, self._bound[second].profile
        if kinds[0] == kinds[1]:
            return Verdict(*names, Word.EQUAL, "the same kernel with the same constants" + self._condition(*kinds))
        known = self._decide(*kinds)
        reason = known.reason + (self._condition(*kinds) if known.word == Word.EQUAL else "")
        return Verdict(*names, known.word, reason, known.witness)

    def _condition(self, *kinds: int) -> str:
        """Return the condition under which equal profiles mean equal runtimes, as an addition to a reason."""
        words = {self._kinds[kind].step.kernel.exactness.word for kind in kinds}
        return ON_ONE_LIBM if SAME_LIBM.word in words else ""

    def _decide(self, first: int, second: int) -> Verdict:
        """Return the verdict on two different kinds."""
        if (first, second) not in self._known:
            self._known[first, second] = self._found(first, second)
        return self._known[first, second]

    def _found(self, first: int, second: int) -> Verdict:
        one, other = self._kinds[first], self._kinds[second]
        try:
            verdict = _show(one, other) or self._by_method(first, second)
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


def _show(first: Bound, second: Bound) -> Verdict | None:
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
