"""What the verbs find, found in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from support import commands, suites
from tflq.errors import InputError, OptionError, UnknownNameError
from tflq.model.ir import view

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


def document(*words: object) -> Any:
    return json.loads(commands.tflq(*words, "--json").stdout)


def run_of(profile: str) -> dict[int, np.ndarray]:
    """Every tensor of a run, by index."""
    interpreter = tflq.Interpreter(MODEL, profile=profile, experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    shape = interpreter.get_input_details()[0]["shape"]
    interpreter.set_tensor(0, np.random.default_rng(5).integers(-128, 128, shape).astype(np.int8))
    interpreter.invoke()
    graph = view(tflq.load(MODEL))
    made = [graph.inputs[0], *(t for operator in graph.ops for t in operator.outputs)]
    return {tensor: np.array(interpreter.get_tensor(tensor)) for tensor in made}


@pytest.fixture
def dump() -> dict[int, np.ndarray]:
    """A run with one element of operator 1 off by an LSB."""
    arrays = run_of("litert-ref")
    faulty = arrays[view(tflq.load(MODEL)).op(1).outputs[0]]
    faulty[tuple(n // 2 for n in faulty.shape)] ^= 1
    return arrays


def test_lint() -> None:
    told = document("lint", MODEL, "--target", "tflm")
    assert [finding.rule for finding in tflq.lint(MODEL, "tflm").findings] == [one["rule"] for one in told["findings"]]


def test_profiles() -> None:
    ops = ["SOFTMAX", "NEG"]
    assert {found.op for found in tflq.compare_profiles("litert-ref", "litert-opt", ops)} == {"SOFTMAX"}
    found = tflq.profile_effects(MODEL, "litert-ref", ["litert-opt"])
    effects = document("profiles", "effects", MODEL, "--profile", "litert-ref", "--profile", "litert-opt")
    assert [o.index for o in found.operators] == [o["index"] for o in effects["operators"]]
    with pytest.raises(UnknownNameError, match="litert-opt"):
        tflq.compare_profiles("litert-ref", "litert-opf")


def test_reduce_a_dump(dump: dict[int, np.ndarray]) -> None:
    found = tflq.reduce(MODEL, dump)
    assert found.operators == (1,)
    assert found.got is not None
    assert int(found.got[0].flat[0]) ^ int(found.expected[0].flat[0]) == 1


def test_reduce_takes_one_of_the_two(dump: dict[int, np.ndarray]) -> None:
    with pytest.raises(OptionError, match="either evidence or a check"):
        tflq.reduce(MODEL)
    with pytest.raises(OptionError, match="either evidence or a check"):
        tflq.reduce(MODEL, dump, check=lambda model, sample: True)
    with pytest.raises(InputError, match="no difference"):
        tflq.reduce(MODEL, check=lambda model, sample: False)


@pytest.mark.slow
def test_discriminate_as_explain_does(tmp_path: Path) -> None:
    """Several profiles explain the first difference of a device that computes litert-opt."""
    arrays = run_of("litert-opt")
    np.savez(tmp_path / "dump.npz", **{str(tensor): value for tensor, value in arrays.items()})
    found = tflq.discriminate(MODEL, tmp_path / "dump.npz")
    words = ("explain", MODEL, "--dump", tmp_path / "dump.npz", "--discriminate", tmp_path / "inputs.npz")
    told = document(*words)["discrimination"]
    assert found is not None
    assert list(found.causes) == told["causes"]
    assert (tmp_path / "inputs.npz").exists() == bool(found.trials)
