"""Float results of a narrower type, or no numbers: float16, bfloat16, infinities, subnormal numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case
from tflq.diagnosis.faults.defect import Defect, DefectKind, certainty_of
from tflq.diagnosis.faults.orders import AXES
from tflq.engine.numerics.narrow_floats import in_bfloat16
from tflq.model.ir import view
from tflq.typing import Array

#: Bits of a float32 mantissa that a narrower number lacks.
_LOST = {"float16": 13, "bfloat16": 16}
#: The largest float16, and the smallest normal float32.
_LARGEST, _NORMAL = 65504.0, float(np.finfo(np.float32).tiny)


def _in_float16(values: Array) -> Array:
    with np.errstate(all="ignore"):
        return values.astype(np.float16).astype(np.float32)


#: The narrower first: nearly all of its numbers of usual size are numbers of the other one, too.
_NARROW: dict[str, Callable[[Array], Array]] = {"bfloat16": in_bfloat16, "float16": _in_float16}


def precision(case: Case) -> Defect | None:
    """Return that float results are those of a narrower type, that they overflow, or that small ones are 0."""
    if case.observed[0].dtype != np.float32:
        return None
    return _flush(case) or _narrow(case) or _overflowing(case)


def _narrow(case: Case) -> Defect | None:
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


def _also_narrow(case: Case, narrowed: Callable[[Array], Array]) -> str:
    """Return how many other float results of the dump are such numbers, too."""
    makers, dump = view(case.model).last_writers, case.dumps[0].tensors
    floats = [v for t, v in dump.items() if t in makers and t != case.tensor and v.dtype == np.float32]
    count = sum(np.array_equal(narrowed(v), v, equal_nan=True) for v in floats)
    return f"so are {count} of {len(floats)} other float results of the dump" if floats else ""


def _infinite(case: Case) -> str:
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


def _channels(case: Case) -> str:
    if not any((~np.isfinite(o)).any() for o in case.observed):
        return ""
    first = next(o for o in case.observed if (~np.isfinite(o)).any())
    place = [int(i) for i in np.argwhere(~np.isfinite(first))[0]]
    names = AXES.get(first.ndim, ())
    return "first at " + ", ".join(f"{n} {i}" for n, i in zip(names, place, strict=False)) if names else ""


def _overflowing(case: Case) -> Defect | None:
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


def _flush(case: Case) -> Defect | None:
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
