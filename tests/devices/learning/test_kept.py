"""Learning that was interrupted goes on without asking anything twice; foreign or damaged answers are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.commands import tflq
from support.planted import Device, Fields, PlantedTarget
from tflq.devices.learning.asking import Asker, KeptAnswers
from tflq.devices.learning.candidates import Effort
from tflq.devices.learning.findings import LearnState
from tflq.devices.learning.learner import learn
from tflq.devices.learning.questions import LearnSubject, subjects
from tflq.devices.learning.words import document_of
from tflq.devices.suites.target import target_of
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import FileAccessError, InputError

QUICK = Effort(first=4, fresh=4, seed=1)
RELU = LearnSubject("RELU", "int8 -> int8")


SWISH = subjects(["int8"], ["HARD_SWISH"])


class Reference:
    """A device that computes as LiteRT's reference kernels."""

    def run(self, model: Any, inputs: list[Any]) -> Any:
        plan = make_plan(model, by_name("litert-ref"))
        return run(plan, dict(zip(plan.inputs, inputs, strict=True))).values[plan.outputs[0]]


class Counting(PlantedTarget):
    """A device that counts what it is asked, and stops in the middle of its call number `stop`."""

    def __init__(self, stop: int = -1, error: BaseException | None = None) -> None:
        super().__init__(Reference())
        self.asked: list[bytes] = []
        self.calls, self.stop, self.error, self.half = 0, stop, error, 0

    def do(self, job: Any, cases: Any) -> str:
        self.calls += 1
        stops = self.calls == self.stop
        part = cases[: len(cases) // 2] if stops else cases
        self.asked += [(job.folder / case.id / "model.tflite").read_bytes() for case in part]
        super().do(job, part)
        if stops and self.error is not None:
            self.half = len(part)
            raise self.error
        return ""


def kept(folder: Path, target: Any) -> KeptAnswers:
    return KeptAnswers(str(folder), target.identity())


def without_calls(found: Any) -> Any:
    document = document_of(found)
    del document["learned"]["calls"]
    return document


@pytest.mark.parametrize("stop", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interrupted_run_goes_on(stop: int, tmp_path: Path) -> None:
    whole = Counting()
    at_once = learn(whole, SWISH, QUICK)
    first = Counting(stop, KeyboardInterrupt())
    partial = learn(first, SWISH, QUICK, kept=kept(tmp_path / "work", first))
    assert partial.is_partial
    second = Counting()
    found = learn(second, SWISH, QUICK, kept=kept(tmp_path / "work", second))
    assert not found.is_partial
    assert without_calls(found) == without_calls(at_once)
    # The answer that may have been half written is asked again, and nothing else.
    again = min(1, first.half)
    assert len(first.asked) + len(second.asked) == len(whole.asked) + again
    assert found.tally.kept == len(first.asked) - again > 0


def test_equal_questions_keep_two_answers(tmp_path: Path) -> None:
    noisy = PlantedTarget(Device(Fields(), "stochastic rounding"))
    convolution = subjects(["int8"], ["CONV_2D"])
    for _ in range(2):
        (one,) = learn(noisy, convolution, QUICK, kept=kept(tmp_path / "work", noisy)).operators
        assert one.state is LearnState.UNSTABLE


def test_failures_are_asked_again(tmp_path: Path) -> None:
    draft = RELU.drafts(0, 1)[0]

    class Dead(PlantedTarget):
        def do(self, job: Any, cases: Any) -> str:
            return "exit status 1"

    dead = Dead(Device(Fields()))
    (answer,) = Asker(dead, kept=kept(tmp_path, dead)).ask([draft])
    assert not answer.is_answered
    assert len(kept(tmp_path, dead)) == 0


def answered(folder: Path) -> Path:
    """Fill a folder with answers of a profile and return their file."""
    target = target_of("profile:tflm")
    Asker(target, kept=kept(folder, target)).ask(RELU.drafts(0, 3))
    assert len(kept(folder, target)) == 3
    return folder / "answers-00000.npz"


def test_another_target_or_version_is_refused(tmp_path: Path) -> None:
    answered(tmp_path)
    with pytest.raises(InputError, match=r"another target .*--work"):
        kept(tmp_path, target_of("profile:litert-ref"))
    record = json.loads((tmp_path / "record.json").read_text())
    (tmp_path / "record.json").write_text(json.dumps({**record, "tflq": "0.0.1"}))
    with pytest.raises(InputError, match=r"of tflq 0\.0\.1"):
        kept(tmp_path, target_of("profile:tflm"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "tflq/learn-work/1"}', "\0", '{"schema": 3, "target": {}}']
)
def test_a_strange_record_is_refused(text: str, tmp_path: Path) -> None:
    answered(tmp_path)
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(InputError):
        kept(tmp_path, target_of("profile:tflm"))


def test_damaged_answers_are_named(tmp_path: Path) -> None:
    file = answered(tmp_path)
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 0x40
    for data in (b"", whole[: len(whole) // 2], bytes(flipped), b"PK" + bytes(100)):
        file.write_bytes(data)
        with pytest.raises(InputError, match="damaged; remove it"):
            kept(tmp_path, target_of("profile:tflm"))
    for document in (b"[]", b"{}", b'{"answers": 3}', b'{"answers": [{"key": 1}]}', b'{"answers": [null]}'):
        np.savez(file, answers=np.frombuffer(document, np.uint8))
        with pytest.raises(InputError, match="damaged; remove it"):
            kept(tmp_path, target_of("profile:tflm"))
    file.unlink()
    assert len(kept(tmp_path, target_of("profile:tflm"))) == 0


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(FileAccessError, match="something else"):
        kept(tmp_path, target_of("profile:tflm"))
    with pytest.raises(FileAccessError):
        kept(tmp_path / "thesis.txt", target_of("profile:tflm"))


@pytest.mark.slow
def test_the_verb_goes_on_and_cleans_up(tmp_path: Path) -> None:
    output = tmp_path / "mine.yaml"
    words = [
        "learn",
        "--target",
        "profile:tflm",
        "--operators",
        "HARD_SWISH",
        "--fresh",
        "6",
        "-o",
        str(output),
        "--force",
    ]
    work = tmp_path / "work"
    first = tflq(*words, "--work", work)
    assert first.exit_code == 0, first.output
    again = tflq(*words, "--work", work)
    assert again.exit_code == 0
    assert "by an earlier run" in again.output
    assert tflq(*words).exit_code == 0
    assert not (tmp_path / "mine.yaml.answers").exists()
