"""Float results that are numbers of a narrower type, or that overflow, are named in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.devices import T, dump, one
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults import Defect
from tflq.diagnosis.findings import investigate
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import Model

REF = by_name("litert-ref")
AXES = T("int32", (2,), value=np.array([1, 2], np.int32))
SUM: Model = one(
    "SUM", [T("float32", (1, 40, 40, 4)), AXES], T("float32", (1, 1, 1, 4)), ("ReducerOptions", {"keep_dims": True})
)
ADD: Model = one("ADD", [T("float32", (64,)), T("float32", (64,))], T("float32", (64,)), ("AddOptions", {}))


def _found(model: Model, inputs: list[np.ndarray], change: Callable[[np.ndarray], np.ndarray]) -> Defect | None:
    given = dict(zip(range(len(inputs)), inputs, strict=True))
    (result,) = [v for t, v in run(make_plan(model, REF), given, keep_all=True).values.items() if t == 2]
    found = investigate(model, [dump(model, inputs, [change(np.array(result))])], REF).explanation
    return None if found is None else found.defect


def _half(value: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return value.astype(np.float16).astype(np.float32)


def test_a_sum_that_overflows_in_float16() -> None:
    x = np.random.default_rng(1).uniform(0, 10, (1, 40, 40, 4)).astype(np.float32)
    x[..., 2] += 80
    found = _found(SUM, [x], _half)
    assert found is not None
    assert found.certainty == Certainty.CERTAIN
    assert "float16" in found.name
    assert "1 of 4 overflow to infinity in channel 2" in found.name


def test_bfloat16_is_not_called_float16() -> None:
    def narrow(value: np.ndarray) -> np.ndarray:
        return (value.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)

    x, y = (np.random.default_rng(k).normal(size=64).astype(np.float32) for k in (1, 2))
    found = _found(ADD, [x, y], narrow)
    assert found is not None
    assert found.name.startswith("bfloat16 inside")


def test_subnormal_results_that_are_flushed() -> None:
    x = np.linspace(-4e-38, 4e-38, 64).astype(np.float32)
    found = _found(
        ADD, [x, np.zeros(64, np.float32)], lambda v: np.where(np.abs(v) < 1.17549435e-38, 0, v).astype(np.float32)
    )
    assert found is not None
    assert "flush to zero" in found.name


def test_nothing_but_subnormal_results_leaves_two_causes() -> None:
    """All results are 0: they were flushed, or nothing was computed."""
    x = np.linspace(1e-40, 9e-40, 64).astype(np.float32)
    found = _found(ADD, [x, np.zeros(64, np.float32)], np.zeros_like)
    assert found is not None
    assert "flush to zero" in found.name
    assert "or nothing was computed" in found.name
    assert found.certainty == Certainty.LIKELY
