"""Chips of known hardware's kinds: the learned profile computes every fresh element of fresh geometries, or none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.planted import PlantedTarget
from support.planted_chips import CHIPS, Chip, Reading, Scaler
from tflq.devices.learning.asking import Asker
from tflq.devices.learning.candidates import Effort
from tflq.devices.learning.findings import LearnFindings, LearnState
from tflq.devices.learning.learner import learn
from tflq.devices.learning.questions import subjects
from tflq.devices.learning.words import finding, text_of
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.flatbuf import read

#: A chip whose sums saturate after each tap from a width on that its biases leave, too.
BESIDE = ("accumulator of 16 bits that saturates by tap",)
#: Every third chip, so that each kind is among them: one takes up to half a minute.
TRIED = sorted({*[*CHIPS][::3], *BESIDE})


def learned(chip: Chip) -> LearnFindings:
    return learn(PlantedTarget(chip), subjects(["int8"], [chip.op]), Effort(first=12, fresh=12))


def exact(found: LearnFindings, chip: Chip, folder: Path) -> tuple[int, int, int]:
    """Return how many fresh elements a profile gives right, how many it gives, and how many models it refuses."""
    path = folder / "learned.yaml"
    path.write_text(text_of(found), encoding="utf-8")
    profile, same, elements, refused = by_name(str(path)), 0, 0, 0
    for one in found.operators:
        for answer in Asker(PlantedTarget(chip)).ask([*one.subject.drafts(777, 16), *one.subject.covering(31, 9)]):
            try:
                plan = make_plan(read(answer.draft.model()), profile)
            except TflqError:
                refused += 1
                continue
            for sample, (got,) in zip(answer.draft.samples, answer.outputs, strict=True):
                values = run(plan, dict(zip(plan.inputs, sample, strict=True))).values[plan.outputs[0]]
                same += int(np.count_nonzero(values == got))
                elements += got.size
    return same, elements, refused


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_a_chip_is_learned(name: str, tmp_path: Path) -> None:
    found = learned(CHIPS[name])
    (one,) = found.operators
    assert one.state is (LearnState.UNKNOWN if name in BESIDE else LearnState.LEARNED), finding(one)
    same, elements, refused = exact(found, CHIPS[name], tmp_path)
    if name not in BESIDE:
        assert (same, refused) == (elements, 0)
        assert elements > 2000


@pytest.mark.slow
def test_what_holds_for_some_geometries_is_usable(tmp_path: Path) -> None:
    class Lame(Chip):
        def run(self, model: object, inputs: list[np.ndarray]) -> np.ndarray:
            made = super().run(model, inputs)
            return made if made.shape[0] == 1 else made[::-1].copy()

    chip = Lame("DEPTHWISE_CONV_2D", Scaler(15, "up"), Reading())
    found = learned(chip)
    (one,) = found.operators
    assert one.state is LearnState.PARTLY
    assert "only with batch 1" in finding(one)
    same, elements, refused = exact(found, chip, tmp_path)
    assert same == elements > 2000
    assert refused > 0
