"""`tflq why`: the answer in fifteen lines, as Markdown, and as a document."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.commands import tflq, validate
from support.single_op import T, build
from support.usage import Planted, planted
from support.usage import device as devices_results
from tflq.engine.api.files import load, save
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.face.report.verbs.why import alternatives
from tflq.model.ir import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    Record,
    Subgraph,
    TensorSpec,
    TensorType,
    view,
)

SINGLE = suites.ROOT / "golden" / "singleop"
ADD = str(SINGLE / "models" / "tie_add_i8_0.tflite")
SAME = str(SINGLE / "recorded" / "tie_add_i8_0.npz")


@pytest.fixture(scope="module")
def mistake() -> Planted:
    return next(one for one in planted() if one.name.startswith("BGR-1"))


@pytest.fixture
def files(tmp_path: Path, mistake: Planted) -> tuple[str, str, str]:
    """A model, the device's outputs and the inputs that were meant."""
    model, outputs, inputs = (str(tmp_path / name) for name in ("m.tflite", "out.npy", "in.npy"))
    save(mistake.model, model)
    np.save(outputs, np.concatenate([next(iter(one.values())) for one in mistake.samples]))
    np.save(inputs, np.concatenate(mistake.given))
    return model, outputs, inputs


def test_a_mistake_of_the_user_is_the_first_line(files: tuple[str, str, str]) -> None:
    model, outputs, inputs = files
    result = tflq("why", model, outputs, "--inputs", inputs)
    lines = result.stdout.splitlines()
    assert (result.exit_code, lines[0]) == (1, "DIFFERS: RGB and BGR exchanged"), result.output
    assert len(lines) <= 15
    assert "the user's" in result.stdout
    assert "exchange the first and the last channel" in result.stdout


def test_the_document_follows_its_schema(files: tuple[str, str, str]) -> None:
    model, outputs, inputs = files
    found = json.loads(tflq("why", model, outputs, "--inputs", inputs, "--json").stdout)
    validate(found, "why")
    assert (found["fault"], found["causes"][0], found["mistake"]["after"]) == ("user", "RGB and BGR exchanged", 0)
    device = json.loads(tflq("why", ADD, SAME, "--json").stdout)
    validate(device, "why")
    assert (device["verdict"], device["fault"]) == ("same", "none")


def test_a_recording_of_the_profile_is_the_same() -> None:
    result = tflq("why", ADD, SAME)
    assert (result.exit_code, result.stdout.split(":")[0]) == (0, "SAME"), result.output


@pytest.mark.slow
def test_markdown_names_command_formula_and_versions(tmp_path: Path) -> None:
    """A wrong bit that no hypothesis explains."""
    golden = dict(np.load(SAME))
    key = next(k for k in golden if k == "s0_out0")
    golden[key].reshape(-1)[5] ^= 1
    np.savez(tmp_path / "d.npz", **golden)
    result = tflq("why", ADD, tmp_path / "d.npz", "--paste")
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("### DIFFERS: ")
    for word in ("tflq why tie_add_i8_0.tflite d.npz", "-op", "tflq reduce", "expected", "NumPy"):
        assert word in result.stdout


@pytest.mark.parametrize("words", [["--paste", "--json"], ["--paste", "--verbose"]])
def test_options_that_exclude_each_other_are_refused(words: list[str]) -> None:
    assert tflq("why", ADD, "x.npz", *words).exit_code == 2


def test_missing_and_foreign_evidence_is_bad_input(tmp_path: Path) -> None:
    assert tflq("why", ADD, tmp_path / "missing.npz").exit_code == 2
    np.savez(tmp_path / "o.npz", nothing=np.zeros(3))
    assert tflq("why", ADD, tmp_path / "o.npz").exit_code in (2, 3)
    np.save(tmp_path / "o.npy", np.zeros((7, 9), np.float32))
    assert tflq("why", ADD, tmp_path / "o.npy").exit_code == 2


@pytest.mark.slow
def test_an_installed_runtime_is_evidence() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    result = tflq("why", ADD)
    assert (result.exit_code, "xnnpack" in result.stdout) == (1, True), result.output
    assert tflq("why", ADD, "runtime:litert-ref").exit_code == 0


# --- devices that are asked -------------------------------------------------------------------------------------------

CONV = str(SINGLE / "models" / "tie_conv_i8_0.tflite")
#: A device of XNNPACK's arithmetic that refuses models of more than one output, in the form of the given body.
DEVICE = """
import pathlib, sys
from tflq.devices.suites.target import ProfileTarget
from tflq.engine.profiles import by_name
from tflq.face.report.verbs.why import alternatives
from tflq.engine.api.files import load
from tflq.model.ir import view

folder = pathlib.Path(sys.argv[1])
for name in (folder / "cases.txt").read_text().split():
    place = folder / name
    if len(view(load(place / "model.tflite")).outputs) > 1:
        (place / "refused.txt").write_text("one output only")
        continue
    samples = len(list(place.glob("in*_0.bin")))
    ProfileTarget(by_name("litert-xnnpack"))._do(place, samples)
    {body}
"""


def device(folder: Path, body: str = "pass") -> str:
    script = folder / "device.py"
    script.write_text(DEVICE.replace("{body}", body))
    return f"{sys.executable} {script}"


def test_a_device_is_asked_for_every_tensor() -> None:
    result = tflq("why", CONV, "--target", "profile:litert-xnnpack", "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["fault"], found["nearest"]) == (1, "runtime", "litert-xnnpack")
    assert found["certainty"] == "certain"
    assert found["operator"] == {"index": 0, "op": "CONV_2D"}
    assert tflq("why", CONV, "--target", "profile:litert-ref").exit_code == 0


@pytest.mark.slow
def test_a_device_that_has_one_output_only_is_asked_for_that(tmp_path: Path) -> None:
    model = suites.ROOT / "golden" / "models" / "digits_autoencoder_int8.tflite"
    result = tflq("why", model, "--target", device(tmp_path))
    assert (result.exit_code, result.stdout.split(":")[0]) == (0, "SAME"), result.output
    assert "in the outputs (inner tensors were not given)" in result.stdout
    assert "only outputs are compared" in result.stderr
    assert "refuses the model with every tensor as an output: one output only" in result.stderr


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("(place / 'out0_0.bin').write_bytes(b'1')", "out0_0.bin: expected"),
        ("(place / 'refused.txt').write_text('no')", "refuses the model: no"),
        ("sys.exit(3)", ""),  # after its last answer
    ],
)
@pytest.mark.slow
def test_a_wrong_device_is_named(body: str, said: str, tmp_path: Path) -> None:
    result = tflq("why", CONV, "--target", device(tmp_path, body))
    assert (result.exit_code == 4) == bool(said), result.output
    assert said in result.stderr


def test_a_device_that_is_not_there_is_one_line() -> None:
    result = tflq("why", CONV, "--target", "/no/such/program")
    assert (result.exit_code, len(result.stderr.splitlines())) == (4, 1)
    assert tflq("why", CONV, SAME, "--target", "profile:tflm").exit_code == 2


def test_installed_runtimes_are_compared_with_each_other() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    result = tflq("why", ADD, "--json")
    found = json.loads(result.stdout)
    validate(found, "why")
    assert (result.exit_code, found["evidence"]) == (1, "runtime:litert-xnnpack")
    groups = [set(group) for group in found["runtimes"]["groups"]]
    assert not any({"litert-ref", "litert-xnnpack"} <= group for group in groups)


def test_an_operator_that_breaks_a_rule_is_named(tmp_path: Path) -> None:
    """A maximum whose output has another scale: TFLite moves codes, and a device that rescales them differs."""
    x = np.arange(-8, 8, dtype=np.int8).reshape(1, 4, 4, 1)
    for scale, named in ((0.25, ["equal-scale"]), (0.5, [])):
        specs = [
            TensorSpec(
                name, TensorType.INT8, shape, quantization=Quantization(np.array([s], np.float32), np.array([0]))
            )
            for name, shape, s in (("x", (1, 4, 4, 1), 0.5), ("y", (1, 2, 2, 1), scale))
        ]
        options = Record("Pool2DOptions", {"filter_width": 2, "filter_height": 2, "stride_w": 2, "stride_h": 2})
        graph = Subgraph(tuple(specs), (0,), (1,), (Operator(0, (0,), (1,), options),))
        save(Model(3, (OperatorCode(17, "MAX_POOL_2D", 2),), (graph,), (Buffer(),)), tmp_path / "m.tflite")
        largest = x.reshape(2, 2, 2, 2).max((1, 3)).reshape(1, 2, 2, 1)
        np.savez(tmp_path / "d.npz", s0_in0=x, s0_out0=largest * 2)
        found = json.loads(tflq("why", tmp_path / "m.tflite", tmp_path / "d.npz", "--json").stdout)
        assert found["verdict"] == "differs"
        assert [f["values"]["rule"] for f in found["facts"] if f["kind"] == "model-breach"] == named


# --- how certain an answer is -----------------------------------------------------------------------------------------


def test_a_recording_of_an_installed_runtime_names_it() -> None:
    """Its profile has its name, so it is certain, although other runtimes have the same bits."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    found = json.loads(tflq("why", ADD, "runtime:litert-xnnpack", "--json").stdout)
    assert (found["certainty"], found["answer"]) == ("certain", "the bits of litert-xnnpack")
    assert len(found["fitting"]) > 1


def test_the_same_bits_without_their_origin_are_possible_in_other_runtimes(tmp_path: Path) -> None:
    """One operator that float runtimes compute alike: several answers, none of which is likelier."""
    path = tmp_path / "d.npz"
    model = load(CONV)
    rng = np.random.default_rng(0)
    fed = [rng.integers(-128, 128, view(model).tensors[view(model).inputs[0]].shape).astype(np.int8) for _ in range(4)]
    made = devices_results(model, fed, "litert-xnnpack", whole=True)
    graph = view(model)
    held = {f"s{k}_in0": one[graph.inputs[0]] for k, one in enumerate(made)}
    held |= {f"s{k}_out0": one[graph.outputs[0]] for k, one in enumerate(made)}
    np.savez(path, **held)
    found = json.loads(tflq("why", CONV, path, "--json").stdout)
    assert (found["certainty"], found["fault"]) == ("none", "open")
    assert found["answer"].startswith("possibly the bits of litert-xnnpack and ")
    assert "TVM" in found["foreign"][0]


def test_one_wrong_element_names_nobody(tmp_path: Path) -> None:
    golden = dict(np.load(SAME))
    golden["s0_out0"].reshape(-1)[5] ^= 1
    np.savez(tmp_path / "d.npz", **golden)
    found = json.loads(tflq("why", ADD, tmp_path / "d.npz", "--json").stdout)
    assert found["certainty"] == "none"
    assert found["answer"].startswith(("possibly", "operator 0 ADD differs in 1 of "))


def test_markdown_of_a_device_has_commands_that_exist(tmp_path: Path) -> None:
    """A target leaves no file, so nothing is reduced; a runtime is recorded first."""
    asked = tflq("why", ADD, "--target", "profile:litert-xnnpack", "--paste").stdout
    assert f"tflq why {Path(ADD).name} --target profile:litert-xnnpack" in asked
    assert "tflq reduce" not in asked
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    recorded = tflq("why", ADD, "runtime:litert-xnnpack", "--paste").stdout
    assert "tflq record tie_add_i8_0.tflite --against litert-xnnpack --all-tensors -o" in recorded
    assert "tflq reduce tie_add_i8_0.tflite --dump tie_add_i8_0-litert-xnnpack.npz" in recorded


@pytest.mark.slow
@pytest.mark.skipif(bool(suites.missing()), reason=suites.missing() or "present")
def test_no_recorded_device_is_certainly_another() -> None:
    """An answer that is certain or likely holds the truth; others say "possibly"."""
    folder = suites.SHARED / "devices"
    wrong = []
    for entry in json.loads((folder / "index.json").read_text(encoding="utf-8"))[::3]:
        found = json.loads(tflq("why", suites.SHARED / entry["model"], folder / entry["dump"], "--json").stdout)
        if found["certainty"] == "none":
            continue
        exact = found["findings"]["explanation"]["exact"]
        named = {*found["fitting"], *found["causes"], *(name for one in exact for name in (one["name"], *one["also"]))}
        mix = (entry.get("mix") or {}).get(found["operator"]["op"])
        true = {entry.get("profile"), mix, *entry.get("names", []), *entry["accept"]} - {None}
        patterns = [one[1:] for one in true if one.startswith("~")]
        if not named & true and not any(re.search(p, name, re.IGNORECASE) for p in patterns for name in named):
            wrong.append((entry["dump"], found["answer"]))
    assert not wrong


def test_a_constant_output_is_named_without_inputs(tmp_path: Path) -> None:
    np.save(tmp_path / "out.npy", np.full((4, 10), -128, np.int8))
    model = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
    result = tflq("why", model, tmp_path / "out.npy")
    assert "is the constant -128 in all 4 samples" in result.stdout.splitlines()[0]


def test_a_fault_that_is_no_arithmetic_in_text_and_document(tmp_path: Path) -> None:
    golden = dict(np.load(SAME))
    for key in [k for k in golden if "_out" in k]:
        golden[key] = np.roll(golden[key].reshape(-1), 3).reshape(golden[key].shape)
    np.savez(tmp_path / "d.npz", **{k: v for k, v in golden.items() if k.startswith("s")})
    text = tflq("why", ADD, tmp_path / "d.npz", "--verbose").stdout
    assert "the output is shifted" in text.splitlines()[0]
    assert "values are right but 3 elements too late, so the arithmetic is right" in text
    found = json.loads(tflq("why", ADD, tmp_path / "d.npz", "--json").stdout)
    validate(found, "why")
    validate(found["findings"], "explain")
    defect = found["findings"]["explanation"]["defect"]
    assert defect["kind"] == "addressing"
    assert found["causes"] == [defect["name"]]


def test_outputs_alone_are_said_to_hide_the_operator(tmp_path: Path) -> None:
    """A few codes of a network's output are wrong: no cause is named, and what would show more is."""
    model = suites.ROOT / "golden" / "models" / "digits_autoencoder_int8.tflite"
    loaded = load(model)
    graph = view(loaded)
    shape = graph.tensors[graph.inputs[0]].shape
    x = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    y = np.array(run(make_plan(loaded, by_name("litert-ref")), {graph.inputs[0]: x}).values[graph.outputs[0]])
    y.reshape(-1)[[3, 11, 40]] ^= 64
    np.savez(tmp_path / "d.npz", **{f"t{graph.inputs[0]}": x, f"t{graph.outputs[0]}": y})
    result = tflq("why", model, tmp_path / "d.npz")
    assert "cannot tell from outputs alone" in result.stdout.splitlines()[0]
    assert "record all tensors of the device" in result.stdout


def test_a_zip_of_files_is_evidence(tmp_path: Path) -> None:
    """An archive without a manifest is not taken for a damaged golden; `verify --golden` reads it the same way."""
    golden = np.load(SAME)
    np.save(tmp_path / "t2.npy", golden["s0_out0"])
    for position in (0, 1):
        np.save(tmp_path / f"t{position}.npy", golden[f"s0_in{position}"])
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        for name in ("t0.npy", "t1.npy", "t2.npy"):
            archive.write(tmp_path / name, name)
    for words in (("why", ADD, tmp_path / "d.zip"), ("explain", ADD, "--dump", tmp_path / "d.zip")):
        result = tflq(*words)
        assert result.exit_code == 0, result.output


def test_an_operator_that_the_profile_refuses_is_named(tmp_path: Path) -> None:
    """More inputs would not help; another profile does."""
    options = {"padding": 1, "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    w = T("int8", (4, 1, 1, 8), 0.01, value=np.ones((4, 1, 1, 8), np.int8))
    x, y = T("int16", (1, 3, 3, 8), 0.001), T("int16", (1, 3, 3, 4), 0.01)
    (tmp_path / "m.tflite").write_bytes(build("CONV_2D", [x, w, None], [y], ("Conv2DOptions", options), 4))
    zeros = {"in0": np.zeros((1, 3, 3, 8), np.int16), "out0": np.ones((1, 3, 3, 4), np.int16)}
    np.savez(tmp_path / "d.npz", **zeros)
    result = tflq("why", tmp_path / "m.tflite", tmp_path / "d.npz")
    assert "litert-ref does not take operator 0 CONV_2D: compare with --profile" in result.stdout
    assert "--inputs SOURCE" not in result.stdout


def test_names_that_differ_in_a_rounding_are_one() -> None:
    means = [f"mean of codes that ignores scales, rounded {how}" for how in ("half up", "half to even", "towards zero")]
    assert alternatives(means) == "mean of codes that ignores scales (3 roundings fit)"
    assert (
        alternatives([*means, "bias missing"]) == "mean of codes that ignores scales (3 roundings fit) or bias missing"
    )
    assert alternatives(means[:1]) == means[0]
