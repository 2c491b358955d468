"""Targets that crash, hang, refuse, or leave strange files: each costs its own question only."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tflq.devices.conformance.targets import target_of
from tflq.devices.learning.asking import Asker
from tflq.devices.learning.findings import State
from tflq.devices.learning.learner import learn
from tflq.devices.learning.subjects import Subject, subjects

RELU = Subject("RELU", "int8 -> int8")
HEAD = """
import os, sys, time
folder = sys.argv[-1]
names = open(os.path.join(folder, "cases.txt")).read().split()
for number, name in enumerate(names):
    place = os.path.join(folder, name)
    data = open(os.path.join(place, "in0_0.bin"), "rb").read()
    def out(data):
        open(os.path.join(place, "out0_0.bin"), "wb").write(data)
"""
#: Behaviour of a target by name, as the body of its loop; and the state of an operator that it leads to.
HOSTILE = {
    "crashes": ("    os.abort()", State.FAILED),
    "refuses": ("    open(os.path.join(place, 'refused.txt'), 'w').write('no')", State.REFUSED),
    "leaves nothing": ("    pass", State.FAILED),
    "leaves too much": ("    out(data * 3)", State.FAILED),
    "is noisy": ("    out(os.urandom(len(data)))", State.UNSTABLE),
    "links": ("    os.symlink('/etc/hostname', os.path.join(place, 'out0_0.bin'))", State.FAILED),
    "prints": ("    print('x' * 10000); out(bytes(len(data)))", State.TABLE),
}


def command(folder: Path, body: str) -> str:
    """Return the words of a target with that body."""
    path = folder / "target.py"
    path.write_text(HEAD + body + "\n")
    return f"{sys.executable} {path}"


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_target_has_a_state(name: str, tmp_path: Path) -> None:
    body, state = HOSTILE[name]
    found = learn(target_of(command(tmp_path, body), timeout=60), [RELU])
    assert [one.state for one in found.operators] == [state]


def test_a_target_that_hangs_is_ended(tmp_path: Path) -> None:
    asker = Asker(target_of(command(tmp_path, "    time.sleep(60) if number == 1 else out(data)"), timeout=2))
    answers = asker.ask(RELU.drafts(0, 3))
    assert [answer.is_answered for answer in answers] == [True, False, True] or not answers[1].is_answered
    assert "no end after 2 s" in answers[1].reason
    assert asker.tally.failed >= 1


def test_the_limit_on_questions_leaves_operators_open(tmp_path: Path) -> None:
    found = learn(target_of("profile:litert-ref"), [RELU], most=3)
    assert found.operators[0].state is State.OPEN
    assert found.is_partial
    assert found.tally.questions == 0


def test_answers_are_those_of_the_target() -> None:
    draft = RELU.drafts(0, 1)[0]
    (answer,) = Asker(target_of("profile:litert-ref")).ask([draft])
    assert answer.outputs[0][0].shape == tuple(draft.outputs[0].shape)
    assert answer.elements == 256
    assert answer.same(answer)
    assert np.unique(answer.outputs[0][0]).size > 1


def test_subjects_have_the_types_asked_for() -> None:
    assert RELU in subjects(["int8"])
    assert all("uint8" not in subject.types.split() for subject in subjects(["int8"]))
    assert [s.op for s in subjects(["int16"], ["TANH"])] == ["TANH"]
