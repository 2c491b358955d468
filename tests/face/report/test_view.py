"""`tflq view`: which page it makes, what it writes, what the server answers, and node data for Model Explorer."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import suites
from support.commands import tflq
from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.results import InputFacts
from tflq.face.report.graph.colouring import LEVELS, scale, states
from tflq.face.report.verbs.view import COLOURS, overlay

GOLDEN = suites.ROOT / "golden"
CONV = GOLDEN / "singleop" / "models" / "tie_conv_i8_0.tflite"
RECORDED = GOLDEN / "singleop" / "recorded" / "tie_conv_i8_0.npz"
FLOAT, INT8 = (GOLDEN / "models" / f"digits_autoencoder_{kind}.tflite" for kind in ("float", "int8"))


def view(*words: object) -> int:
    return tflq("view", *words).exit_code


@pytest.mark.parametrize(
    ("words", "verb"),
    [((CONV,), "inspect"), ((CONV, "golden.npz"), "verify"), ((FLOAT, INT8), "diff"), ((CONV, "dump.npz"), "explain")],
)
def test_what_is_given_decides_the_page(
    words: tuple[object, ...], verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    entries = np.load(RECORDED)
    np.savez("dump.npz", **{name: entries[name] for name in entries.files if name != "tflq_golden"})
    observation = Observation((entries["s0_in0"],), (entries["s0_out0"],))
    digest = hashlib.sha256(CONV.read_bytes()).hexdigest()
    Golden((observation,), False, InputFacts("made", None, 1), {"name": "device"}, digest).save("golden.npz")
    assert view(*words, "--html", "page.html", "--overlay", "nodes.json") == 0
    assert f'<p class="verb">tflq {verb}</p>' in Path("page.html").read_text(encoding="utf-8")
    nodes = json.loads(Path("nodes.json").read_text(encoding="utf-8"))
    assert set(nodes["results"]) <= {str(i) for i in range(20)}
    assert nodes["results"]
    assert nodes["name"].startswith("tflq: ")


def test_it_has_to_write_something() -> None:
    assert view(CONV) == 2


def test_node_data_carries_values_colours_and_bounds() -> None:
    data = overlay(scale("largest difference", {0: 0.0, 1: 3.0, 4: 10.0}, "LSB"))
    assert data["name"] == "tflq: largest difference, LSB"
    assert {node: result["value"] for node, result in data["results"].items()} == {"0": 0.0, "1": 3.0, "4": 10.0}
    assert data["results"]["4"]["bgColor"] == COLOURS[f"hot{LEVELS}"]
    assert [bound["value"] for bound in data["thresholds"]] == [0.0, 3.0, 10.0]
    words = overlay(states("status", {2: ("bad", "differs")}))
    assert (words["results"]["2"]["value"], words["thresholds"]) == ("differs", [])


def member(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, dict) else getattr(value, name)


def test_model_explorer_loads_it(tmp_path: Path) -> None:
    explorer = pytest.importorskip("model_explorer", reason="ai-edge-model-explorer is not installed")
    builder = pytest.importorskip("model_explorer.node_data_builder")
    assert view(INT8, "--overlay", tmp_path / "nodes.json") == 0
    nodes = json.loads((tmp_path / "nodes.json").read_text(encoding="utf-8"))
    results = {key: builder.NodeDataResult(**value) for key, value in nodes["results"].items()}
    thresholds = [builder.ThresholdItem(**item) for item in nodes["thresholds"]]
    data = builder.GraphNodeData(results=results, name=nodes["name"], thresholds=thresholds)
    assert json.loads(data.to_json_string())["results"] == nodes["results"]
    config = explorer.config()
    config.add_model_from_path(str(INT8)).add_node_data_from_path(str(tmp_path / "nodes.json"))
    assert config.has_data_to_encode_in_url()
    adapter = pytest.importorskip("model_explorer.builtin_tflite_flatbuffer_adapter")
    converted = adapter.BuiltinTfliteFlatbufferAdapter().convert(str(INT8), {})["graphCollections"][0]
    nodes_there = member(member(converted, "graphs")[0], "nodes")
    known = {member(node, "id") for node in nodes_there if not member(node, "label").startswith("Graph")}
    assert set(results) <= known
