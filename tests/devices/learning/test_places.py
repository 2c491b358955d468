"""Devices that are wrong in one place, or in two: none is claimed, and a right one states what was covered."""

from __future__ import annotations

import pytest

from support.planted import PlantedTarget
from support.planted_places import Places, planted
from tflq.devices.learning.candidates import Effort
from tflq.devices.learning.findings import Learned, LearnState
from tflq.devices.learning.learner import learn
from tflq.devices.learning.questions import subjects
from tflq.devices.learning.words import provenance

QUICK = Effort(first=10, fresh=8, seed=1)


def learned(device: Places) -> Learned:
    (one,) = learn(PlantedTarget(device), subjects(["int8"], [device.op]), QUICK).operators
    return one


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 60, 10))
def test_a_device_with_a_fault_in_one_place_is_not_claimed(seed: int) -> None:
    device = planted(seed)
    found = learned(device)
    assert found.state is not LearnState.LEARNED or not device.shown, (device.faults, found)


@pytest.mark.slow
def test_a_claim_lists_its_coverage_in_numbers() -> None:
    found = learn(PlantedTarget(Places("LOGISTIC", ())), subjects(["int8"], ["LOGISTIC"]), QUICK)
    (one,) = found.operators
    assert one.state is LearnState.LEARNED
    assert one.coverage is not None
    assert one.coverage.inputs == (-128, 127)
    assert one.coverage.channels >= 65
    (row,) = provenance(found)["operators"]
    assert "up to 256 channels" in row["coverage"]


def test_questions_cover_wide_rows_every_channel_and_every_level_of_codes() -> None:
    (subject,) = subjects(["int8"], ["CONV_2D"])
    drafts = subject.covering(0)
    shapes = [draft.outputs[0].shape for draft in drafts]
    assert max(shape[2] for shape in shapes) >= 65
    assert {shape[3] % 8 for shape in shapes} == set(range(8))
    assert any(draft.aim.startswith("layout: ties") for draft in drafts)
    assert all(
        {int(s[0].max()) for s in d.samples} >= {127} and {int(s[0].min()) for s in d.samples} >= {-128} for d in drafts
    )
