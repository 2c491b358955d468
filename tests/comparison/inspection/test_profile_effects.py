"""Which profiles change an operator: decided by what it is prepared with, not by how that reads as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.single_op import T, build
from tflq.comparison.inspection.profile_effects import profile_effects
from tflq.engine.api.files import load
from tflq.engine.kernels.kernel import Kernel
from tflq.engine.profiles import Profile, by_name

BASE = by_name("litert-ref")


def adding(step: int) -> Profile:
    """litert-ref with an ABS whose results are `step` larger: a constant that only the function's closure holds."""

    def wrong(row: Kernel) -> Kernel:
        def prepare(node: Any, arithmetic: Any) -> Any:
            right = row.prepare(node, arithmetic)

            def evaluate(data: Any, x: Any) -> Any:
                return right.eval(data, x) + step

            return replace(right, eval=evaluate)

        return replace(row, prepare=prepare)

    return BASE.derive(f"adding {step}", kernels={"ABS": tuple(map(wrong, BASE.kernels["ABS"]))})


def test_constants_of_closures_count() -> None:
    model = load(build("ABS", [T("float32", (2, 3))], [T("float32", (2, 3))]))
    effects = profile_effects(model, adding(1), [adding(1), adding(2), BASE])
    assert [effect.profile for effect in effects.operators[0].effects] == ["adding 2", "litert-ref"]
