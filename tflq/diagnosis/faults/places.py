"""Only some images, rows, columns or channels differ: the place of a fault whose cause is not known."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case
from tflq.diagnosis.faults.defect import Defect, DefectKind, certainty_of
from tflq.diagnosis.faults.orders import AXES
from tflq.diagnosis.faults.overwritten import block_of, block_text
from tflq.diagnosis.mistakes.channels import CHANNEL_AXIS

Ints = NDArray[np.int64]
_ORDINALS = {2: "second", 3: "third"}
#: The share of an axis that may be wrong, and of wrong elements there.
_MOST, _DENSE = 0.5, 0.5
_LANES = (2, 3, 4, 8, 16)
_VECTORS = (64, 32, 16, 8, 4)


def filled(case: Case) -> Defect | None:
    """Return the rows, columns or channels that hold one value in all samples, and are all that differs."""
    for k, axis in enumerate(AXES.get(case.apart.ndim, ())):
        others = tuple(i for i in range(case.apart.ndim) if i != k)
        hit, size = np.flatnonzero(case.apart.any(axis=others)), case.apart.shape[k]
        seen = np.unique(np.concatenate([o.take(hit, k).reshape(-1) for o in case.observed]))
        right = np.unique(np.concatenate([e.take(hit, k).reshape(-1) for e in case.expected]))
        bits = min(case.differing, 4 * (len(right) - 1))
        if len(hit) == size or len(seen) != 1 or certainty_of(bits) == Certainty.NONE:
            continue
        value, kind = seen[0].item(), seen.dtype
        ends = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else ()
        rival = ", or every result saturates" if value in ends else ""
        many = f" in all {len(case.observed)} samples" if len(case.observed) > 1 else ""
        holds = f"hold{'s' if len(hit) == 1 else ''} the constant {value:g}{many}"
        name = f"{_words(axis, hit, size)} {holds}: not computed, or not written{rival}"
        tell = "fill the output's memory with a pattern before each run and record again: what keeps it was not written"
        where = _list(axis, hit, size)
        return Defect(DefectKind.PLACE, name, Certainty.LIKELY, case.tensor, where, case.equal_text(), tell)
    return None


def place(case: Case) -> Defect | None:
    """Return where all differences lie, if that is no chance."""
    return _slices(case) or _lanes(case) or _block(case)


def _slices(case: Case) -> Defect | None:
    """Return the axis of which only some slices differ, the one with the most evidence."""
    found: list[tuple[float, str, Ints, int]] = []
    for k, name in enumerate(AXES.get(case.apart.ndim, ())):
        others = tuple(i for i in range(case.apart.ndim) if i != k)
        hit, size = np.flatnonzero(case.apart.any(axis=others)), case.apart.shape[k]
        is_constants = name == "channel" and case.op.builtin in CHANNEL_AXIS  # codes hide what a weight changes
        is_dense = is_constants or _share(case, len(hit) * case.apart.size // size) >= _DENSE
        if 0 < len(hit) <= size * _MOST and is_dense:
            bits = (case.apart.sum() - len(hit)) * math.log2(size / len(hit))
            found.append((float(bits), name, hit, size))
    if not found:
        return None
    evidence, axis, hit, size = max(found, key=lambda one: one[0])
    if certainty_of(evidence) == Certainty.NONE:
        return None
    whose = f"{'its constants' if axis == 'channel' else 'geometry'}, memory, or the code for these alone"
    text = f"only {_words(axis, hit, size)} differ{'s' if len(hit) == 1 else ''}: a fault of {whose}"
    tell = "record all tensors and more samples: the same place each time shows an address"
    block = block_of(case)
    place = _list(axis, hit, size) + ("" if block is None else f": one block, {block_text(case, *block[:2])}")
    return Defect(DefectKind.PLACE, text, Certainty.LIKELY, case.tensor, place, case.equal_text(), tell)


def _lanes(case: Case) -> Defect | None:
    """Return the lanes of a vector to which all differing elements belong, counted in memory."""
    at = np.flatnonzero(case.apart.reshape(-1))
    for count in _LANES:
        lanes = sorted(set((at % count).tolist()))
        evidence = (len(at) - len(lanes)) * math.log2(count / len(lanes))
        is_dense = _share(case, len(lanes) * case.apart.size // count) >= _DENSE
        if 2 * len(lanes) <= count and is_dense and certainty_of(evidence) != Certainty.NONE:
            every = f"every {_ORDINALS.get(count, f'{count}th')} element"
            name = f"only {every} in memory differs: {'a lane' if len(lanes) == 1 else 'lanes'} of a vector"
            place = f"elements {', '.join(map(str, lanes))} of every {count}"
            tell = "record more samples: a lane that is not written keeps its values"
            return Defect(DefectKind.PLACE, name, Certainty.LIKELY, case.tensor, place, case.equal_text(), tell)
    return None


def _share(case: Case, places: int) -> float:
    """Return the share of wrong elements among some places, in samples that differ: memory is wrong throughout."""
    wrong = [int(np.count_nonzero(mask)) for mask in case.masks if mask.any()]
    return sum(wrong) / (len(wrong) * places)


def _words(axis: str, hit: Ints, size: int) -> str:
    """Return slices in words: the last rows, the tail of a vector, every n-th channel."""
    many = "s" if len(hit) > 1 else ""
    count = f"{len(hit)} " if len(hit) > 1 else ""
    if hit[-1] == size - 1 and len(hit) == size - hit[0]:
        tail = next((b for b in _VECTORS if hit[0] and hit[0] % b == 0 and size - hit[0] < b), None)
        beyond = f" (the tail beyond whole vectors of {tail})" if tail else ""
        return f"the last {count}{axis}{many} of {size}{beyond}"
    if hit[0] == 0 and len(hit) == hit[-1] + 1:
        return f"the first {count}{axis}{many} of {size}"
    steps = set(np.diff(hit).tolist())
    step = steps.pop() if len(steps) == 1 else 0
    if step > 1 and (len(hit) > 2 or step * len(hit) == size):
        return f"every {_ORDINALS.get(step, f'{step}th')} {axis} from {axis} {hit[0]} on"
    return f"{count}{axis}{many} of {size}" if many else f"{axis} {hit[0]} of {size}"


def _list(axis: str, hit: Ints, size: int) -> str:
    names = ", ".join(map(str, hit[:8])) + (f" and {len(hit) - 8} more" if len(hit) > 8 else "")
    return f"{axis}{'s' if len(hit) > 1 else ''} {names} of {size}"


def _block(case: Case) -> Defect | None:
    block = block_of(case)
    if block is None:
        return None
    low, high, bits = block
    if high - low > _MOST * case.apart.size or _share(case, high - low) < _DENSE:
        return None
    name = "only one block of memory differs: it was overwritten, or not written"
    tell = "record all tensors: whether later operators read the right values shows when it happened"
    certainty = Certainty.LIKELY if certainty_of(bits) != Certainty.NONE else Certainty.NONE
    return Defect(DefectKind.BLOCK, name, certainty, case.tensor, block_text(case, low, high), case.equal_text(), tell)
