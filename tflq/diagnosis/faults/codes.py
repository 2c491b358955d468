"""Only some codes of a pointwise operator give other results, or only rows that hold one code: entries of a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case
from tflq.diagnosis.faults.defect import Defect, DefectKind
from tflq.engine.kernels.facts import OPERATORS

Ints = NDArray[np.int64]
#: Runs of neighbouring codes, the share of all codes that they may be, and the codes that have to be right.
_RUNS, _MOST, _RIGHT = 2, 0.1, 16
#: Operators whose rows are sums of entries of a table, by the distance from the row's largest code.
_BY_ROW = ("SOFTMAX", "LOG_SOFTMAX")
_TELL = "run all codes at other scales: the same codes each time show a table, others an arithmetic"


def entries(case: Case) -> Defect | None:
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
    if np.isin(codes[~wrong], bad).any() or len(bad) > _MOST * len(every) or right < _RIGHT:
        return None
    ends = np.flatnonzero(np.diff(np.searchsorted(every, bad)) > 1)
    runs = np.split(bad, ends + 1)
    if len(runs) > _RUNS:
        return None
    listed = " and ".join(f"{run[0]:,}" if len(run) == 1 else f"{run[0]:,} to {run[-1]:,}" for run in runs)
    many = "s" if len(bad) > 1 else ""
    name = f"only the code{many} {listed} give{'' if many else 's'} another result: an entry of a table, or its index"
    return _defect(case, name, f"the other {right:,} codes that were seen give the right results")


def _codes(case: Case) -> tuple[Ints, ...] | None:
    """Return the codes that the operator reads, by sample; None if it does not read one tensor of them."""
    place = case.op.record.inputs[0] if len(case.op.record.inputs) == 1 else -1
    found = []
    for part in case.parts:
        value = next((v for at, v in part.inputs.items() if part.tensors[at] == place), None)
        if value is None or value.dtype.kind not in "iu" or value.dtype.itemsize > 2:
            return None
        found.append(value.astype(np.int64))
    return tuple(found)


def _of_rows(case: Case, read: tuple[Ints, ...]) -> Defect | None:
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


def _defect(case: Case, name: str, cleared: str) -> Defect:
    return Defect(DefectKind.PLACE, name, Certainty.LIKELY, case.tensor, "", cleared, _TELL)
