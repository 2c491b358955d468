"""Sentences with their values: they stay text for people, and rows for programs, in other processes, too."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np

from support import suites
from support.commands import tflq
from tflq.texts import Statement, facts_of

MODEL = suites.ROOT / "golden/models/digits_mobilenet_int8.tflite"


def test_a_statement_is_its_text_and_keeps_its_values() -> None:
    stated = Statement("3 output(s) are NaN", "nan-outputs", elements=3)
    for same in (stated, pickle.loads(pickle.dumps(stated)), copy.deepcopy(stated)):
        assert same == "3 output(s) are NaN"
        assert (same.kind, same.facts) == ("nan-outputs", {"elements": 3})
    assert facts_of([stated.of("decode"), "plain"]) == [
        {"kind": "nan-outputs", "message": "decode: 3 output(s) are NaN", "values": {"elements": 3, "place": "decode"}},
        {"kind": "note", "message": "plain", "values": {}},
    ]
    assert stated.of("") is stated


def test_a_printed_warning_is_a_row_of_the_document(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 256, (2, 8, 8, 1)).astype(np.float32))
    done = tflq("run", MODEL, "--inputs", tmp_path / "x.npy", "--mean", "0", "--std", "25500", "--json")
    (row,) = json.loads(done.stdout)["facts"]  # one for the input, not one for each sample
    assert row["message"] in done.stderr
    assert row["kind"] == "few-codes"
    assert row["values"]["codes"] == 256
    assert row["values"]["used"] < 10 < row["values"]["values"]
    assert f"--std {row['values']['std']:.6g}" in row["message"]


def test_every_note_of_a_verification_is_a_row(tmp_path: Path) -> None:
    with np.load(suites.ROOT / "golden/recorded/digits_autoencoder_int8.npz") as recorded:
        arrays = dict(recorded)
    outputs = [name for name in arrays if "_out" in name]
    for name in outputs:
        arrays[name] = np.zeros_like(arrays[name])
    np.savez(tmp_path / "constant.npz", **arrays)
    model = suites.ROOT / "golden/models/digits_autoencoder_int8.tflite"
    document = json.loads(tflq("verify", model, "--golden", tmp_path / "constant.npz", "--json").stdout)
    assert [row["message"] for row in document["facts"]] == document["notes"]
    kinds = {row["kind"]: row["values"] for row in document["facts"]}
    assert kinds["constant-outputs"] == {"outputs": len(outputs)}
