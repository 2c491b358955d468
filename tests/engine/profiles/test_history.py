"""The table of what releases changed: true of the profiles on both sides, and what docs/runtimes.md says."""

from __future__ import annotations

import itertools

import pytest

import tflq
from opfuzz.case import Case
from opfuzz.remote_worker import invoke
from opfuzz.ties import reductions
from support.each import each
from tflq.comparison.inspection.profile_pairs import compare_profiles
from tflq.engine.profiles import Profile, by_name
from tflq.engine.profiles.history import RELEASES, RESOLVERS, ReleaseChange, history

#: XNNPACK's kernels of MEAN and SUM are behind one rule of delegation: their outputs are compared.
BY_OUTPUTS = [change for change in history() if change.op in ("MEAN", "SUM") and change.resolvers == ("xnnpack",)]
SIDES = [(change, resolver) for change in history() if change not in BY_OUTPUTS for resolver in change.resolvers]


def test_changes_lie_between_neighbouring_releases() -> None:
    neighbours = set(itertools.pairwise(RELEASES))
    assert {(change.last, change.first) for change in history()} <= neighbours
    assert {resolver for change in history() for resolver in change.resolvers} <= set(RESOLVERS)


@each(("change", "resolver"), SIDES, ids=[f"{c.op}-{c.first}-{r}" for c, r in SIDES])
def test_the_profiles_of_both_releases_differ_there(change: ReleaseChange, resolver: str) -> None:
    before, after = (by_name(f"{release}-{resolver}") for release in (change.last, change.first))
    assert compare_profiles(before, after, (change.op,))


@pytest.mark.parametrize("change", BY_OUTPUTS, ids=[f"{change.op}-{change.first}" for change in BY_OUTPUTS])
def test_the_outputs_of_both_releases_differ_there(change: ReleaseChange) -> None:
    before, after = (by_name(f"{release}-xnnpack") for release in (change.last, change.first))
    cases = (case for case in reductions() if case.types == "int8 int32 -> int8")
    assert any(outputs_of(case, before) != outputs_of(case, after) for case in cases if case.op == change.op)


def outputs_of(case: Case, profile: Profile) -> list[bytes]:
    """The bytes of the first sample's outputs."""
    interpreter = tflq.Interpreter(model_content=case.model(), profile=profile)
    interpreter.allocate_tensors()
    return [output.tobytes() for output in invoke(interpreter, case.samples[0])]
