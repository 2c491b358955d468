"""The table of what releases changed: true of the profiles on both sides, and what docs/versions.md says."""

from __future__ import annotations

import itertools

import pytest

from tflq.inspection.profile_pairs import compare_profiles
from tflq.profiles import by_name
from tflq.profiles.history import HISTORY, RELEASES, RESOLVERS, Change

SIDES = [(change, resolver) for change in HISTORY for resolver in change.resolvers]


def test_changes_lie_between_neighbouring_releases() -> None:
    neighbours = set(itertools.pairwise(RELEASES))
    assert {(change.last, change.first) for change in HISTORY} <= neighbours
    assert {resolver for change in HISTORY for resolver in change.resolvers} <= set(RESOLVERS)


@pytest.mark.parametrize(("change", "resolver"), SIDES, ids=[f"{c.op}-{c.first}-{r}" for c, r in SIDES])
def test_the_profiles_of_both_releases_differ_there(change: Change, resolver: str) -> None:
    before, after = (by_name(f"{release}-{resolver}") for release in (change.last, change.first))
    assert compare_profiles(before, after, (change.op,))
