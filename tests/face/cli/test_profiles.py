"""`tflq profiles`: the list, two side by side, and what they do to a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.commands import tflq, validate
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq.comparison.inspection.profile_pairs import compare_profiles, fields_read
from tflq.engine.profiles import PROFILES, by_name
from tflq.model.ir import TensorType

#: The verb with two profiles; a model follows.
EFFECTS = ("effects", "--profile", "litert-ref", "--profile", "tflm")
MODELS = suites.ROOT / "golden" / "singleop" / "models"


def run(*words: str) -> str:
    result = tflq("profiles", *words)
    assert result.exit_code == 0, result.output
    return result.stdout


def document(*words: str) -> dict:
    found = json.loads(run(*words, "--json"))
    validate(found, "profiles")
    return found


def test_every_profile_is_listed() -> None:
    listed = document()["profiles"]
    assert [p["name"] for p in listed] == list(PROFILES)
    assert all(name in run() for name in PROFILES)


def test_a_profile_does_not_differ_from_itself() -> None:
    assert compare_profiles(PROFILES["tflm"], PROFILES["tflm"]).differences == ()
    assert "no difference" in run("diff", "tflm", "tflm")


@pytest.mark.slow
def test_the_primitive_that_differs_is_named() -> None:
    rows = document("diff", "litert-ref", "tflm")["differences"]
    dense = next(d for d in rows if "int8 int8 int32 -> int8" in d["types"] and d["op"] == "FULLY_CONNECTED")
    assert {"name": "requantize_dense", "first": "FloatRounding", "second": "DoubleRounding"} in dense["primitives"]
    (images,) = (d["primitives"] for d in rows if d["op"] == "CONV_2D" and "int8 int8 int32 -> int8" in d["types"])
    first, second = "conv_2d.prepare_quantized", "conv_2d.prepare_optional"  # a bias may be absent
    assert images == [{"name": "kernel", "first": first, "second": second}]
    sums = next(d for d in rows if d["op"] == "SUM" and "int8 int32 -> int8" in d["types"])
    first, second = "mean_sum.prepare_sum", "mean_sum.prepare_sum_as_declared"
    assert sums["primitives"] == [{"name": "kernel", "first": first, "second": second}]


@pytest.mark.slow
def test_single_rounding_differs_where_something_is_requantized() -> None:
    differing = {d.op for d in compare_profiles(by_name("litert-ref"), by_name("litert-ref+single-rounding"))}
    assert {"CONV_2D", "ADD", "MUL"} <= differing
    assert not {"RESHAPE", "MAX_POOL_2D", "AVERAGE_POOL_2D"} & differing


def test_what_a_kernel_reads_is_found_behind_other_functions() -> None:
    (row, *_) = (k for k in PROFILES["litert-ref"].kernels["CONV_2D"] if k.signature.starts_with(TensorType.INT8))
    assert "requantize" in fields_read(row.prepare)
    (plain, *_) = (k for k in PROFILES["litert-ref"].kernels["CONV_2D"] if k.signature.starts_with(TensorType.FLOAT32))
    assert not fields_read(plain.prepare)


def test_operators_that_differ_are_found_in_a_model() -> None:
    path = MODELS / "fc_i8_0.tflite"
    found = document(*EFFECTS, str(path), "--profile", "litert-ref")
    (operator,) = found["operators"]
    (effect,) = operator["effects"]  # none for litert-ref against itself
    assert effect["profile"] == "tflm"
    assert effect["base"].startswith("FloatRounding")
    assert effect["here"].startswith("DoubleRounding")
    assert "1 of 1 operators" in run(*EFFECTS, str(path))


def test_a_model_may_give_the_same_bits_everywhere() -> None:
    path = MODELS / "average_pool_2d_i8_0.tflite"
    assert "the same bits" in run(*EFFECTS, str(path))
    assert document(*EFFECTS, str(path))["operators"][0]["effects"] == []


def test_what_is_proved_is_said() -> None:
    names = ("litert-ref", "litert-opt", "litert-ref+single-rounding")
    words = ("effects", str(MODELS / "add_i8_0.tflite"), *(word for name in names for word in ("--profile", name)))
    (before,) = document(*words)["operators"]
    (after,) = document(*words, "--prove")["operators"]
    assert [effect["profile"] for effect in before["effects"]] == after["proved"]
    assert (len(after["proved"]), after["effects"]) == (2, [])
    assert "same bits for every input" in run(*words, "--prove")
    assert "every input" not in run(*words)


def test_one_name_alone_is_refused() -> None:
    result = tflq("profiles", "diff", "tflm")
    assert result.exit_code == 2


def test_releases_that_agree_on_a_model_are_grouped() -> None:
    found = document("releases", str(MODELS / "fc_i8_0.tflite"), "--since", "2.13")
    groups = {tuple(a["releases"]): a["apart"] for a in found["agreements"] if a["resolver"] == "ref"}
    rounds_twice = ("tflite-2.13", "tflite-2.14", "litert-1.0", "litert-1.2")
    assert groups == {("litert-1.4", "litert-2.0", "litert-2.1", "litert-2.2", "litert-2.3"): [], rounds_twice: [0]}
    text = run("releases", str(MODELS / "fc_i8_0.tflite"), "--since", "tflite-2.13")
    assert "litert-1.4 to litert-2.3" in text
    assert "FULLY_CONNECTED 0" in text


@pytest.mark.parametrize(
    "words", [("releases", "--since", "2.7"), ("releases", "m.tflite", "--since", "2.6"), ("tflm", "--since", "2.7")]
)
def test_since_is_refused_without_a_model_or_a_known_release(words: tuple[str, ...]) -> None:
    assert tflq("profiles", *words).exit_code == 2


def test_no_profile_has_the_bits_of_what_was_compiled_for_an_npu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = T("uint8", (8,), value=np.zeros(8, np.uint8))
    tensors = [code, T("uint8", (64,)), T("int8", (1, 8), 0.5), T("int8", (1, 8), 0.5)]
    vela = Graph(tensors, (2,), (3,), [Op("ethos-u", (0, 1, 2), (3,), None, 1, b"x")])
    (tmp_path / "vela.tflite").write_bytes(build(vela))
    for words in (["profiles", "effects"], ["run"], ["verify"], ["prove", "--all"], ["record", "-o", "g.npz"]):
        done = tflq(*words, "vela.tflite")
        assert done.exit_code == 3, done.output
        assert "Arm Ethos-U" in done.output
        assert "the same bits" not in done.output


def test_effects_of_all_profiles_fit_eighty_columns_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    model = str(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite")
    head, *lines = run("effects", model).splitlines()
    assert "operators can give other bits than under litert-ref" in head
    assert max(map(len, lines)) <= 80
    counts = [int(line.split()[0]) for line in lines[1:13]]
    rest = [line for line in lines if "more (--html" in line]
    assert sum(counts) <= len(PROFILES)
    assert bool(rest) or sum(counts) == len(PROFILES)
    assert "differs in" not in "".join(lines)
    assert "differs in" in run("effects", model, "--all")
    assert "differs in" in run("effects", model, "--profile", "litert-ref", "--profile", "tflm")
