"""Dumps of models with several signatures: each that a dump is of is explained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from tflq.comparison.evidence.dumps import Dump, dumps_of_recording
from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.goldens.stored import load_golden
from tflq.comparison.results import InputFacts, Verdict
from tflq.diagnosis.localization import dumps_by_signature, only_dumps
from tflq.errors import InputError, UnknownNameError
from tflq.model.ir import signed, view

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")

DECODER = suites.ROOT / "golden" / "models" / "tiny_decoder_int8.tflite"
MODERN = suites.SHARED / "suites" / "modern"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "decoder.npz"
    tflq.record(DECODER, all_tensors=True, output=path)
    return path


@pytest.fixture(scope="module")
def wrong(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording with a fault in one operator of decode."""
    golden = load_golden(recording)
    *others, last = golden.observations
    tensor = view(signed(tflq.load(DECODER), "decode")[0].model).op(41).outputs[0]
    value = np.array(last.tensors[tensor])
    value.reshape(-1)[3] += np.float32(1)
    path = tmp_path_factory.mktemp("dump") / "wrong.npz"
    replace(golden, observations=(*others, replace(last, tensors={**last.tensors, tensor: value}))).save(path)
    return path


def test_every_signature_of_a_recording_is_explained(recording: Path, wrong: Path) -> None:
    same = tflq.explain(DECODER, recording)
    assert [(one.signature, one.verdict) for one in same.every] == [
        ("prefill_8", Verdict.SAME),
        ("decode", Verdict.SAME),
    ]
    found = tflq.explain(DECODER, wrong)
    assert (found.signature, found.verdict) == ("decode", Verdict.DIFFERS)
    assert found.first is not None
    assert found.first.index == 41
    assert [one.verdict for one in found.every] == [Verdict.SAME, Verdict.DIFFERS]


def test_one_signature_of_a_recording(wrong: Path) -> None:
    assert tflq.explain(DECODER, wrong, signature="prefill_8").verdict == Verdict.SAME
    assert tflq.explain(DECODER, wrong, signature="decode").signatures == ()
    with pytest.raises(UnknownNameError, match="prefill_8, decode"):
        tflq.explain(DECODER, wrong, signature="x")


@pytest.mark.slow
def test_fit_needs_one_signature(recording: Path) -> None:
    with pytest.raises(InputError, match="of several signatures: choose one with --signature"):
        tflq.fit(DECODER, recording)
    assert "litert-ref" in tflq.fit(DECODER, recording, signature="decode").fitting


def test_names_of_tensors_show_the_signature(recording: Path) -> None:
    model = tflq.load(DECODER)
    part = signed(model, "decode")[0]
    (*_, last) = load_golden(recording).observations
    graph = view(part.model)
    named = {graph.tensors[t].name or "": value for t, value in last.tensors.items() if value is not None}
    named |= {graph.tensors[t].name or "": v for t, v in zip(graph.inputs, last.inputs, strict=True)}
    found = tflq.explain(DECODER, named)
    assert (found.signature, found.verdict) == ("decode", Verdict.SAME)
    assert [one.name for one, _ in dumps_by_signature(model, named)] == ["decode"]


def test_indices_alone_show_no_signature(recording: Path) -> None:
    (*_, last) = load_golden(recording).observations
    numbered = {index: value for index, value in last.tensors.items() if value is not None}
    with pytest.raises(InputError, match="choose one with --signature"):
        tflq.explain(DECODER, numbered)
    with pytest.raises(InputError, match="choose one with --signature"):
        only_dumps(tflq.load(DECODER), Dump("", numbered))
    assert tflq.explain(DECODER, numbered, signature="decode").operators


def test_a_recording_without_samples_of_a_signature_is_refused(recording: Path, tmp_path: Path) -> None:
    golden = load_golden(recording)
    golden.chosen([0]).save(tmp_path / "one.npz")
    with pytest.raises(InputError, match="holds no sample"):
        tflq.explain(DECODER, tmp_path / "one.npz", signature="decode")
    with pytest.raises(InputError, match="sample 7"):
        tflq.explain(DECODER, recording, sample=7)


def test_tensors_of_another_model_are_refused() -> None:
    model = tflq.load(suites.ROOT / "golden" / "models" / "digits_lstm_int8.tflite")
    graph = view(model)
    inputs = tuple(np.zeros(graph.tensors[t].shape, np.int8) for t in graph.inputs)
    beyond = Observation(inputs, (), {len(graph.tensors): np.zeros(1, np.int8)})
    golden = Golden((beyond,), True, InputFacts("", None, 1), {})
    with pytest.raises(InputError, match="holds a tensor that the model lacks"):
        dumps_of_recording(model, golden, "other.npz")


@pytest.mark.skipif(not MODERN.is_dir(), reason="TFLQ_SHARED names no folder with suites/modern")
def test_shapes_that_are_known_at_run_time_only(tmp_path: Path) -> None:
    model = MODERN / "ssd_pp" / "model.tflite"
    tflq.record(model, all_tensors=True, output=tmp_path / "own.npz")
    assert tflq.explain(model, tmp_path / "own.npz").verdict in (Verdict.SAME, Verdict.CLOSE)
