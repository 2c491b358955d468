"""Faults of numbers: sums that exceed 32 bits, stuck bits, codes of a table, approximated or narrower floats.

Float results that a hypothesis reproduces up to the rounding of floats, far nearer than the profile does, are here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Defect, DefectKind, WrongResult, certainty_of
from tflq.diagnosis.faults.memory import is_constant
from tflq.diagnosis.faults.places import AXES
from tflq.diagnosis.hypotheses import HypothesisKind, hypotheses, results
from tflq.diagnosis.mistakes.stages import NarrowAccumulator
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.numerics.estimates import in_bfloat16
from tflq.engine.numerics.stage_roundings import DoubleRounding, HalfUpTwice, SingleRounding
from tflq.engine.numerics.stages import StageOf
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, TensorType, view
from tflq.model.ir.constants import zero_point_of
from tflq.typing import Array, Ints

#: Operators that compute an exponential for each element.
_EXPONENTIALS = ("EXP", "LOGISTIC", "TANH", "SOFTMAX", "LOG_SOFTMAX", "ELU", "GELU")
#: Relative errors of the largest magnitude: of an approximation, and least that rounding does not make.
_MOST, _LEAST = 0.08, 2.0**-19
#: Bits of mantissas, with the hidden one, whose roundings make such errors.
_BITS = {11: "float16 or TF32", 8: "bfloat16"}
_ENOUGH = 4


def approximation(case: WrongResult) -> Defect | None:
    """Return that all results lie near the right ones, and what is known to make such errors; None if they do not."""
    if case.observed[0].dtype != np.float32 or case.differing < _ENOUGH:
        return None
    if not all(np.isfinite(v).all() for v in (*case.expected, *case.observed)):
        return None
    largest = max(float(np.abs(e).max(initial=0)) for e in case.expected)
    pairs = zip(case.expected, case.observed, strict=True)
    apart = max(float(np.abs(e.astype(np.float64) - o).max(initial=0)) for e, o in pairs)
    error = apart / largest if largest else 1.0
    if not _LEAST < error < _MOST:
        return None
    place = (
        f"every result lies within {error:.2g} of the largest magnitude, {case.differing:,} of {case.elements:,} differ"
    )
    if case.op.builtin in _EXPONENTIALS and error > 2.0**-16:
        name = f"an approximation of the exponential (a fast exp or a table): errors up to {error:.2g}"
        tell = f"feed {case.op.name} a ramp of inputs: its errors show a table's steps or a polynomial"
        return Defect(DefectKind.PRECISION, name, Certainty.LIKELY, case.tensor, place, "", tell)
    likely = next((text for bits, text in _BITS.items() if 2.0 ** -(bits + 2) < error < 2.0 ** -(bits - 2)), "")
    if not likely:
        return None
    name = f"operands or sums with fewer bits, as those of {likely}: errors up to {error:.2g}"
    tell = "record the operators before it, or ask for the device's types of operands and sums"
    return Defect(DefectKind.PRECISION, name, Certainty.NONE, case.tensor, place, "", tell)


def stuck_bits(case: WrongResult) -> Defect | None:
    """Return the bits that have one value in all results, if the others are right; None if some are not."""
    kind = case.observed[0].dtype
    if kind.kind not in "iu" or kind.itemsize > 4:
        return None
    plain = np.dtype(f"u{kind.itemsize}")
    seen = _join(case.observed).view(plain)
    right = _join(case.expected).view(plain)
    changed = int(np.bitwise_or.reduce(seen ^ right))
    low, high = int(np.bitwise_and.reduce(seen)), int(np.bitwise_or.reduce(seen))
    stuck = changed & (low | ~high)
    bits = [k for k in range(8 * kind.itemsize) if changed >> k & 1]
    if stuck != changed or not bits or len(bits) > 4 * kind.itemsize or len(np.unique(seen)) < 4:
        return None
    values = {low >> k & 1 for k in bits}
    evidence = certainty_of(case.differing + len(np.unique(seen)))
    if len(values) > 1 or evidence == Certainty.NONE:
        return None
    many = "s" if len(bits) > 1 else ""
    listed = ", ".join(map(str, bits))
    name = f"bit{many} {listed} of every result {'are' if many else 'is'} {values.pop()}: stuck or cut off"
    cleared = "all other bits are right, so the arithmetic is"
    return Defect(DefectKind.ADDRESSING, name, evidence, case.tensor, "", cleared)


def _join(values: tuple[Array, ...]) -> Array:
    return np.ascontiguousarray(np.concatenate([v.reshape(-1) for v in values]))


#: Runs of neighbouring codes, the share of all codes that they may be, and the codes that have to be right.
_RUNS, _CODES_MOST, _RIGHT = 2, 0.1, 16
#: Operators whose rows are sums of entries of a table, by the distance from the row's largest code.
_BY_ROW = ("SOFTMAX", "LOG_SOFTMAX")
_TELL = "run all codes at other scales: the same codes each time show a table, others an arithmetic"


def entries(case: WrongResult) -> Defect | None:
    """Return the codes whose results alone differ; None if they are many, or a code has right results, too."""
    read = _codes(case)
    if read is None:
        return None
    if case.op.name in _BY_ROW:
        return _of_rows(case, read)
    fact = OPERATORS.get(case.op.name)
    if fact is None or not fact.pointwise or read[0].shape != case.observed[0].shape:
        return None
    codes, wrong = (np.concatenate([a.reshape(-1) for a in some]) for some in (read, case.masks))
    bad, every = np.unique(codes[wrong]), np.unique(codes)
    right = len(every) - len(bad)
    if np.isin(codes[~wrong], bad).any() or len(bad) > _CODES_MOST * len(every) or right < _RIGHT:
        return None
    ends = np.flatnonzero(np.diff(np.searchsorted(every, bad)) > 1)
    runs = np.split(bad, ends + 1)
    if len(runs) > _RUNS:
        return None
    listed = " and ".join(f"{run[0]:,}" if len(run) == 1 else f"{run[0]:,} to {run[-1]:,}" for run in runs)
    many = "s" if len(bad) > 1 else ""
    name = f"only the code{many} {listed} give{'' if many else 's'} another result: an entry of a table, or its index"
    return _defect(case, name, f"the other {right:,} codes that were seen give the right results")


def _codes(case: WrongResult) -> tuple[Ints, ...] | None:
    """Return the codes that the operator reads, by sample; None if it does not read one tensor of them."""
    place = case.op.record.inputs[0] if len(case.op.record.inputs) == 1 else -1
    found = []
    for part in case.parts:
        value = next((v for at, v in part.inputs.items() if part.tensors[at] == place), None)
        if value is None or value.dtype.kind not in "iu" or value.dtype.itemsize > 2:
            return None
        found.append(value.astype(np.int64))
    return tuple(found)


def _of_rows(case: WrongResult, read: tuple[Ints, ...]) -> Defect | None:
    """Return the distance from a row's largest code that all wrong rows have, and no right one."""
    rows = np.concatenate([codes.reshape(-1, codes.shape[-1]) for codes in read])
    wrong = np.concatenate([mask.reshape(-1, mask.shape[-1]).any(axis=1) for mask in case.masks])
    if wrong.all() or wrong.sum() < 2 or (~wrong).sum() < 2:
        return None
    below = rows - rows.max(axis=1, keepdims=True)
    fitting = [int(d) for d in np.unique(below[wrong]) if d and np.array_equal((below == d).any(axis=1), wrong)]
    if len(fitting) != 1:
        return None
    name = f"only rows with a code {-fitting[0]} below their largest differ: an entry of the table of exponentials"
    return _defect(case, name, f"the other {int((~wrong).sum()):,} rows are right")


def _defect(case: WrongResult, name: str, cleared: str) -> Defect:
    return Defect(DefectKind.PLACE, name, Certainty.LIKELY, case.tensor, "", cleared, _TELL)


#: The largest distance in units of the largest magnitude's last place, and how much farther the profile must be.
_NEAR, _FARTHER = 16.0, 64.0
#: Number of elements from which on nearness of all is no chance, and causes that are named.
_NEARLY_ENOUGH, _NAMED = 4, 3


def nearly(case: WrongResult) -> Defect | None:
    """Return the hypotheses that come within the rounding of floats; None if none does, or if the profile does."""
    if case.observed[0].dtype != np.float32 or case.differing < _NEARLY_ENOUGH:
        return None
    own = max(_distance(e, o) for e, o in zip(case.expected, case.observed, strict=True))
    if own < _NEAR:
        return None
    found = sorted((far, name) for far, name in _near(case) if far * _FARTHER <= own)
    if not found:
        return None
    names = [name for far, name in found if far <= 2 * found[0][0] + 1]
    more = f" or {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    name = f"{' or '.join(names[:_NAMED])}{more}, up to the rounding of floats"
    place = f"within {found[0][0]:.3g} units in the last place of the largest magnitude; the profile within {own:.3g}"
    tell = "the order of sums and the rounding of the device's floats are not known"
    return Defect(DefectKind.PRECISION, name, Certainty.LIKELY, case.tensor, place, "", tell)


def _near(case: WrongResult) -> Iterator[tuple[float, str]]:
    """Yield the distance of mistakes within reach, over all samples."""
    first = case.parts[0]
    for hypothesis in hypotheses(first, case.profile):
        if hypothesis.kind != HypothesisKind.MISTAKE:
            continue
        farthest = 0.0
        for part, seen in zip(case.parts, case.observed, strict=True):
            made = results(hypothesis.device, part).get(case.tensor)
            farthest = max(farthest, _distance(made, seen))
            if farthest > _NEAR:
                break
        if farthest <= _NEAR:
            yield farthest, hypothesis.name


def _distance(made: Array | None, seen: Array) -> float:
    """Return the largest distance in units in the last place of the largest magnitude seen."""
    if made is None or made.shape != seen.shape or not np.isfinite(seen).all() or not np.isfinite(made).all():
        return float("inf")
    largest = np.abs(seen).max(initial=0)
    apart = np.abs(made.astype(np.float64) - seen.astype(np.float64)).max(initial=0)
    return float(apart / np.spacing(np.float32(max(largest, 1e-30))))


#: Stages by how they round; the profile's own has no name.
_STAGES: dict[str, StageOf | None] = {
    "": None,
    "two roundings": DoubleRounding.of,
    "one rounding": SingleRounding.of,
    "two roundings half up": HalfUpTwice.of,
}
#: Fewer differing elements may agree by chance.
_OVERFLOW_ENOUGH = 2


def overflow(case: WrongResult) -> Defect | None:
    """Return that accumulators of 32 bits overflow; sums in 64 bits are right, and limited ones reproduce the dump.

    A device with narrower accumulators also rounds as one of the stages for these.
    """
    type_ = case.spec.type
    if not isinstance(type_, TensorType) or CARRIER[type_].kind not in "iu" or case.differing < _OVERFLOW_ENOUGH:
        return None
    for wraps, words in ((True, "wrap around"), (False, "saturate")):
        leaving = _leaving(case, wraps)
        if leaving < _OVERFLOW_ENOUGH:
            continue
        if is_constant(case) and case.observed[0].reshape(-1)[0] in _plain(case):
            return None  # such a constant shows no sum
        rounding = next((name for name, stage in _STAGES.items() if _fits(case, stage, wraps)), None)
        if rounding is not None:
            return _overflow_defect(case, words, rounding, leaving)
    return None


def _overflow_defect(case: WrongResult, words: str, rounding: str, leaving: int) -> Defect:
    name = f"int32 accumulators overflow and {words}: sums of {case.op.name} exceed 32 bits"
    place = f"{leaving:,} of {case.elements:,} sums leave the range of int32"
    how = f" and {rounding}" if rounding else ""
    cleared = f"accumulators of 32 bits that {words}{how} reproduce every element; sums in 64 bits are right"
    tell = "smaller scales of the input or the weights keep the sums below 2^31"
    certainty = Certainty.LIKELY if is_constant(case) else Certainty.CERTAIN
    return Defect(DefectKind.OVERFLOW, name, certainty, case.tensor, place, cleared, tell)


def _plain(case: WrongResult) -> tuple[int, ...]:
    """Return the codes that memory holds without a sum: 0, the zero point, and the ends of the type."""
    limits = np.iinfo(case.observed[0].dtype)
    return (0, zero_point_of(case.spec), int(limits.min), int(limits.max))


def _leaving(case: WrongResult, wraps: bool) -> int:
    """Return the number of elements that accumulators of 32 bits change."""
    made = _limit(case, None, wraps)
    return sum(
        int(np.count_nonzero(one != right))
        for one, right in zip(made, case.expected, strict=True)
        if one is not None and one.shape == right.shape
    )


def _fits(case: WrongResult, stage: StageOf | None, wraps: bool) -> bool:
    made = _limit(case, stage, wraps)
    return all(one is not None and np.array_equal(one, o) for one, o in zip(made, case.observed, strict=True))


def _limit(case: WrongResult, stage: StageOf | None, wraps: bool) -> Iterator[Array | None]:
    """Yield each sample's result with limited accumulators and a stage; None if it cannot be computed."""
    profile = case.profile

    def change(right: StageOf) -> StageOf:
        inner = right if stage is None else stage
        return lambda real: NarrowAccumulator.of(inner(real), 32, wraps=wraps)

    try:
        wrong = profile.derive(profile.name, arithmetic=profile.arithmetic.each_stage(change))
    except TflqError:
        yield from (None for _ in case.parts)
        return
    for part in case.parts:
        try:
            yield replace(part, got={}).run(part.plan(wrong)).get(case.tensor)
        except TflqError:
            yield None


#: Bits of a float32 mantissa that a narrower number lacks.
_LOST = {"float16": 13, "bfloat16": 16}
#: The largest float16, and the smallest normal float32.
_LARGEST, _NORMAL = 65504.0, float(np.finfo(np.float32).tiny)


def _in_float16(values: Array) -> Array:
    with np.errstate(all="ignore"):
        return values.astype(np.float16).astype(np.float32)


#: The narrower first: nearly all of its numbers of usual size are numbers of the other one, too.
_NARROW: dict[str, Callable[[Array], Array]] = {"bfloat16": in_bfloat16, "float16": _in_float16}


def precision(case: WrongResult) -> Defect | None:
    """Return that float results are those of a narrower type, that they overflow, or that small ones are 0."""
    if case.observed[0].dtype != np.float32:
        return None
    return _flush(case) or _narrow(case) or _overflowing(case)


def _narrow(case: WrongResult) -> Defect | None:
    seen = np.concatenate([o.reshape(-1) for o in case.observed])
    right = np.concatenate([e.reshape(-1) for e in case.expected])
    for name, narrowed in _NARROW.items():
        telling = np.isfinite(seen) & (seen != 0) & (narrowed(right) != right)
        if not np.array_equal(narrowed(seen), seen, equal_nan=True):
            continue
        bits = _LOST[name] * len(np.unique(seen[telling]))
        if certainty_of(bits) == Certainty.NONE:
            continue
        once = np.array_equal(narrowed(right), seen, equal_nan=True)
        how = "right results rounded to it once" if once else "computed in it, or its operands or sums rounded to it"
        lost = _infinite(case)
        text = f"{name} inside: every result is a {name} number ({how})"
        if lost:
            text = f"{name} inside: every finite result is a {name} number, and {lost}"
            if name == "float16":
                text += f" ({_LARGEST:g} is the largest float16)"
        also = _also_narrow(case, narrowed)
        tell = "" if once else "results of each step, or a build with float32 accumulators, tell operands from sums"
        return Defect(DefectKind.PRECISION, text, certainty_of(bits), case.tensor, _channels(case), also, tell)
    return None


def _also_narrow(case: WrongResult, narrowed: Callable[[Array], Array]) -> str:
    """Return how many other float results of the dump are such numbers, too."""
    makers, dump = view(case.model).last_writers, case.dumps[0].tensors
    floats = [v for t, v in dump.items() if t in makers and t != case.tensor and v.dtype == np.float32]
    count = sum(np.array_equal(narrowed(v), v, equal_nan=True) for v in floats)
    return f"so are {count} of {len(floats)} other float results of the dump" if floats else ""


def _infinite(case: WrongResult) -> str:
    """Return which results overflow, in words; "" if none does."""
    for word, is_so in (("infinity", np.isinf), ("NaN", np.isnan)):
        new = [is_so(o) & ~is_so(e) for e, o in zip(case.expected, case.observed, strict=True)]
        count = sum(int(np.count_nonzero(mask)) for mask in new)
        if count:
            what = "overflow to infinity" if word == "infinity" else "are NaN"
            return f"{count:,} of {case.elements:,} {what}{_of_channels(new)}"
    return ""


def _of_channels(masks: list[Array]) -> str:
    hit = sorted({int(c) for mask in masks if mask.ndim for c in np.nonzero(mask)[-1]})
    if not hit or len(hit) == masks[0].shape[-1] or len(hit) > 8:
        return ""
    return f" in channel{'s' if len(hit) > 1 else ''} {', '.join(map(str, hit))}"


def _channels(case: WrongResult) -> str:
    if not any((~np.isfinite(o)).any() for o in case.observed):
        return ""
    first = next(o for o in case.observed if (~np.isfinite(o)).any())
    place = [int(i) for i in np.argwhere(~np.isfinite(first))[0]]
    names = AXES.get(first.ndim, ())
    return "first at " + ", ".join(f"{n} {i}" for n, i in zip(names, place, strict=False)) if names else ""


def _overflowing(case: WrongResult) -> Defect | None:
    lost = _infinite(case)
    if not lost:
        return None
    tell = "look at the largest sums: float16 overflows from 65504, float32 does not here"
    return Defect(
        DefectKind.PRECISION,
        f"results are not finite: {lost}",
        Certainty.LIKELY,
        case.tensor,
        _channels(case),
        "",
        tell,
    )


def _flush(case: WrongResult) -> Defect | None:
    """Return that exactly the subnormal results are 0. If no other result is there, nothing may have been computed."""
    zero = [np.where(np.abs(e) < _NORMAL, np.float32(0), e) for e in case.expected]
    if not all(np.array_equal(z, o) for z, o in zip(zero, case.observed, strict=True)):
        return None
    name = "flush to zero: exactly the results below the smallest normal float32 are 0"
    sure, tell = certainty_of(4 * case.differing), ""
    if not any(z.any() for z in zero):
        name, sure = f"{name}, or nothing was computed: the output is the constant 0", Certainty.LIKELY
        tell = "give inputs with larger results: they are right if only small ones are flushed"
    return Defect(DefectKind.PRECISION, name, sure, case.tensor, "", case.equal_text(), tell)
