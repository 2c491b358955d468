"""Targets that crash, hang, refuse, or leave strange files: each costs its own question only."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tflq.devices.learning.asking import Asker
from tflq.devices.learning.findings import LearnState
from tflq.devices.learning.learner import learn
from tflq.devices.learning.questions import LearnSubject, subjects
from tflq.devices.suites.jobs import UNSTATED
from tflq.devices.suites.target import target_of

RELU = LearnSubject("RELU", "int8 -> int8")
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
    "crashes": ("    os.abort()", LearnState.FAILED),
    "refuses": ("    open(os.path.join(place, 'refused.txt'), 'w').write('no')", LearnState.REFUSED),
    "leaves nothing": ("    pass", LearnState.FAILED),
    "leaves too much": ("    out(data * 3)", LearnState.FAILED),
    "is noisy": ("    out(os.urandom(len(data)))", LearnState.UNSTABLE),
    "links": ("    os.symlink('/etc/hostname', os.path.join(place, 'out0_0.bin'))", LearnState.FAILED),
    "prints": ("    print('x' * 10000); out(bytes(len(data)))", LearnState.TABLE),
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


def test_operators_that_a_target_does_not_state_are_refused_without_a_question(tmp_path: Path) -> None:
    (tmp_path / "asked").touch()
    body = f"    open({str(tmp_path / 'asked')!r}, 'a').write(name + '\\n'); out(data)"
    words = command(tmp_path, body).split()
    source = Path(words[1]).read_text()
    Path(words[1]).write_text(source + "open(os.path.join(folder, 'operators.txt'), 'w').write('relu')\n")
    asker = Asker(target_of(" ".join(words)))
    tanh = LearnSubject("TANH", "int8 -> int8")
    assert asker.ask(RELU.drafts(0, 1))[0].is_answered
    answers = asker.ask([*tanh.drafts(0, 2), *RELU.drafts(0, 1)])
    assert [(answer.refused, answer.reason == UNSTATED) for answer in answers] == [(True, True)] * 2 + [(False, False)]
    asked = (tmp_path / "asked").read_text().split()
    assert [name.partition("-")[2] for name in asked] == ["relu", "relu"]
    before = asker.tally.calls
    assert all(answer.refused for answer in asker.ask(tanh.drafts(1, 2)))
    assert asker.tally.calls == before


def test_the_limit_on_questions_leaves_operators_open(tmp_path: Path) -> None:
    found = learn(target_of("profile:litert-ref"), [RELU], most=3)
    assert found.operators[0].state is LearnState.OPEN
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
