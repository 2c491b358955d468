"""Nothing was computed: constants, results of another sample, unwritten memory, skipped operators."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case, case_of
from tflq.diagnosis.faults.defect import Defect, DefectKind
from tflq.model.ir import view
from tflq.typing import Array

_POISON = "fill the output's memory with a pattern before each run and record again: what keeps it was not written"
_ORDER = "feed the samples in another order: results of the sample before move with it"
#: Elements from which on one value for all of them is no chance.
_ENOUGH = 3


def nothing_computed(case: Case) -> Defect | None:
    """Return why a result does not depend on its operator's inputs; None if it may."""
    if _may_be_flushed(case):
        return None
    return _unsteady(case) or _constant(case) or _frozen(case) or _stale(case) or _skip(case)


def _may_be_flushed(case: Case) -> bool:
    """Return whether all results are 0 where none is as large as a normal number: they may be flushed to zero."""
    if case.observed[0].dtype != np.float32:
        return False
    tiny = np.finfo(np.float32).tiny
    return all(not o.any() for o in case.observed) and all(bool(np.all(np.abs(e) < tiny)) for e in case.expected)


def _defect(case: Case, name: str, certainty: Certainty, tell: str, place: str = "", *, is_told: bool = True) -> Defect:
    cleared = "no arithmetic can be read from it, so none is named"
    return Defect(DefectKind.NOTHING, name, certainty, case.tensor, place, cleared, tell, is_told)


def is_constant(case: Case) -> bool:
    """Return whether all elements of all samples have one value, although the right ones differ."""
    first = case.observed[0].reshape(-1)[:1]
    if not first.size or not np.isfinite(first).all() or sum(o.size for o in case.observed) < _ENOUGH:
        return False
    same = all(_same(o, np.broadcast_to(first.reshape((1,) * o.ndim), o.shape)) for o in case.observed)
    return same and len({v for e in case.expected for v in np.unique(e).tolist()}) > 1


def _same(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _constant(case: Case) -> Defect | None:
    if not is_constant(case):
        return None
    value = case.observed[0].reshape(-1)[0].item()
    many = f" in all {len(case.observed)} samples" if len(case.observed) > 1 else ""
    meaning = _meaning(case, value)
    name = f"the output is the constant {value:g}{meaning}{many}"
    if meaning.endswith("code)"):
        return _defect(
            case, f"{name}: nothing was computed, or every result saturates", Certainty.NONE, _POISON, is_told=False
        )
    return _defect(case, f"nothing was computed: {name}, never written or read too early", Certainty.LIKELY, _POISON)


def _meaning(case: Case, value: float) -> str:
    """Return the meaning of a constant code."""
    q, kind = case.spec.quantization, case.observed[0].dtype
    if q is not None and q.zero_point.size and kind.kind in "iu" and int(q.zero_point[0]) == value:
        return " (the zero point)"
    if kind.kind in "iu" and value in (np.iinfo(kind).min, np.iinfo(kind).max):
        return f" (the {'lowest' if value == np.iinfo(kind).min else 'highest'} code)"
    return ""


def _frozen(case: Case) -> Defect | None:
    """Return that all samples have one result, although the right ones differ."""
    first = case.observed[0]
    apart = [e for e in case.expected[1:] if not _same(e, case.expected[0])]
    if len(case.observed) < 2 or not apart or not all(_same(o, first) for o in case.observed[1:]):
        return None
    own = next((k for k, e in enumerate(case.expected) if _same(e, first)), None)
    whose = "" if own is None else f", the right one of sample {own}"
    sure = own is not None and len(np.unique(first)) > _ENOUGH
    name = f"the output is the same in all {len(case.observed)} samples{whose}"
    if own is not None:
        certainty = Certainty.CERTAIN if sure else Certainty.LIKELY
        return _defect(case, f"{name}: it is stale, not written again", certainty, _POISON, is_told=sure)
    before = "an operator before it may saturate, or it" if case.is_assumed else "its operator saturates, or it"
    return _defect(case, f"{name}: {before} was written once only", Certainty.NONE, _POISON, is_told=False)


def _stale(case: Case) -> Defect | None:
    """Return that samples hold the right result of the one before."""
    pairs = list(zip(case.observed[1:], case.expected[:-1], case.expected[1:], strict=True))
    telling = [len(np.unique(before)) for o, before, own in pairs if not _same(before, own)]
    if not telling or not all(_same(o, before) for o, before, _ in pairs):
        return None
    name = "stale results: each sample holds the right result of the sample before (the previous run's output was read)"
    sure = sum(telling) > 2 * _ENOUGH
    place = "samples are one late"
    return _defect(case, name, Certainty.CERTAIN if sure else Certainty.LIKELY, _ORDER, place)


def _unsteady(case: Case) -> Defect | None:
    """Return that equal inputs gave different results, of an operator without state."""
    if any(spec is not None and spec.is_variable for spec in case.op.input_specs):
        return None
    for one, other in combinations(range(len(case.parts)), 2):
        mine, theirs = (case.parts[k].inputs for k in (one, other))
        if any(not _same(mine[t], theirs[t]) for t in mine) or case.parts[one].variables:
            continue
        given = [case.dumps[one].tensors[t] for t in view(case.model).inputs if t in case.dumps[one].tensors]
        if case.is_assumed and any(map(_is_one_code, (*mine.values(), *given))):
            continue  # other inputs may have been clipped to that code
        is_unsteady = not _same(case.observed[one], case.observed[other])
        if is_unsteady and _same(case.expected[one], case.expected[other]) and not _is_doubtful(case, (one, other)):
            count = int(np.count_nonzero(case.observed[one] != case.observed[other]))
            name = "the result changes between equal runs: uninitialized memory, or a race"
            size = case.observed[one].size
            place = f"samples {one} and {other} have equal inputs, and {count:,} of {size:,} elements differ"
            return _defect(case, name, Certainty.CERTAIN, _POISON, place)
    return None


def _is_one_code(value: Array) -> bool:
    return bool(value.dtype.kind in "iu" and value.size > _ENOUGH and (value == value.flat[0]).all())


def _is_doubtful(case: Case, samples: tuple[int, int]) -> bool:
    """Return whether an input in the dump is not what the profile computes: it may have changed after it was read."""
    graph = view(case.model)
    makers = {maker.index for t in case.op.inputs if t >= 0 and (maker := graph.maker(t)) is not None}
    before = [case_of(case.model, [case.dumps[k]], index, case.profile) for index in makers for k in samples]
    return any(one is not None and one.tensor in case.op.inputs for one in before)


def _skip(case: Case) -> Defect | None:
    """Return that the result holds an input as it is."""
    for position in case.parts[0].inputs:
        pairs = [(p.inputs[position], o) for p, o in zip(case.parts, case.observed, strict=True)]
        if any(x.dtype != o.dtype or x.size != o.size for x, o in pairs):
            continue
        values = sum(len(np.unique(o)) for _, o in pairs)
        if values > 2 * _ENOUGH and all(_same(x.reshape(-1), o.reshape(-1)) for x, o in pairs):
            operand = case.op.inputs.index(case.parts[0].tensors[position])
            name = f"{case.op.name} was skipped: its output holds its input {operand} unchanged"
            return _defect(case, name, Certainty.CERTAIN, _POISON)
    return None
