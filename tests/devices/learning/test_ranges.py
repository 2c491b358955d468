"""Devices that quantize by ranges: those of the grammar are learned, those beside it are never claimed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.planted import PlantedTarget
from support.planted_ranges import FAULTS, Ranged, ranged
from tflq.devices.learning.asking import Asker
from tflq.devices.learning.candidates import Effort
from tflq.devices.learning.findings import LearnFindings, LearnState
from tflq.devices.learning.learner import learn
from tflq.devices.learning.questions import subjects
from tflq.devices.learning.words import finding, text_of
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.flatbuf import read

QUICK = Effort(first=10, fresh=8, seed=1)
#: A fault that changes a factor by half an ULP.
NEARLY_INSIDE = FAULTS[3]
UNARY = ["QUANTIZE", "RELU6", "LEAKY_RELU"]


def wrong(found: LearnFindings, device: Ranged, folder: Path) -> tuple[int, int]:
    """Return how many elements of fresh answers the learned profile gives wrongly, and how many it gives."""
    path = folder / "learned.yaml"
    path.write_text(text_of(found), encoding="utf-8")
    profile, missed, elements = by_name(str(path)), 0, 0
    for one in found.operators:
        if one.state is not LearnState.LEARNED:
            continue
        for answer in Asker(PlantedTarget(device)).ask(one.subject.drafts(778, 12)):  # type: ignore[arg-type]
            if not answer.is_answered:
                continue
            plan = make_plan(read(answer.draft.model()), profile)
            for sample, (got,) in zip(answer.draft.samples, answer.outputs, strict=True):
                values = run(plan, dict(zip(plan.inputs, sample, strict=True))).values[plan.outputs[0]]
                missed += int(np.count_nonzero(values != got))
                elements += got.size
    return missed, elements


def learned(device: Ranged, operators: list[str]) -> LearnFindings:
    return learn(PlantedTarget(device), subjects(["int8"], operators), QUICK)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    "device",
    [
        Ranged(taken="made again"),
        Ranged(fuses_codes=True, fuses_reals=False, cuts_bounds=False),
        Ranged(shift_of_ends=True),
        Ranged(folds_first=True, rounding="half away from zero"),
    ],
)
def test_a_device_of_ranges_is_learned(device: Ranged, tmp_path: Path) -> None:
    found = learned(device, UNARY)
    assert {one.state for one in found.operators if one.subject.types == "int8 -> int8"} == {LearnState.LEARNED}
    missed, elements = wrong(found, device, tmp_path)
    assert missed == 0 < elements
    assert any("codes by range" in finding(one) or "by range" in text_of(found) for one in found.operators)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_device_beside_the_grammar_is_never_claimed_wrongly(fault: str) -> None:
    found = learned(Ranged(fault=fault), ["LEAKY_RELU"])
    assert all(one.state is not LearnState.LEARNED for one in found.operators)


@pytest.mark.slow
@pytest.mark.parametrize("sums", ["counted", "back"])
def test_sums_of_steps_are_learned(sums: str, tmp_path: Path) -> None:
    device = Ranged(sums=sums)
    found = learned(device, ["ADD", "SUB", "MUL"])
    assert {one.state for one in found.operators} == {LearnState.LEARNED}
    missed, elements = wrong(found, device, tmp_path)
    assert missed == 0 < elements


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 24, 3))
def test_drawn_devices_are_never_claimed_wrongly(seed: int, tmp_path: Path) -> None:
    device = ranged(seed)
    found = learned(device, UNARY)
    missed, elements = wrong(found, device, tmp_path)
    if device.fault == NEARLY_INSIDE:  # few fresh models may show none of the elements that differ
        assert missed * 500 <= elements
        return
    assert missed == 0
    if not device.fault:
        states = {one.state for one in found.operators if one.subject.types == "int8 -> int8"}
        assert states == {LearnState.LEARNED}
