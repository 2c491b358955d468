"""`tflq view`: which page it makes, what it writes, what the server answers, and node data for Model Explorer."""

from __future__ import annotations

import hashlib
import http.client
import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from click.testing import CliRunner

from support import suites
from tflq.comparison.verification.golden import Golden, Observation
from tflq.comparison.verification.results import InputFacts
from tflq.face.cli.main import cli
from tflq.face.report.graph.colouring import LEVELS, scale, states
from tflq.face.report.verbs.view.overlay import COLOURS, overlay
from tflq.face.report.verbs.view.server import Watched, serve

GOLDEN = suites.ROOT / "golden"
CONV = GOLDEN / "singleop" / "models" / "tie_conv_i8_0.tflite"
RECORDED = GOLDEN / "singleop" / "recorded" / "tie_conv_i8_0.npz"
FLOAT, INT8 = (GOLDEN / "models" / f"digits_autoencoder_{kind}.tflite" for kind in ("float", "int8"))


def view(*words: object) -> int:
    return CliRunner().invoke(cli, ["view", *map(str, words)]).exit_code


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
    assert view(*words, "--once", "--html", "page.html", "--overlay", "nodes.json") == 0
    assert f'<p class="verb">tflq {verb}</p>' in Path("page.html").read_text(encoding="utf-8")
    nodes = json.loads(Path("nodes.json").read_text(encoding="utf-8"))
    assert set(nodes["results"]) <= {str(i) for i in range(20)}
    assert nodes["results"]
    assert nodes["name"].startswith("tflq: ")


def test_once_has_to_write_something() -> None:
    assert view(CONV, "--once") == 2


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
    assert view(INT8, "--once", "--overlay", tmp_path / "nodes.json") == 0
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


def answer(address: str, path: str = "", host: str | None = None) -> tuple[int, bytes]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30)
    connection.request("GET", path or parts.path, headers={"Host": host or f"127.0.0.1:{parts.port}"})
    response = connection.getresponse()
    return response.status, response.read()


def test_the_server_answers_only_those_who_were_told() -> None:
    watched = Watched(lambda: "<body>page default-src 'none';", [], lambda line: None)
    with serve(watched) as address:
        status, body = answer(address)
        assert (status, b'data-events="events?0"' in body, b"connect-src 'self'" in body) == (200, True, True)
        assert answer(address, "/")[0] == 404
        assert answer(address, urlsplit(address).path + "other")[0] == 404
        assert answer(address, host="evil.example:80")[0] == 404


def test_a_change_makes_the_page_again_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text("1")
    told: list[str] = []
    watched = Watched(lambda: f"<body>{int(path.read_text())}", [str(path)], told.append)
    assert not watched.refresh()
    with serve(watched) as address:
        waiting = threading.Thread(
            target=lambda: told.append(answer(address, urlsplit(address).path + "events")[1].decode())
        )
        waiting.start()
        path.write_text("half")
        assert not watched.refresh()
        path.write_text("22222")
        while waiting.is_alive():
            watched.refresh()
            waiting.join(0.2)
            path.write_text(str(int(path.read_text()) * 10))
    assert watched.page.startswith("<body>2222")
    assert told[0].startswith("not rebuilt")
    assert any("event: changed" in line for line in told)


def test_a_change_while_the_first_page_is_built_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "model"
    path.parent.mkdir()
    path.write_text("1")

    def make() -> str:
        text = path.read_text()
        if text == "1":
            path.write_text("22")  # after it was read
        return f"<body>{text}"

    watched = Watched(make, [str(tmp_path)], lambda line: None)
    assert watched.page == "<body>1"
    assert watched.refresh()
    assert watched.page == "<body>22"


def test_a_page_asks_for_what_is_later_than_itself(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text("1")
    watched = Watched(path.read_text, [str(path)], lambda line: None)
    with serve(watched) as address:
        path.write_text("22")
        assert watched.refresh()  # between the load of the page and its question
        assert b"event: changed" in answer(address, urlsplit(address).path + "events?0")[1]
