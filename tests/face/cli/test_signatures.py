"""Verbs on models with several signatures: all of them by default, one by its name."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.commands import document, tflq

DECODER = suites.ROOT / "golden" / "models" / "tiny_decoder_int8.tflite"
KWS = suites.SHARED / "suites" / "modern" / "kws_state" / "model.tflite"
needs_litert = pytest.mark.skipif(
    importlib.util.find_spec("ai_edge_litert") is None, reason="ai-edge-litert is not installed"
)


@pytest.mark.parametrize(
    "words",
    [
        ("verify", DECODER),
        ("record", DECODER, "-o", "x.npz"),
        ("run", DECODER),
        ("inspect", DECODER),
        ("lint", DECODER),
        ("prove", DECODER, "--between", "litert-ref", "tflm"),
        ("profiles", "effects", DECODER, "--profile", "litert-ref", "--profile", "tflm"),
        ("compare", DECODER, DECODER, "--inputs", DECODER),
        ("view", DECODER, "--html", "x.html"),
        ("diff", DECODER, DECODER),
        ("explain", DECODER, "--op", "0", "--element", "0"),
    ],
    ids=lambda words: words[0],
)
def test_an_unknown_signature_is_misuse(words: tuple[object, ...], tmp_path: Path, monkeypatch: object) -> None:
    monkeypatch.chdir(tmp_path)  # type: ignore[attr-defined]
    result = tflq(*words, "--signature", "decod")
    assert result.exit_code == 2
    assert "no signature 'decod'; did you mean decode?" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@needs_litert
def test_verify_names_the_signatures() -> None:
    result = tflq("verify", DECODER)
    assert (result.exit_code, "prefill_8, decode; 0 of" in result.stdout) == (0, True)
    found = document(tflq("verify", DECODER, "--json"), "verify")
    assert {name: one["verdict"] for name, one in found["signatures"].items()} == {
        "prefill_8": "same",
        "decode": "same",
    }
    assert found["operators"][-1]["signature"] == "decode"
    one = document(tflq("verify", DECODER, "--json", "--signature", "decode"), "verify")
    assert list(one["signatures"]) == ["decode"]


@needs_litert
def test_record_and_verify_a_bundle(tmp_path: Path) -> None:
    assert tflq("record", DECODER, "-o", f"{tmp_path}/g/", "--all-tensors").exit_code == 0
    rows = [json.loads(row) for row in (tmp_path / "g" / "samples.jsonl").read_text().splitlines()]
    assert [(row["signature"], row.get("continues", False)) for row in rows] == [
        ("prefill_8", False),
        ("decode", True),
        ("decode", True),
    ]
    assert tflq("verify", DECODER, "--golden", f"{tmp_path}/g").exit_code == 0
    assert tflq("golden", "show", f"{tmp_path}/g").exit_code == 0


def test_run_names_outputs_by_signature(tmp_path: Path) -> None:
    result = tflq("run", DECODER, "-o", tmp_path / "out.npz", "--json")
    found = document(result, "run")
    assert found["arrays"][-1]["name"] == "s2_decode/logits"
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["s1_decode/logits"].shape == (1, 1, 128)
    np.save(tmp_path / "tokens.npy", np.zeros((1, 1), np.int32))
    refused = tflq("run", DECODER, "--inputs", f"tokens={tmp_path}/tokens.npy")
    assert (refused.exit_code, "name the signature" in refused.stderr) == (2, True)
    lacking = tflq("run", DECODER, "--inputs", f"decode/tokens={tmp_path}/tokens.npy")
    assert (lacking.exit_code, "input_pos" in lacking.stderr) == (2, True)
    assert tflq("run", DECODER, "--signature", "decode", "--html", tmp_path / "x.html").exit_code == 0


def test_inspect_shows_every_signature(tmp_path: Path) -> None:
    result = tflq("inspect", DECODER)
    assert "prefill_8 (subgraph 0)" in result.stdout
    assert "decode (subgraph 1)" in result.stdout
    found = document(tflq("inspect", DECODER, "--json"), "inspect")
    assert [one["name"] for one in found["signatures"]] == ["prefill_8", "decode"]
    decode = document(tflq("inspect", DECODER, "--signature", "decode", "--json"), "inspect")
    assert decode["subgraph"] == 1
    assert decode["operators"] == found["signatures"][1]["operators"]
    assert tflq("inspect", DECODER, "--signature", "decode", "--op", 94).exit_code == 0
    assert tflq("inspect", DECODER, "--op", 94).exit_code == 2
    assert tflq("inspect", DECODER, "--html", tmp_path / "x.html").exit_code == 0


@pytest.mark.skipif(not KWS.is_file(), reason="TFLQ_SHARED names no folder with suites/modern")
def test_inspect_shows_subgraphs_that_operators_run() -> None:
    found = document(tflq("inspect", KWS, "--json"), "inspect")
    inner = [(one["subgraph"], one["callers"]) for each in found["signatures"] for one in each["inner"]]
    assert inner == [(2, ["0 CALL_ONCE"]), (2, ["0 CALL_ONCE"])]
    assert "0 CALL_ONCE" in tflq("inspect", KWS).stdout


def test_lint_prove_and_profiles_see_every_subgraph() -> None:
    target = document(tflq("lint", DECODER, "--target", "tflm", "--json"), "lint")
    assert {finding["subgraph"] for finding in target["findings"]} == {0, 1}
    one = document(tflq("lint", DECODER, "--target", "tflm", "--json", "--signature", "decode"), "lint")
    assert {finding["subgraph"] for finding in one["findings"]} == {1}
    proof = document(
        tflq("prove", DECODER, "--between", "litert-1.4-ref", "litert-ref", "--signature", "decode", "--json"), "prove"
    )
    assert {operator["subgraph"] for operator in proof["operators"]} == {1}
    effects = document(
        tflq("profiles", "effects", DECODER, "--profile", "litert-ref", "--profile", "litert-opt", "--json"), "profiles"
    )
    assert {operator["subgraph"] for operator in effects["operators"]} == {0, 1}
    releases = document(tflq("profiles", "releases", DECODER, "--since", "2.14", "--json"), "profiles")
    assert releases["places"][-1] == "1:94"
    assert tflq("profiles", "--signature", "decode").exit_code == 2


def test_compare_needs_a_signature(tmp_path: Path) -> None:
    other = DECODER.with_name("tiny_decoder_float.tflite")
    caches = {
        f"decode_kv_cache_{kind}_{layer}": np.zeros((1, 32, 2, 16), np.float32) for kind in "kv" for layer in (0, 1)
    }
    data = tmp_path / "data.npz"
    np.savez(data, decode_tokens=np.full((1, 1), 5, np.int32), decode_input_pos=np.zeros(1, np.int32), **caches)
    refused = tflq("compare", other, DECODER, "--inputs", data)
    assert (refused.exit_code, "choose one with --signature" in refused.stderr) == (2, True)
    assert tflq("compare", other, DECODER, "--inputs", data, "--signature", "decode").exit_code == 0


def test_view_draws_one_signature(tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    assert tflq("view", DECODER, "--html", page, "--signature", "decode").exit_code == 0
    assert "decode/reshape_94" in page.read_text()


def test_diff_compares_signatures_by_name(tmp_path: Path) -> None:
    other = DECODER.with_name("tiny_decoder_float.tflite")
    found = document(tflq("diff", DECODER, other, "--json"), "diff")
    assert {change["signature"] for change in found["changes"]} == {"prefill_8", "decode"}
    one = document(tflq("diff", DECODER, other, "--json", "--signature", "decode"), "diff")
    assert {change["signature"] for change in one["changes"]} == {"decode"}
    assert tflq("diff", DECODER, DECODER).exit_code == 0
    single = DECODER.with_name("digits_lstm_int8.tflite")
    gone = document(tflq("diff", DECODER, single, "--json"), "diff")
    lacking = [(c["signature"], c["before"], c["after"]) for c in gone["changes"] if c["what"] == "signature"]
    assert ("decode", "present", "none") in lacking
    assert tflq("diff", DECODER, other, "--html", tmp_path / "x.html").exit_code == 1


def test_explain_works_out_an_element_of_one_signature() -> None:
    refused = tflq("explain", DECODER, "--op", 3, "--element", "0,0")
    assert (refused.exit_code, "choose one with --signature" in refused.stderr) == (2, True)
    assert tflq("explain", DECODER, "--op", 3, "--element", "0,0", "--signature", "decode").exit_code == 0
