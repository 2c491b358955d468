"""What counts as prepared alike: nothing that could give other bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

from tflq.comparison.inspection.prepared import same
from tflq.engine.kernels.families.unary import tabulate
from tflq.engine.numerics.stage_roundings import DoubleRounding, ExactHalfUp, HalfUpTwice, ShortHalfUp


@dataclass(frozen=True)
class Held:
    values: np.ndarray
    derived: object = field(init=False, default_factory=object)


def adder(amount: float):
    return lambda x: x + amount


def scaled(x: int, by: int) -> int:
    return x * by


EQUAL = {
    "arrays": (np.arange(3), np.arange(3)),
    "stages": (DoubleRounding.of([0.1, 0.2]), DoubleRounding.of([0.1, 0.2])),
    "closures": (adder(1.0), adder(1.0)),
    "partials": (partial(scaled, by=2), partial(scaled, by=2)),
    "derived fields": (Held(np.arange(2)), Held(np.arange(2))),
    "NaN": (float("nan"), float("nan")),
    "tables by value": (tabulate(1, lambda d: np.zeros(256)), tabulate(2, lambda d: np.zeros(256))),
}
DIFFERENT = {
    "types of elements": (np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int64)),
    "kinds of stages": (DoubleRounding.of(0.1), HalfUpTwice.of(0.1)),
    "multipliers": (DoubleRounding.of(0.1), DoubleRounding.of(np.nextafter(np.float32(0.1), 1))),
    "what closures hold": (adder(1.0), adder(2.0)),
    "what partials hold": (partial(scaled, by=2), partial(scaled, by=3)),
    "signs of zero": (0.0, -0.0),
    "int and float": (1, 1.0),
    "unknown objects": (object(), object()),
    "classes": (DoubleRounding, HalfUpTwice),
    "methods of classes": (DoubleRounding.of, HalfUpTwice.of),
    "fields": (Held(np.arange(2)), Held(np.arange(1, 3))),
}


def test_classes_of_the_same_fields_differ() -> None:
    """Methods of classes are compared by their class."""
    assert ExactHalfUp.of is not ShortHalfUp.of
    assert not same(ExactHalfUp.of, ShortHalfUp.of)
    assert same(ShortHalfUp.of, ShortHalfUp.of)


@pytest.mark.parametrize("name", EQUAL)
def test_equal(name: str) -> None:
    assert same(*EQUAL[name])


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name: str) -> None:
    assert not same(*DIFFERENT[name])
