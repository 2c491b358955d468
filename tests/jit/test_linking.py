"""Compiled functions that compiled functions call: the same results, one body for all constants, nothing for Python."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.jit.compiled import Array, Int, compiled, compiling_is_off

pytestmark = pytest.mark.skipif(compiling_is_off(), reason="nothing is linked where the source runs as Python")


@compiled
def _checked(value: Int, limit: Int) -> tuple[Int, Int]:
    if value > limit:
        raise ValueError("beyond the limit")
    return value * 2, limit - value


@compiled
def _sum_of(values: Array, limit: Int) -> Int:
    total = 0
    for value in values:
        double, rest = _checked(value, limit)
        total += double * 100 + rest
    return total + _checked(1, 5)[0] + _checked(2, 7)[1] + _checked(np.int64(3), limit=np.int64(9))[0]


def test_callees_compute_what_they_do_by_themselves() -> None:
    values = np.arange(7)
    assert _sum_of(values, 9) == sum(200 * int(v) + 9 - int(v) for v in values) + 2 + 5 + 6
    assert _checked(3, 5) == (6, 2)


def test_what_a_callee_raises_reaches_the_caller() -> None:
    with pytest.raises(ValueError, match="beyond the limit"):
        _sum_of(np.array([3, 12]), 9)


def test_a_callee_has_one_body_for_all_constants() -> None:
    _sum_of.inner().compile("int64(int64[::1], int64)")
    (body,) = _checked.inner().overloads.values()
    assert body.library.get_pointer_to_function(body.fndesc.llvm_func_name) == 0
