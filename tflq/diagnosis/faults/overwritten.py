"""One block of memory with other contents: overwritten after it was read, never written, or left from before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case
from tflq.diagnosis.faults.defect import Defect, DefectKind, certainty_of
from tflq.engine.api.part import part_of
from tflq.errors import TflqError
from tflq.model.ir import view
from tflq.typing import Array

#: Share of a block that must differ, and of the tensor that it may cover.
_DENSE, _WHOLE = 0.5, 0.95
#: Number of differing elements below which places show nothing.
_ENOUGH = 4


def overwritten(case: Case) -> Defect | None:
    """Return that one block of a tensor was overwritten after its readers had run; None if that is not shown."""
    block = block_of(case)
    if block is None:
        return None
    low, high, _ = block
    if _as_read(case) == "right":
        whose = _contents(case, low, high)
        name = f"tensor {case.tensor} was overwritten after operator {_reader(case)} read it{whose and f', by {whose}'}"
        cleared = f"operator {case.index} {case.op.name} is right: its reader's results follow from its right values"
        tell = "copy each tensor right after its operator, or keep all of them (preserve_all_tensors)"
        where = block_text(case, low, high)
        return Defect(DefectKind.OVERWRITTEN, name, Certainty.CERTAIN, case.tensor, where, cleared, tell)
    return None


def replaced(case: Case) -> Defect | None:
    """Return that the readers of a few lost samples had read the right values; None if that is not shown.

    Where most samples differ, each operator may have been tested alone, on right inputs: then it may be at fault. So
    may an operator on floats, whose ranges differ from sample to sample.
    """
    wrong = [k for k, mask in enumerate(case.masks) if mask.any()]
    is_lost = case.differing >= max(_ENOUGH, _DENSE * len(wrong) * case.apart.size)
    is_float = case.observed[0].dtype.kind == "f"
    if is_float or not is_lost or 2 * len(wrong) > len(case.masks) or _as_read(case) != "right":
        return None
    whose = _contents(case, 0, case.apart.size)
    holds = whose if whose.startswith("the constant") else "other values"
    name = f"tensor {case.tensor} holds {holds}, not what operator {_reader(case)} read"
    cleared = f"operator {case.index} {case.op.name} is right: its reader's results follow from its right values"
    tell = "copy each tensor right after its operator, or keep all of them (preserve_all_tensors)"
    listed = ", ".join(map(str, wrong[:8])) + (", ..." if len(wrong) > 8 else "")
    some = f"sample{'s' if len(wrong) > 1 else ''} {listed} of {len(case.masks)}"
    return Defect(DefectKind.OVERWRITTEN, name, Certainty.CERTAIN, case.tensor, f"in {some}", cleared, tell)


def in_dump_only(case: Case, found: Defect) -> Defect:
    """Return a fault of places as one of the dump, if the tensor's reader computed from the right values."""
    if found.kind != DefectKind.ADDRESSING or _as_read(case) != "right":
        return found
    name = f"{found.name}, in the dump only: operator {_reader(case)} read right values"
    return replace(found, kind=DefectKind.BLOCK, name=name)


def foreign_block(case: Case) -> Defect | None:
    """Return that one block holds a constant, older results or another tensor; None if it holds none of these."""
    block = block_of(case)
    whose = "" if block is None else _contents(case, *block[:2])
    if block is None or not whose:
        return None
    low, high, bits = block
    read = _as_read(case)
    before = ", before its reader read it" if read == "wrong" else ""
    name = f"one block of tensor {case.tensor} holds {whose}{before}: memory was not written, or overwritten"
    tell = "" if read else "record all tensors: whether later operators read the right values shows when it happened"
    where = block_text(case, low, high)
    return Defect(DefectKind.BLOCK, name, certainty_of(bits), case.tensor, where, case.equal_text(), tell)


def block_of(case: Case) -> tuple[int, int, float] | None:
    """Return the only differing block as flat places, and the bits of evidence that it is no chance."""
    flat = case.apart.reshape(-1)
    places = np.flatnonzero(flat)
    if len(places) < _ENOUGH or flat.size < 2 * _ENOUGH:
        return None
    low, high = int(places[0]), int(places[-1]) + 1
    length = high - low
    if len(places) < _DENSE * length or length > _WHOLE * flat.size:
        return None
    bits = (len(places) - 1) * math.log2(flat.size / length)
    return (low, high, bits) if certainty_of(bits) != Certainty.NONE else None


def block_text(case: Case, low: int, high: int) -> str:
    """Return the elements, bytes and whole rows of a block."""
    size, item, shape = case.apart.size, case.apart.size and case.observed[0].itemsize, case.apart.shape
    end = " (its end)" if high == size else " (its beginning)" if low == 0 else ""
    text = f"elements {low:,} to {high - 1:,} of {size:,}, byte offset {low * item:,} to {high * item - 1:,}{end}"
    if len(shape) == 4:
        row = shape[2] * shape[3]
        text += f"; rows {low // row} to {(high - 1) // row} of {shape[0] * shape[1]}"
    return text


def _contents(case: Case, low: int, high: int) -> str:
    """Return what the block holds, if that is recognized in every sample that differs."""
    wrong = [k for k, mask in enumerate(case.masks) if mask.any()]
    blocks = {k: case.observed[k].reshape(-1)[low:high] for k in wrong}
    if len({v for block in blocks.values() for v in np.unique(block).tolist()}) == 1:
        return f"the constant {next(iter(blocks.values()))[0]:g}"
    later = {k: b for k, b in blocks.items() if k > 0}
    if later and all(np.array_equal(b, case.expected[k - 1].reshape(-1)[low:high]) for k, b in later.items()):
        return "the right result of the sample before (stale)"
    others = {t: name for k in wrong[:1] for t, name in _tensors_with(case, k, blocks[k]).items()}
    return next(iter(others.values()), "")


def _tensors_with(case: Case, sample: int, block: Array) -> Mapping[int, str]:
    """Return other tensors of the dump that hold the block's bytes."""
    data = np.ascontiguousarray(block).tobytes()
    if len(np.unique(block)) < _ENOUGH or len(data) < 8:
        return {}
    found = {}
    for tensor, value in case.dumps[sample].tensors.items():
        if tensor != case.tensor and value.dtype.kind in "iuf":
            at = np.ascontiguousarray(value).tobytes().find(data)
            if at >= 0:
                found[tensor] = f"the bytes of tensor {tensor} at offset {at:,}"
    return found


def _reader(case: Case) -> int:
    """Return the first operator that reads the tensor."""
    return view(case.model).readers(case.tensor)[0].index


def _as_read(case: Case) -> str:
    """Return whether readers' results follow from the "right" values or from the dumped, "wrong" ones; else ""."""
    votes = set()
    for reader in view(case.model).readers(case.tensor):
        for k, mask in enumerate(case.masks):
            if mask.any():
                votes |= _vote(case, k, reader.index, reader.writes)
    return votes.pop() if len(votes) == 1 else ""


def _vote(case: Case, sample: int, reader: int, results: tuple[int, ...]) -> set[str]:
    dump = case.dumps[sample].tensors
    fits = {}
    for word, value in (("right", case.expected[sample]), ("wrong", case.observed[sample])):
        try:
            part = part_of(case.model, (reader,), {**dump, case.tensor: value})
            made = part.run(part.plan(case.profile))
        except TflqError:
            return set()
        known = [t for t in results if t in dump and t in made]
        fits[word] = bool(known) and all(np.array_equal(made[t], dump[t]) for t in known)
    return {word for word, is_right in fits.items() if is_right} if sum(fits.values()) == 1 else set()
