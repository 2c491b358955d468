"""One operator bound under several profiles: pairs of them are decided, and profiles with the same bits are grouped.

The values that tensors can hold in a model, as far as the operators before them limit these.

A tensor that is not listed can hold every value of its type. What is listed is never too little: it is the union over
all profiles, and of operators only that are exact under every profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tflq.comparison.inspection.prepared import same_operator
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.fact import JOINS
from tflq.engine.kernels.kernel import SAME_LIBM
from tflq.errors import TflqError
from tflq.model.ir import OperatorView
from tflq.proof import codes, products
from tflq.proof.codes import search
from tflq.proof.operator import ON_ONE_LIBM, BoundOperator, Held, ProfileVerdict, Undecidable, Word, compare
from tflq.proof.products import ReachedSums
from tflq.typing import Array

#: Limit on the values that are listed of one tensor.
_MOST = 1 << 12
#: Operators that also write the zero point, or 0 where a runtime disregards it.
_FILLING = frozenset(("PAD", "SPACE_TO_BATCH_ND"))
#: Operators of which the first operand may be a table.
_LOOKUP = "GATHER"


def holding_given(
    op: OperatorView, kinds: Sequence[BoundOperator], sums: Sequence[ReachedSums | None], held: Mapping[int, Held]
) -> Held | None:
    """Return the values that an operator's outputs can hold; None if they can hold any.

    `kinds` are its bindings, `sums` the same as sums of products, `held` what is known of the model's tensors.
    """
    name = f"{op.name} {op.index}"
    fact = OPERATORS.get(op.name)
    try:
        if all(one is not None for one in sums):
            return _limit(_between(op, [one for one in sums if one is not None]), (name,))
        if op.name == _LOOKUP and _is_inside(op, held):
            return _limit(_unique(op, op.inputs[0]), (name,))
        if fact is not None and fact.quantize is not None and (fact.moves != () or fact.quantize == JOINS):
            return _move(op, held)
        images = [codes.image(kind) for kind in kinds]
    except TflqError:
        return None  # refused inputs: the operator is not decided either
    values = [one for one in images if one is not None]
    return _limit(codes.distinct(np.concatenate(values)), (name,)) if len(values) == len(kinds) else None


def _limit(values: Array | None, makers: tuple[str, ...]) -> Held | None:
    """Return the values unless they are too many, or all of their type."""
    if values is None or len(values) > _MOST or values.dtype.kind not in "iuf":
        return None
    is_every = values.dtype.itemsize == 1 and len(values) == 256
    return None if is_every or not len(values) else Held(values, makers)


def _between(op: OperatorView, sums: Sequence[ReachedSums]) -> Array | None:
    """Return the codes that the clamps of all output stages leave."""
    low = min(int(one.output.pipeline.clamp.low) for one in sums)
    high = max(int(one.output.pipeline.clamp.high) for one in sums)
    dtypes = {np.dtype(one.output.pipeline.dtype) for one in sums}
    return np.arange(low, high + 1).astype(dtypes.pop()) if len(dtypes) == 1 and high - low < _MOST else None


def _unique(op: OperatorView, tensor: int) -> Array | None:
    value = op.graph.constant(tensor)
    return None if value is None or value.dtype.kind not in "iu" else np.unique(value)


def _is_inside(op: OperatorView, held: Mapping[int, Held]) -> bool:
    """Return whether the indices of a lookup in a constant table are all places of it: others read anything."""
    table = op.graph.constant(op.inputs[0])
    if table is None or len(op.inputs) < 2 or op.inputs[1] not in held:
        return False
    places, axis = held[op.inputs[1]].values, int(op.options["axis"]) if op.options is not None else 0
    inside = -table.ndim <= axis < table.ndim and int(op.options["batch_dims"] if op.options is not None else 0) == 0
    return inside and bool(places.min() >= 0 and places.max() < table.shape[axis])


def _move(op: OperatorView, held: Mapping[int, Held]) -> Held | None:
    """Return the values that an operator copies; None if one of its operands can hold any, or is rescaled."""
    positions = OPERATORS[op.name].moves or range(len(op.inputs))
    tensors = [op.inputs[position] for position in positions if position < len(op.inputs)]
    if any(not _is_alike(op, tensor, output) for tensor in tensors for output in op.outputs):
        return None
    values = [_values(op, tensor, held) for tensor in tensors]
    known = [one for one in values if one is not None]
    if not known or len(known) < len(values):
        return None
    filled = list(_fillings(op, known[0].dtype)) if op.name in _FILLING else []
    makers = tuple(dict.fromkeys(maker for tensor in tensors if tensor in held for maker in held[tensor].makers))
    return _limit(codes.distinct(np.concatenate([*known, *filled])), makers) if makers else None


def _values(op: OperatorView, tensor: int, held: Mapping[int, Held]) -> Array | None:
    return held[tensor].values if tensor in held else _unique(op, tensor)


def _fillings(op: OperatorView, dtype: np.dtype[np.generic]) -> Iterator[Array]:
    yield np.array([0, op.graph.zero_point(op.outputs[0])]).astype(dtype)


def _is_alike(op: OperatorView, tensor: int, output: int) -> bool:
    """Return whether a tensor has the type, the scale and the zero point of an output."""
    one, other = op.graph.operand(tensor), op.graph.operand(output)
    if one is None or other is None or one.type != other.type:
        return False
    quantizations = one.quantization, other.quantization
    if quantizations[0] is None or quantizations[1] is None:
        return quantizations[0] is quantizations[1]
    return all(
        np.array_equal(getattr(quantizations[0], field), getattr(quantizations[1], field))
        for field in ("scale", "zero_point")
    )


class Bindings:
    """Bindings of one operator, by position. Equal preparations are one *kind*, and each pair of kinds is decided once.

    Equality of bits is an equivalence, so that kinds fall into groups: a kind that equals one of a group equals all.
    """

    def __init__(self, bound: Sequence[BoundOperator | Undecidable]) -> None:
        self._bound = bound
        self._kinds: list[BoundOperator] = []
        self._kind = [self._kind_of(b) for b in bound]
        self._sums = [products.sums_of(b) for b in self._kinds]
        self._known: dict[tuple[int, int], ProfileVerdict] = {}

    def _kind_of(self, bound: BoundOperator | Undecidable) -> int:
        """Return the number of the first binding with the same preparation; -1 for a refusal."""
        if isinstance(bound, Undecidable):
            return -1
        prepared = bound.step.prepared
        for number, kind in enumerate(self._kinds):
            if prepared is not None and kind.step.prepared is not None and same_operator(prepared, kind.step.prepared):
                return number
        self._kinds.append(bound)
        return len(self._kinds) - 1

    def verdict(self, first: int, second: int) -> ProfileVerdict:
        """Return the verdict on two bindings."""
        return self._refuse(first, second) or self._name(first, second, self._kind[first], self._kind[second])

    def against_first(self) -> tuple[ProfileVerdict, ...]:
        """Return the verdict on the first binding and each of the others, also by way of a third one."""
        is_bound = isinstance(self._bound[0], BoundOperator)
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
        if any(isinstance(bound, Undecidable) for bound in self._bound):
            return None
        return holding_given(op, self._kinds, self._sums, held)

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

    def _against(self, group: Sequence[int], number: int) -> ProfileVerdict:
        """Return the verdict on the first binding, whose group is given, and another one."""
        direct = self.verdict(0, number)
        if direct.word != Word.UNDECIDED or self._kind[number] not in group:
            return direct
        between = next(k for k in group if self._decide(k, self._kind[number]).word == Word.EQUAL)
        reason = f"both are equal to {self._kinds[between].profile}" + self._condition(*group)
        return ProfileVerdict(direct.first, direct.second, Word.EQUAL, reason)

    def _refuse(self, first: int, second: int) -> ProfileVerdict | None:
        one, other = self._bound[first], self._bound[second]
        refusal = next((b for b in (one, other) if isinstance(b, Undecidable)), None)
        return None if refusal is None else ProfileVerdict(one.profile, other.profile, Word.UNDECIDED, refusal.reason)

    def _name(self, first: int, second: int, *kinds: int) -> ProfileVerdict:
        """Return the verdict on two kinds with the names of two bindings."""
        names = self._bound[first].profile, self._bound[second].profile
        if kinds[0] == kinds[1]:
            return ProfileVerdict(
                *names, Word.EQUAL, "the same kernel with the same constants" + self._condition(*kinds)
            )
        known = self._decide(*kinds)
        reason = known.reason + (self._condition(*kinds) if known.word == Word.EQUAL else "")
        return ProfileVerdict(*names, known.word, reason, known.witness)

    def _condition(self, *kinds: int) -> str:
        """Return the condition under which equal profiles mean equal runtimes, as an addition to a reason."""
        words = {self._kinds[kind].step.kernel.exactness.word for kind in kinds}
        return ON_ONE_LIBM if SAME_LIBM.word in words else ""

    def _decide(self, first: int, second: int) -> ProfileVerdict:
        """Return the verdict on two different kinds."""
        if (first, second) not in self._known:
            self._known[first, second] = self._found(first, second)
        return self._known[first, second]

    def _found(self, first: int, second: int) -> ProfileVerdict:
        one, other = self._kinds[first], self._kinds[second]
        try:
            verdict = _show(one, other) or self._by_method(first, second)
        except TflqError as error:
            verdict = ProfileVerdict(one.profile, other.profile, Word.UNDECIDED, f"refuses some inputs: {error}")
        if verdict is not None and verdict.word != Word.UNDECIDED:
            return verdict
        witness = search(one, other)
        if witness is not None:
            return ProfileVerdict(one.profile, other.profile, Word.DIFFERS, "found by trial", witness)
        reason = "other kernels, too many inputs to run them all" if verdict is None else verdict.reason
        return ProfileVerdict(one.profile, other.profile, Word.UNDECIDED, f"{reason}; no trial distinguishes them")

    def _by_method(self, first: int, second: int) -> ProfileVerdict | None:
        one, other = self._sums[first], self._sums[second]
        if one is not None and other is not None:
            return products.decide(one, other)
        return codes.decide(self._kinds[first], self._kinds[second])


def _show(first: BoundOperator, second: BoundOperator) -> ProfileVerdict | None:
    """Decide operators without inputs, or without elements in their outputs, by one run; None for all others."""
    is_empty = all(0 in bound.shape(t) for bound in (first, second) for t in bound.step.outputs)
    if first.inputs and not is_empty:
        return None
    witness = compare(first, second, {t: np.zeros(first.shape(t), first.dtype(t)) for t in first.inputs})
    word, what = (
        Word.EQUAL if witness is None else Word.DIFFERS,
        "outputs have no elements" if is_empty else "no inputs",
    )
    return ProfileVerdict(first.profile, second.profile, word, f"{what}: run once", witness)
