"""A learned profile in every verb: it computes what was learned, and says of all else that it was not learned.

The device is a synthetic one. It computes FULLY_CONNECTED, on which it was asked, and MEAN, on which it was not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import suites
from support.commands import tflq
from support.planted import Device, Fields, PlantedTarget
from tflq.devices.grids.rows import refused_drafts
from tflq.devices.learning.candidates import Effort
from tflq.devices.learning.learner import learn
from tflq.devices.learning.questions import subjects
from tflq.devices.learning.words import document_of
from tflq.devices.suites.make import _case
from tflq.engine.api.files import load, save
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import view
from tflq.model.surgery.cut import extract

MODELS = suites.ROOT / "golden" / "models"
QUICK = Effort(first=10, fresh=8, seed=1)
DEVICE = Device(Fields(last="towards minus infinity"))
NOT_ASKED = "not learned: the device was not asked about it; tflq learn --operators MEAN asks it"


@dataclass
class Learned:
    """Files: the profile, a model of MEAN and FULLY_CONNECTED, one of the latter, and the device's dumps of both."""

    profile: str
    both: str
    both_dump: str
    known: str
    known_dump: str


def document(*words: str) -> Any:
    return json.loads(tflq(*words, "--json").stdout)


def dumped(path: str, given: np.ndarray[Any, Any], dump: Path) -> bool:
    """Write the device's tensors of a model to a dump; return whether LiteRT's reference gives other ones."""
    model = load(path)
    graph = view(model)
    values = {graph.inputs[0]: given}
    for op in graph.ops:
        source = values[op.inputs[0]]
        if op.name == "FULLY_CONNECTED":
            alone = extract(model, [str(op.index)])[0]
            values[op.outputs[0]] = DEVICE.run(alone, [source]).astype(np.int8)
        else:
            plan = make_plan(extract(model, [str(op.index)])[0], by_name("litert-ref"))
            values[op.outputs[0]] = run(plan, {plan.inputs[0]: source}).values[plan.outputs[0]]
    np.savez(dump, **{str(tensor): value for tensor, value in values.items()})  # type: ignore[arg-type]
    plan = make_plan(model, by_name("litert-ref"))
    return not np.array_equal(run(plan, {plan.inputs[0]: given}).values[plan.outputs[0]], values[graph.outputs[0]])


#: What is learned of the device, without the counts of questions.
PROFILE: dict[str, Any] = {
    "schema": "tflq/profile/1",
    "base": "litert-ref",
    "source": {"package": "learned", "version": "planted 1", "resolver": "", "cpu": "unknown"},
    "figures": "none",
    "others": "refused",
    "rows": [
        {
            "op": "FULLY_CONNECTED",
            "types": "int8 int8 int32 -> int8",
            "requantizer": {"multiplier": "float64", "last": "towards minus infinity"},
        }
    ],
    "learned": {
        "target": "planted",
        "complete": True,
        "operators": [
            {"op": "FULLY_CONNECTED", "types": "int8 int8 int32 -> int8", "state": "learned"},
            {"op": "SOFTMAX", "types": "int8 -> int8", "state": "refused"},
        ],
    },
}


@pytest.mark.slow
def test_the_profile_is_what_learning_writes() -> None:
    found = learn(PlantedTarget(DEVICE), subjects(["int8"], ["FULLY_CONNECTED", "SOFTMAX"]), QUICK)
    document = json.loads(json.dumps(document_of(found)))
    listed = [{key: one[key] for key in ("op", "types", "state")} for one in document["learned"]["operators"]]
    document["learned"] = {"target": "planted", "complete": document["learned"]["complete"], "operators": listed}
    assert {key: document[key] for key in PROFILE} == PROFILE


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Learned:
    folder = tmp_path_factory.mktemp("learned")
    profile = folder / "device.yaml"
    profile.write_text(json.dumps(PROFILE), encoding="utf-8")
    whole, paths, rng = load(MODELS / "digits_mobilenet_int8.tflite"), [], np.random.default_rng(3)
    for name, words in {"both": ["17..18"], "known": ["18"]}.items():
        path, dump = folder / f"{name}.tflite", folder / f"{name}.npz"
        save(extract(whole, words)[0], path)
        shape = view(load(path)).tensors[view(load(path)).inputs[0]].shape
        given = (rng.integers(-128, 128, shape).astype(np.int8) for _ in range(1000))
        assert any(dumped(str(path), one, dump) for one in given)
        paths += [str(path), str(dump)]
    return Learned(str(profile), *paths)


def test_run_computes_what_was_learned(learned: Learned, tmp_path: Path) -> None:
    given, out, graph = tmp_path / "given.npz", tmp_path / "out.npz", view(load(learned.known))
    with np.load(learned.known_dump) as dump:
        first, last = (dump[str(tensor)] for tensor in (graph.inputs[0], graph.outputs[0]))
    np.savez(given, **{graph.tensors[graph.inputs[0]].name or "": first})
    done = tflq("run", learned.known, "--profile", learned.profile, "--inputs", str(given), "-o", str(out))
    assert done.exit_code == 0, done.output
    with np.load(out) as results:
        assert np.array_equal(next(iter(results.values())), last)


def test_run_refuses_what_was_not_learned(learned: Learned, tmp_path: Path) -> None:
    done = tflq("run", learned.both, "--profile", learned.profile, "-o", str(tmp_path / "out.npz"))
    assert done.exit_code == 3
    assert NOT_ASKED in done.output


def test_explain_counts_only_what_was_learned(learned: Learned) -> None:
    found = tflq("explain", learned.both, "--dump", learned.both_dump, "--profile", learned.profile)
    assert found.exit_code == 3
    assert found.output.startswith("INCOMPLETE")
    assert NOT_ASKED in found.output
    whole = tflq("explain", learned.known, "--dump", learned.known_dump, "--profile", learned.profile)
    assert whole.exit_code == 0
    assert whole.output.startswith("SAME")


def test_verify_names_what_was_not_learned(learned: Learned, tmp_path: Path) -> None:
    golden = tmp_path / "golden.npz"
    recorded = tflq("record", learned.both, "--against", "litert-ref", "--all-tensors", "-o", str(golden))
    if recorded.exit_code:
        pytest.skip(f"no runtime to record with: {recorded.output[:200]}")
    done = tflq("verify", learned.both, "--golden", str(golden), "--profile", learned.profile)
    assert done.exit_code != 0
    assert NOT_ASKED in done.output
    dump = tflq("verify", learned.known, "--golden", learned.known_dump, "--profile", learned.profile)
    assert dump.exit_code == 0, dump.output  # a dump is read as explain reads it
    assert dump.output.startswith("SAME")


def test_fit_and_why_know_a_learned_profile(learned: Learned) -> None:
    found = document("fit", learned.known, "--dump", learned.known_dump, "--profile", learned.profile)
    assert learned.profile in found["fitting"]
    assert "litert-ref" not in found["fitting"]
    answer = tflq("why", learned.known, learned.known_dump, "--profile", learned.profile)
    assert answer.exit_code == 0
    assert learned.profile in answer.output.splitlines()[0]


def test_prove_decides_what_was_learned(learned: Learned) -> None:
    found = tflq("prove", learned.both, "--between", learned.profile, "litert-ref")
    assert found.exit_code == 1
    assert "1 differs, 1 not decided" in found.output
    assert NOT_ASKED in found.output


def test_quantize_runs_on_the_learned_profile_or_refuses(learned: Learned, tmp_path: Path) -> None:
    whole, rng = load(MODELS / "digits_mobilenet_float.tflite"), np.random.default_rng(4)
    names = [op.name for op in view(whole).ops]
    dense = names.index("FULLY_CONNECTED")
    words = ["--runtimes", learned.profile, "--mode", "int8"]
    for part, status in ((str(dense), 0), (f"{dense - 1}..{dense}", 3)):
        path, given = tmp_path / "float.tflite", tmp_path / "given.npy"
        save(extract(whole, [part])[0], path)
        shape = view(load(path)).tensors[view(load(path)).inputs[0]].shape
        np.save(given, rng.normal(size=(16, *shape[1:])).astype(np.float32))
        output = str(tmp_path / "int8.tflite")
        done = tflq("quantize", str(path), "--calibration", str(given), *words, "-o", output, "--force")
        assert done.exit_code == status, done.output
    assert NOT_ASKED in done.output


def test_nothing_must_be_refused_by_a_learned_profile(learned: Learned) -> None:
    profile = by_name(learned.profile)
    refused = [d for d in refused_drafts(0) if d.op in ("FULLY_CONNECTED", "MUL", "CONV_2D")]
    assert refused
    assert all(_case(0, d, by_name("litert-ref"), [], "smoke", {}) is not None for d in refused)
    assert all(_case(0, d, profile, [], "smoke", {}) is None for d in refused)


def test_each_state_is_named() -> None:
    states = {"TANH": "unknown", "ABS": "refused", "NEG": "learned", "MUL": 3}
    listed = [{"op": op, "types": "int8 -> int8", "state": state} for op, state in states.items()]
    profile = by_name("litert-ref").stating({"learned": {"operators": [*listed, "MEAN", None]}})
    assert profile.unlearned("TANH", "int8 -> int8").startswith("not learned: no form")
    assert profile.unlearned("ABS", "int8 -> int8") == "not learned: the device refused it"
    assert profile.unlearned("NEG", "int8 -> int8") == ""
    assert profile.unlearned("MUL", "int8 -> int8") == "not learned: no finding"
    assert "with these types" in profile.unlearned("NEG", "int16 -> int16")
    assert by_name("litert-ref").stating({"learned": {"operators": 5}}).unlearned("NEG", "x").startswith("not learned")
    assert by_name("litert-ref").unlearned("NEG", "int8 -> int8") == ""
