"""A synthetic device learned as a whole: its profile file computes it on drafts that nobody asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from support.commands import tflq, validate
from support.planted import Device, Fields, PlantedTarget, planted
from support.planted_chips import Chip
from tflq.devices.learning.asking import Asker
from tflq.devices.learning.candidates import Effort
from tflq.devices.learning.findings import Learned, LearnFindings, LearnState
from tflq.devices.learning.forms import Form, Forms
from tflq.devices.learning.learner import doubting, learn
from tflq.devices.learning.questions import LearnSubject, subjects
from tflq.devices.learning.words import describe, document_of, finding, text_of, work_out
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.flatbuf import read
from tflq.model.ir import Model, view

QUICK = Effort(first=10, fresh=8, seed=1)
AVERAGES = ["CONV_2D", "AVERAGE_POOL_2D"]


def exact(found: LearnFindings, target: Any, folder: Path) -> tuple[int, int]:
    """Return how many elements of fresh answers the written profile reproduces, and of how many."""
    path = folder / "learned.yaml"
    path.write_text(text_of(found), encoding="utf-8")
    profile, same, elements = by_name(str(path)), 0, 0
    for one in found.operators:
        for answer in Asker(target).ask(one.subject.drafts(777, 12)):
            if not answer.is_answered:
                continue
            plan = make_plan(read(answer.draft.model()), profile)
            for sample, (got,) in zip(answer.draft.samples, answer.outputs, strict=True):
                values = run(plan, dict(zip(plan.inputs, sample, strict=True))).values[plan.outputs[0]]
                same += int(np.count_nonzero(values == got))
                elements += got.size
    return same, elements


@pytest.mark.slow
def test_a_learned_profile_computes_the_device(tmp_path: Path) -> None:
    found = learn(planted(9), subjects(["int8"], AVERAGES), QUICK)
    assert [one.state for one in found.operators] == [LearnState.LEARNED] * 2
    same, elements = exact(found, planted(9), tmp_path)
    assert same == elements > 2000
    validate(document_of(found), "profile")
    steps = work_out(found.requantizers[0])
    assert steps[-1].value == steps[-2].value
    assert steps[-1].name == "the device's code"


@pytest.mark.slow
def test_a_fault_in_some_channels_is_unknown_and_said_where(tmp_path: Path) -> None:
    target = PlantedTarget(Device(Fields(first="half up", mantissa=31), "channels 3 modulo 4 are cut off"))
    (one,) = learn(target, subjects(["int8"], ["CONV_2D"]), QUICK).operators
    assert one.state is LearnState.UNKNOWN
    assert one.share[0] < one.share[1]
    assert one.rows() == []


class OtherWithDilation:
    """A device that computes other codes with a dilated window."""

    device = Chip("CONV_2D")

    def run(self, model: Model, inputs: list[Any]) -> Any:
        options = view(model).op(0).options
        assert options is not None
        is_dilated = any(options.get(f"dilation_{axis}_factor", 1) > 1 for axis in "hw")
        return self.device.run(model, inputs) ^ np.int8(is_dilated)


@pytest.mark.slow
def test_a_form_is_learned_for_the_usual_value_of_an_option() -> None:
    """The first models hold dilated windows, so that no form reproduces all of them."""
    target = PlantedTarget(OtherWithDilation())
    (one,) = learn(target, subjects(["int8"], ["CONV_2D"]), Effort(first=24, fresh=8, seed=1)).operators
    assert one.state is LearnState.PARTLY
    (only,) = [row["only"] for row in one.rows() if "only" in row]
    assert (tuple(only["names"]), only["values"]) == (("dilation_h", "dilation_w"), (("1", "1"),))
    same, elements = one.fresh_exact, one.fresh_elements
    assert same == elements > 1000


def test_forms_that_came_near_are_asked_about() -> None:
    """A float sum and a sum of integers differ once in many thousand elements: the questions hold such elements."""
    forms = Forms(LearnSubject("DEPTHWISE_CONV_2D", "int8 int8 int32 -> int8"))
    first, second = (Form(like) for like in ("litert-ref", "litert-xnnpack"))
    drafts = doubting(forms, first, [second], 3, 0)
    assert drafts
    for draft in drafts:
        assert all(a != b for a, b in zip(forms.by_sample(first, draft), forms.by_sample(second, draft), strict=True))


def test_noise_is_named() -> None:
    target = PlantedTarget(Device(Fields(), "stochastic rounding"))
    (one,) = learn(target, subjects(["int8"], ["CONV_2D"]), QUICK).operators
    assert one.state is LearnState.UNSTABLE


@pytest.mark.slow
def test_a_runtime_with_a_profile_is_named_by_it() -> None:
    from tflq.devices.suites.target import target_of

    found = learn(target_of("profile:tflm"), subjects(["int8"], ["RELU", "MEAN", "LOGISTIC"]), QUICK)
    assert all(one.state is LearnState.LEARNED for one in found.operators)
    assert {one.form.like for one in found.operators if one.form is not None} == {"tflm"}


@pytest.mark.parametrize(
    ("op", "kind", "point", "in_words"),
    [
        pytest.param(
            "MAX_POOL_2D",
            "ignores",
            {"option": "activation"},
            "as litert-ref, but the option activation is ignored",
            marks=pytest.mark.slow,
        ),
        (
            "RESIZE_NEAREST_NEIGHBOR",
            "nearest",
            {"plain": "rounded half up"},
            "the nearest pixel: plain rounded half up; align_corners rounded half up; "
            "half_pixel_centers from the edge, rounded down",
        ),
    ],
)
def test_a_row_of_a_file_is_learned_back(
    op: str, kind: str, point: dict[str, str], in_words: str, tmp_path: Path
) -> None:
    from tflq.devices.suites.target import target_of

    device = tmp_path / "device.yaml"
    device.write_text(yaml.safe_dump({"rows": [{"op": op, kind: point}]}), encoding="utf-8")
    (one,) = learn(target_of(f"profile:{device}"), subjects(["int8"], [op]), QUICK).operators
    assert (one.state, one.form and describe(one.form)) == (LearnState.LEARNED, in_words)


def test_ctrl_c_keeps_what_is_known() -> None:
    class Interrupted(PlantedTarget):
        calls = 0

        def do(self, job: Any, cases: Any) -> str:
            Interrupted.calls += 1
            if Interrupted.calls == 4:
                raise KeyboardInterrupt
            return super().do(job, cases)

    found = learn(Interrupted(planted(9).device), subjects(["int8"], AVERAGES), QUICK)
    assert found.is_partial
    assert found.reason == "interrupted"
    assert [one.state for one in found.operators].count(LearnState.OPEN) >= 1
    assert document_of(found)["learned"]["complete"] is False


@pytest.mark.slow
def test_the_verb_writes_a_profile_a_page_and_a_document(tmp_path: Path) -> None:
    output, page = tmp_path / "mine.yaml", tmp_path / "mine.html"
    words = ["learn", "--target", "profile:litert-opt", "-o", str(output), "--operators", "RELU", "--html", str(page)]
    done = tflq(*words, "--fresh", "6", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    validate(document, "learn")
    assert [one["state"] for one in document["operators"]] == ["learned"]
    assert yaml.safe_load(output.read_text(encoding="utf-8"))["others"] == "refused"
    assert "RELU" in page.read_text(encoding="utf-8")
    assert tflq(*words).exit_code == 2  # exists
    text = tflq(*words, "--fresh", "6", "--force")
    assert text.exit_code == 0
    assert "LEARNED" in text.output


@pytest.mark.parametrize(
    "words", [["-o", "mine.txt"], ["-o", "m.yaml", "--operators", "NONE"], ["-o", "m.yaml", "--types", "int3"]]
)
def test_strange_words_are_misuse(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert tflq("learn", "--target", "profile:tflm", *words).exit_code == 2


@pytest.mark.parametrize(
    ("share", "said"),
    [
        ((65_535, 65_536), "all but 1 of 65,536 elements"),
        ((998, 1000), "99.80 % of elements"),
        ((0, 7), "0.00 % of elements"),
    ],
)
def test_a_share_is_never_rounded_up_to_all(share: tuple[int, int], said: str) -> None:
    one = Learned(LearnSubject("SUB", "int8 int8 -> int8"), LearnState.UNKNOWN, nearest=Form(), share=share)
    assert finding(one).endswith(f": {said}")
