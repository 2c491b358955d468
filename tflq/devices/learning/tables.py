"""Tables of codes: the fallback for operators of one 8-bit input whose form is not known."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.devices.conformance.draft import Draft
from tflq.devices.learning.answer import Answer
from tflq.devices.learning.findings import Learned, State
from tflq.devices.learning.subjects import Subject
from tflq.engine.kernels.facts import OPERATORS
from tflq.typing import Array

_EIGHT = ("int8", "uint8")


def as_tables(subject: Subject, answers: Sequence[Answer]) -> Generator[list[Draft], list[Answer], Learned | None]:
    """Return the tables of all answers that hold every code, confirmed with the codes in another order.

    Returns None for operators that are not functions of one 8-bit code.
    """
    fact = OPERATORS.get(subject.op)
    words = subject.types.split(" -> ")
    if fact is None or not fact.pointwise or words[0] not in _EIGHT or words[-1] not in _EIGHT:
        return None
    tables = [(answer, table) for answer in answers if (table := _table(answer)) is not None]
    if not tables:
        return None
    rng = np.random.default_rng(7)
    shuffled = [replace(a.draft, samples=((rng.permutation(a.draft.samples[0][0]),),)) for a, _ in tables]
    fresh = yield shuffled
    told = [(answer, table) for answer, (_, table) in zip(fresh, tables, strict=True) if answer.is_answered]
    elements = sum(answer.elements for answer, _ in told)
    exact = sum(_same(answer, table) for answer, table in told)
    if not told or exact < elements:
        return None
    return Learned(
        subject,
        State.TABLE,
        asked=len(answers),
        fresh=len(told),
        fresh_elements=elements,
        fresh_exact=exact,
        tables=tuple(_stated(answer.draft, table) for answer, table in tables),
        note=f"only for the {len(tables)} pairs of scales that were asked; other scales are refused",
    )


def _table(answer: Answer) -> Array | None:
    """Return the codes for every input code, the lowest first; None if some are missing or contradict each other."""
    if len(answer.draft.samples[0]) != 1:
        return None
    given = np.concatenate([sample[0].reshape(-1) for sample in answer.draft.samples])
    got = np.concatenate([outputs[0].reshape(-1) for outputs in answer.outputs])
    if given.dtype.itemsize != 1 or got.dtype.itemsize != 1 or given.shape != got.shape:
        return None
    low = int(np.iinfo(given.dtype).min)
    at = given.astype(np.int64) - low
    table = np.zeros(256, got.dtype)
    table[at] = got
    is_whole = len(np.unique(at)) == 256 and np.array_equal(table[at], got)
    return table if is_whole else None


def _same(answer: Answer, table: Array) -> int:
    given = answer.draft.samples[0][0]
    at = given.astype(np.int64) - int(np.iinfo(given.dtype).min)
    return int(np.count_nonzero(table[at] == answer.outputs[0][0]))


def _stated(draft: Draft, table: Array) -> dict[str, Any]:
    """Return a table as a profile's file states it."""
    x, y = draft.inputs[0], draft.outputs[0]
    assert x is not None  # an operator of one input
    stated: dict[str, Any] = {
        "input": [float(np.float32(x.scale)), int(x.zero_point)],
        "output": [float(np.float32(y.scale)), int(y.zero_point)],
    }
    numbers = {} if draft.options is None else {k: v for k, v in draft.options[1].items() if v}
    if numbers:
        stated["options"] = numbers
    return {**stated, "codes": table.tolist()}
