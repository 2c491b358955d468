"""Single codes of a pointwise operator, or rows with one code, that give other results: entries of tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from support.devices import T, dump, one
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.faults import wrong_result
from tflq.diagnosis.faults.numbers import entries
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import Model

REF = by_name("litert-ref")
CODES = np.arange(-128, 128, dtype=np.int8)


def _found(model: Model, x: NDArray[np.int8], change: Callable[[NDArray[np.int8]], None]) -> str:
    values = run(make_plan(model, REF), {0: x}).values
    got = values[1].copy()
    change(got)
    case = wrong_result(OperatorCase(model, (dump(model, [x], [got]),), 0, REF))
    defect = None if case is None else entries(case)
    return "" if defect is None else defect.name


def _logistic(x: NDArray[np.int8]) -> Model:
    return one("LOGISTIC", [T("int8", x.shape, 0.05, 3)], T("int8", x.shape, 1 / 256, -128))


def test_one_entry_of_a_table_is_named_by_its_code() -> None:
    x = np.tile(CODES, 2)

    def change(got: NDArray[np.int8]) -> None:
        got[x == -7] += 1

    assert _found(_logistic(x), x, change).startswith("only the code -7 gives another result")


def test_neighbouring_codes_are_a_range() -> None:
    def change(got: NDArray[np.int8]) -> None:
        got[(CODES >= 10) & (CODES < 14)] += 1

    assert _found(_logistic(CODES), CODES, change).startswith("only the codes 10 to 13 give another result")


def test_a_code_with_right_results_elsewhere_is_no_entry() -> None:
    x = np.tile(CODES, 2)

    def change(got: NDArray[np.int8]) -> None:
        got[np.flatnonzero(x == -7)[0]] += 1

    assert not _found(_logistic(x), x, change)


def test_many_codes_are_arithmetic() -> None:
    def change(got: NDArray[np.int8]) -> None:
        got[::4] += 1

    assert not _found(_logistic(CODES), CODES, change)


def test_an_exponential_is_named_by_its_distance_from_the_largest_code() -> None:
    x = np.array([[9, 2, 6], [9, 1, 8], [40, 37, 9], [5, 2, 1], [7, 3, 1], [50, 1, 2]], np.int8)
    model = one(
        "SOFTMAX", [T("int8", x.shape, 0.2, 0)], T("int8", x.shape, 1 / 256, -128), ("SoftmaxOptions", {"beta": 1.0})
    )

    def change(got: NDArray[np.int8]) -> None:
        got[(x.max(axis=1, keepdims=True) - x == 3).any(axis=1), 0] -= 2

    assert "rows with a code 3 below their largest" in _found(model, x, change)
