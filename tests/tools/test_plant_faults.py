"""Planted faults of every kind are drawn alike each time, and `why` answers them right or leaves them open."""

from __future__ import annotations

import numpy as np
import pytest
from faultfuzz.planted import Planted
from mutate_device import ROOT
from plant_faults import KINDS, asked, judged, planted, said, subjects


def _own(number: int) -> Planted | None:
    return planted(number, 5, [path for path in subjects() if path.is_relative_to(ROOT / "golden")], KINDS)


def test_a_fault_is_the_same_whenever_it_is_drawn() -> None:
    one, other = _own(1), _own(1)
    assert one is not None
    assert other is not None
    assert (one.kind, one.path, one.index) == (other.kind, other.path, other.index)
    for first, second in zip(one.samples, other.samples, strict=True):
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[t], second[t], equal_nan=first[t].dtype.kind == "f") for t in first)


@pytest.mark.slow
def test_no_answer_is_wrong_and_most_are_right() -> None:
    words = []
    for fault in filter(None, map(_own, range(24))):
        found = asked(fault)
        text = said(found)
        words.append((judged(fault, found, text), fault.kind, text.splitlines()[0]))
    assert not [one for one in words if one[0] not in ("right", "honest")]
    assert sum(word == "right" for word, _, _ in words) >= 0.85 * len(words), words
