"""Mistakes that a device of other code makes are found and named: a slice of what tools/mutate_device.py measures."""

from __future__ import annotations

import numpy as np
import pytest
from mutate_device import ROOT, models

from device.judging import Judged, described, faulty, judged, rates
from device.planting import Case, cases

pytestmark = pytest.mark.slow

COUNT, SEED = 36, 1


@pytest.fixture(scope="module")
def planted() -> list[Case]:
    own = [path for path in models() if path.is_relative_to(ROOT / "golden")]
    return list(cases(own, range(COUNT), SEED))


@pytest.fixture(scope="module")
def results(planted: list[Case]) -> list[Judged]:
    return [judged(case) for case in planted]


def test_most_mistakes_change_something(planted: list[Case]) -> None:
    mistaken = [case for case in planted if case.kind != "none"]
    assert sum(case.changed > 0 for case in mistaken) >= 0.9 * len(mistaken)
    assert all(case.changed == 0 for case in planted if case.kind == "none")
    assert {case.kind for case in planted} == {"listed", "profile", "outside", "none"}


def test_a_case_is_the_same_whenever_it_is_drawn(planted: list[Case]) -> None:
    own = [path for path in models() if path.is_relative_to(ROOT / "golden")]
    for first, second in zip(planted, cases(own, range(5), SEED), strict=False):
        assert (first.mistake, first.model, first.site.index) == (second.mistake, second.model, second.site.index)
        assert len(first.samples) == len(second.samples)
        for one, other in zip(first.samples, second.samples, strict=True):
            assert one.keys() == other.keys()
            assert all(np.array_equal(one[t], other[t], equal_nan=True) for t in one)


def test_the_first_divergent_operator_is_found(results: list[Judged]) -> None:
    assert [r for r in results if not r.located] == []


def test_causes_are_named(results: list[Judged]) -> None:
    measured, said = rates(results), "\n".join(map(described, faulty(results)))
    assert measured["found"][0] >= 0.98 * measured["found"][1], said
    assert measured["alone"][0] >= 0.9 * measured["alone"][1], said
    assert measured["settled"][0] >= 0.95 * measured["settled"][1], said


def test_nothing_is_named_that_is_not_so(results: list[Judged]) -> None:
    measured, said = rates(results), "\n".join(map(described, faulty(results)))
    for name in ("not wrong", "left open", "same"):
        assert measured[name][0] == measured[name][1], said
    assert measured["left open"][1] > 0
    assert measured["same"][1] > 0
