"""An input that changes the answer: found, run again under both profiles, written; and what cannot be searched."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import commands, suites
from tflq.errors import InputError, UnsupportedError
from tflq.proof.answers import search_answer

MODELS = suites.ROOT / "golden" / "models"
INT8, LSTM, UNET = (MODELS / f"digits_{name}.tflite" for name in ("mobilenet_int8", "lstm_int8", "unet_int8"))


@pytest.mark.parametrize("model", [INT8, LSTM])
def test_the_input_changes_the_answer_of_both_profiles(model: Path) -> None:
    found = search_answer(model, ("litert-ref", "litert-xnnpack")).found
    assert found is not None
    chosen = []
    for profile in ("litert-ref", "litert-xnnpack"):
        interpreter = tflq.Interpreter(str(model), profile=profile)
        interpreter.allocate_tensors()
        for tensor, value in found.inputs.items():
            interpreter.set_tensor(tensor, value)
        interpreter.invoke()
        row = interpreter.get_tensor(found.output).reshape(-1, found.values[0].size)[found.row]
        chosen.append(int(row.argmax()))
    assert tuple(chosen) == found.answers
    assert chosen[0] != chosen[1]


def test_equal_profiles_have_no_such_input() -> None:
    searched = search_answer(INT8, ("litert-ref", "litert-ref"), tries=200)
    assert (searched.found, searched.tried) == (None, 200)


def test_a_search_is_the_same_every_time_and_begins_with_the_inputs_given() -> None:
    between = "litert-ref", "litert-xnnpack"
    one, other = (search_answer(INT8, between, seed=3) for _ in range(2))
    assert one.found is not None
    assert other.found is not None
    assert one.tried == other.tried
    again = search_answer(INT8, between, [dict(one.named_inputs)])
    assert (again.tried, again.found is not None) == (1, True)


def test_a_model_that_chooses_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="no output chooses"):
        search_answer(UNET, ("litert-ref", "tflm"))


def test_a_profile_that_refuses_the_model_is_named() -> None:
    with pytest.raises(UnsupportedError):
        search_answer(INT8, ("litert-ref", "tf-1.15-ref"))


@pytest.mark.slow
def test_the_command_writes_the_input_and_states_when_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "answer.npz"
    words = ["prove", str(INT8), "--answer", str(path), "--json"]
    done = commands.tflq(*words, "--between", "litert-ref", "litert-xnnpack")
    answer = json.loads(done.stdout)["answer"]
    assert answer["file"] == str(path)
    ran = [tflq.run(INT8, str(path), profile).arrays for profile in ("litert-ref", "litert-xnnpack")]
    assert [int(np.argmax(one[answer["output"]])) for one in ran] == answer["answers"]
    again = commands.tflq(*words, "--between", "litert-ref", "litert-xnnpack")
    assert (again.exit_code, "exists already" in json.loads(again.stdout)["message"]) == (2, True)
    none = commands.tflq(*words[:2], "--answer", tmp_path / "b.npz", "--between", "litert-ref", "litert-2.2-ref")
    assert "changes an arg-max; this is no proof" in none.stdout
    assert not (tmp_path / "b.npz").exists()


@pytest.mark.parametrize("signature", ["prefill_8", "decode"])
def test_inputs_that_are_indices_are_searched(signature: str) -> None:
    model = MODELS / "tiny_decoder_int8.tflite"
    assert search_answer(model, ("litert-ref", "litert-opt"), tries=4, signature=signature).tried == 4
