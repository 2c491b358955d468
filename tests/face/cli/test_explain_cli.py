"""`tflq explain` and `tflq fit` on what `tflq run --all-tensors` writes under another profile."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import suites
from support.commands import tflq, validate

MODEL = str(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite")


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "dump.npz"
    arguments = ["run", MODEL, "--profile", "litert-xnnpack", "--all-tensors", "-o", str(path)]
    assert tflq(*arguments).exit_code == 0
    return path


def document(verb: str, dump: Path, *options: str) -> tuple[int, dict[str, Any]]:
    done = tflq(verb, MODEL, "--dump", dump, *options, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    validate(found, verb)
    return done.exit_code, found


@pytest.mark.slow
def test_the_runtime_that_made_the_dump_is_among_the_causes(dump: Path) -> None:
    code, found = document("explain", dump)
    assert (code, found["verdict"], found["first_divergent"]) == (1, "differs", 0)
    assert "litert-xnnpack" in [cause["name"] for cause in found["explanation"]["exact"]]


def test_its_own_profile_finds_nothing(dump: Path) -> None:
    code, found = document("explain", dump, "--profile", "litert-xnnpack")
    assert (code, found["verdict"], found["explanation"]) == (0, "same", None)


@pytest.mark.slow
def test_fit_names_the_profile(dump: Path) -> None:
    _, found = document("fit", dump)
    assert found["best"] == "litert-xnnpack"
    assert found["unexplained"] == []


def test_the_next_command_can_be_typed_where_inputs_came_from_elsewhere() -> None:
    recorded = suites.ROOT / "golden/singleop/recorded"
    model = suites.ROOT / "golden/singleop/models/tie_conv_i8_0.tflite"
    words = ["--dump", recorded / "tie_conv_i8_0@litert-opt.npz", "--inputs", recorded / "tie_conv_i8_0.npz"]
    done = tflq("explain", *(model, *words))
    assert done.exit_code == 1
    (line,) = re.findall(r"^Next: tflq (.*)", done.stdout, re.MULTILINE)
    assert tflq(*shlex.split(line)).exit_code == 0


def test_all_samples_are_looked_at_or_one() -> None:
    recorded = suites.ROOT / "golden/singleop/recorded"
    model = suites.ROOT / "golden/singleop/models/tie_conv_i8_0.tflite"
    words = ["--dump", recorded / "tie_conv_i8_0@litert-opt.npz", "--inputs", recorded / "tie_conv_i8_0.npz", "--json"]
    elements = {}
    for sample in ("all", "0", "1"):
        done = tflq("explain", *(model, *words), "--sample", sample)
        (tensor,) = json.loads(done.stdout)["operators"][0]["tensors"]
        elements[sample] = tensor["elements"]
    assert elements["all"] == elements["0"] + elements["1"]
    assert tflq("explain", *(model, *words), "--sample", "2").exit_code == 2
    assert tflq("explain", *(model, *words), "--sample", "x").exit_code == 2


def test_what_is_no_dump_is_told_what_is_one(tmp_path: Path) -> None:
    told = tflq("explain", MODEL, "--dump", MODEL)
    assert told.exit_code == 2
    assert "not a dump" in told.stderr
    assert ".npz" in told.stderr
    empty = tflq("explain", MODEL, "--dump", tmp_path)
    assert empty.exit_code == 2
    assert "indices such as 't0', got nothing" in empty.stderr


@pytest.mark.slow
def test_where_inputs_are_assumed_the_next_step_is_to_fit_the_whole(dump: Path, tmp_path: Path) -> None:
    """The dump holds one tensor amid the model: what makes it is XNNPACK's, and everything before is, too."""
    with np.load(dump) as whole:
        np.savez(tmp_path / "partial.npz", t0=whole["t0"], t41=whole["t41"])
    done = tflq("explain", MODEL, "--dump", tmp_path / "partial.npz")
    assert "what makes them may be at fault instead" in done.stdout
    (line,) = re.findall(r"^Next: tflq (.*)", done.stdout, re.MULTILINE)
    fitted = tflq(*shlex.split(line))
    assert fitted.stdout.startswith("Best: litert-xnnpack ")


@pytest.mark.slow
def test_the_first_element_is_told_with_its_sample_and_what_is_far_off_as_such(tmp_path: Path) -> None:
    spec = np.load(suites.ROOT / "golden/singleop/recorded/tie_conv_i8_0.npz")
    arrays = {key: spec[key].copy() for key in ("s0_in0", "s0_out0", "s1_in0", "s1_out0")}
    far = arrays["s1_out0"].reshape(-1)
    far[3] = far[3] - 100 if far[3] > 0 else far[3] + 100
    np.savez(tmp_path / "dump.npz", **arrays)
    model = suites.ROOT / "golden/singleop/models/tie_conv_i8_0.tflite"
    text = tflq("explain", model, "--dump", tmp_path / "dump.npz").stdout
    assert "first at [0, 0, 0, 3] of sample 1: " in text
    assert "16 or beyond: 1" in text
