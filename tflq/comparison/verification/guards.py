"""Report observed outputs that cannot reveal a difference: constant, saturated or NaN."""

from __future__ import annotations

import numpy as np

from tflq.comparison.verification.golden import Golden
from tflq.model.ir import Model
from tflq.statements import Statement
from tflq.typing import Array


def guards(model: Model, golden: Golden) -> tuple[Statement, ...]:
    """Return notes about the outputs: all constant, NaN, infinite, saturated, or equal for different inputs."""
    notes, golden = [], golden.plain()
    outputs = [value for o in golden.observations for value in o.outputs if value is not None]
    filled = [value for value in outputs if value.size > 1 and value.dtype.kind != "O"]
    if filled and all(_constant(value) for value in filled):
        text = "all outputs are constant: every element of each has one value, so they can reveal little"
        notes.append(Statement(text, "constant-outputs", outputs=len(filled)))
    elif golden.observations and len(golden.observations) > 1 and _all_equal(golden):
        text = "all samples have the same outputs although their inputs differ, so they can reveal little"
        notes.append(Statement(text, "equal-outputs", samples=len(golden.observations)))
    floats = [value for value in outputs if value.dtype.kind == "f"]
    nans = sum(int(np.count_nonzero(np.isnan(value))) for value in floats)
    infinite = sum(int(np.count_nonzero(np.isinf(value))) for value in floats)
    if nans:
        text = f"{nans} output element(s) are NaN; NaN counts as equal to NaN"
        notes.append(Statement(text, "nan-outputs", elements=nans))
    if infinite:
        notes.append(Statement(f"{infinite} output element(s) are infinite", "infinite-outputs", elements=infinite))
    if not any(value.size for value in outputs):
        notes.append(Statement("the outputs hold no elements", "empty-outputs"))
    return tuple(notes)


def _constant(value: Array) -> bool:
    first = value.ravel()[0]
    return bool(np.all((value == first) | ((value != value) & (first != first))))


def _all_equal(golden: Golden) -> bool:
    first, *others = golden.observations
    if not any(_key(first.inputs) != _key(o.inputs) for o in others):
        return False
    return all(_key(first.outputs) == _key(o.outputs) for o in others)


def _key(values: tuple[Array | None, ...]) -> list[object]:
    return [None if v is None else (v.shape, v.tobytes() if v.dtype.kind != "O" else v.tolist()) for v in values]
