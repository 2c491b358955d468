"""Every signature is compared, with the state that its steps leave; inputs and goldens name them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from support.sweeping import few
from tflq.comparison.goldens.golden import Golden, runnable
from tflq.comparison.goldens.stored import load_golden
from tflq.comparison.inputs.read import make_feeds
from tflq.comparison.results import Verdict
from tflq.engine.runtimes import RUNTIMES
from tflq.errors import GoldenError, InputError, OptionError, RuntimeFailed, UnknownNameError
from tflq.model.ir import Model, SignatureDef, input_names, signed, view

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")

DECODER = suites.ROOT / "golden" / "models" / "tiny_decoder_int8.tflite"
MODERN = suites.SHARED / "suites" / "modern"
needs_modern = pytest.mark.skipif(not MODERN.is_dir(), reason="TFLQ_SHARED names no folder with suites/modern")


@pytest.fixture(scope="module")
def decoder() -> Model:
    return tflq.load(DECODER)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden") / "decoder.npz"
    tflq.record(DECODER, all_tensors=True, output=path)
    return path


def one_step(name: str, model: Model) -> dict[str, np.ndarray]:
    """Return valid inputs of one signature, by name."""
    (part,) = signed(model, name)
    return dict(zip(input_names(part.model), make_feeds([part], "random").steps[0].sample, strict=True))


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
@pytest.mark.parametrize("runtime", few(["litert-ref", "litert-opt"], "litert-ref"))
def test_both_signatures_are_the_same(mode: str, runtime: str) -> None:
    report = tflq.verify(DECODER, runtime, mode=mode)
    assert report.verdict == Verdict.SAME
    assert report.signatures == ("prefill_8", "decode")
    assert {o.signature for o in report.operators} == {"prefill_8", "decode"}
    assert report.coverage.operators == (155, 155)
    assert report.inputs.samples == 3


def test_one_signature_alone_names_the_other() -> None:
    report = tflq.verify(DECODER, signature="decode")
    assert (report.signatures, report.others) == (("decode",), ("prefill_8",))
    assert report.coverage.operators[1] == 95


def test_a_fault_in_the_second_signature_is_found(golden: Path) -> None:
    recorded = load_golden(golden)
    last = recorded.observations[-1]
    index = list(last.tensors)[40]
    value = np.array(last.tensors[index])
    value.reshape(-1)[0] += 1
    wrong = replace(last, tensors={**last.tensors, index: value})
    report = tflq.verify(DECODER, replace(recorded, observations=(*recorded.observations[:-1], wrong)))
    assert report.verdict == Verdict.DIFFERS
    first = report.first_divergent
    assert first is not None
    assert first.signature == "decode"
    assert report.of("prefill_8").verdict == Verdict.SAME
    assert report.of("decode").verdict == Verdict.DIFFERS


@pytest.mark.parametrize("name", ["copy.npz", "copy.zip", "copy/"])
def test_goldens_hold_all_signatures(golden: Path, tmp_path: Path, name: str) -> None:
    from tflq.comparison.goldens.stored import merge_goldens

    merge_goldens([golden], f"{tmp_path}/{name}")
    copied = load_golden(f"{tmp_path}/{name}")
    assert copied.steps == (("prefill_8", False), ("decode", True), ("decode", True))
    report = tflq.verify(DECODER, f"{tmp_path}/{name}")
    assert (report.verdict, report.signatures) == (Verdict.SAME, ("prefill_8", "decode"))


def test_entries_begin_with_the_signature(golden: Path) -> None:
    with np.load(golden) as archive:
        assert "prefill_8/s0_in0" in archive
        assert "decode/s1_out4" in archive
        facts = json.loads(archive["tflq_golden"].tobytes())
    assert facts["steps"][1] == {"signature": "decode", "continues": True}


def test_an_entry_of_another_signature_is_refused(golden: Path, tmp_path: Path) -> None:
    with np.load(golden) as archive:
        entries = {name.replace("decode/s1_in0", "prefill_8/s1_in0"): archive[name] for name in archive}
    np.savez(tmp_path / "wrong.npz", **entries)
    with pytest.raises(GoldenError, match="is not of the signature of sample 1"):
        load_golden(tmp_path / "wrong.npz")


def test_a_golden_of_an_unknown_signature_is_refused(golden: Path) -> None:
    recorded = load_golden(golden)
    odd = tuple(replace(one, signature="odd") for one in recorded.observations)
    with pytest.raises(GoldenError, match="signature 'odd', which the model lacks"):
        tflq.verify(DECODER, replace(recorded, observations=odd))


def test_an_older_golden_holds_the_first_subgraph_only(golden: Path) -> None:
    recorded = load_golden(golden)
    old = replace(recorded, observations=(replace(recorded.observations[0], signature=None),))
    report = tflq.verify(DECODER, old)
    assert report.verdict == Verdict.INCOMPLETE
    assert report.of("prefill_8").verdict == Verdict.SAME
    assert report.of("decode").verdict == Verdict.NOTHING


def test_inputs_by_signature(decoder: Model, tmp_path: Path) -> None:
    given = {name: one_step(name, decoder) for name in ("prefill_8", "decode")}
    report = tflq.verify(DECODER, inputs=given)
    assert (report.verdict, report.inputs.samples) == (Verdict.SAME, 2)
    entries = {f"{signature}/{name}": value for signature, some in given.items() for name, value in some.items()}
    np.savez(tmp_path / "in.npz", **{f"s{k}_{name}": value for k in range(2) for name, value in entries.items()})
    assert tflq.verify(DECODER, inputs=tmp_path / "in.npz").inputs.samples == 4
    assert tflq.verify(DECODER, inputs=given["decode"], signature="decode").verdict == Verdict.SAME


def test_inputs_of_one_signature_leave_the_other_uncompared(decoder: Model) -> None:
    report = tflq.verify(DECODER, inputs={"decode": one_step("decode", decoder)})
    assert report.verdict == Verdict.INCOMPLETE
    assert any("prefill_8/0" in text and "no samples" in text for text in report.coverage.missing)


def test_inputs_without_a_signature_are_refused(decoder: Model, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"name the one that inputs are for, as in decode/tokens"):
        tflq.verify(DECODER, inputs=one_step("decode", decoder))
    np.savez(tmp_path / "in.npz", tokens=np.zeros((1, 1), np.int32))
    with pytest.raises(InputError, match="several signatures"):
        tflq.verify(DECODER, inputs=tmp_path / "in.npz")
    with pytest.raises(UnknownNameError, match="signature"):
        tflq.verify(DECODER, inputs={"odd": {}})
    with pytest.raises(UnknownNameError, match="file or input generator"):
        tflq.verify(DECODER, inputs="nowhere.npz")


def test_an_input_under_both_of_its_names_is_refused(decoder: Model) -> None:
    given = one_step("decode", decoder)
    twice = {**given, "decode_tokens": given["tokens"]}
    with pytest.raises(InputError, match="given twice"):
        tflq.verify(DECODER, inputs=twice, signature="decode")
    by_tensor = {("decode_" + name): value for name, value in given.items()}
    assert tflq.verify(DECODER, inputs=by_tensor, signature="decode").verdict == Verdict.SAME


def test_unknown_signatures_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="prefill_8, decode"):
        tflq.verify(DECODER, signature="decod")
    with pytest.raises(UnknownNameError, match="prefill_8, decode"):
        tflq.record(DECODER, signature="")


def test_two_signatures_of_one_subgraph_are_both_compared(decoder: Model) -> None:
    one = (decoder.signature_defs or ())[1]
    twice = replace(decoder, signature_defs=(one, replace(one, signature_key="again")))
    report = tflq.verify(twice)
    assert report.signatures == ("subgraph 0", "decode", "again")
    assert report.verdict == Verdict.SAME


def test_an_empty_key_says_what_the_runtime_says(decoder: Model) -> None:
    one, two = decoder.signature_defs or ()
    with pytest.raises(RuntimeFailed, match="None signature_key provided"):
        tflq.verify(replace(decoder, signature_defs=(one, replace(two, signature_key=""))))


def test_a_signature_out_of_range_is_refused(decoder: Model) -> None:
    (one, _) = decoder.signature_defs or ()
    with pytest.raises(tflq.errors.ModelError, match="subgraph index"):
        tflq.verify(replace(decoder, signature_defs=(replace(one, subgraph_index=5),)))


def test_generated_inputs_are_in_range(decoder: Model) -> None:
    feeds = make_feeds(signed(decoder), "random", samples=20)
    assert len(feeds.sequences()) == 20
    for prefill, *decodes in feeds.sequences():
        assert prefill.sample[0].max() < 128
        assert prefill.sample[0].min() >= 0
        assert prefill.sample[1].tolist() == list(range(8))
        assert [fed.sample[1].tolist() for fed in decodes] == [[8], [9]]
        assert all(fed.continues and len(fed.carried) == 4 for fed in decodes)


def test_a_runtime_of_the_first_subgraph_runs_that_one(decoder: Model) -> None:
    parts = signed(decoder)
    (first,) = runnable(parts, RUNTIMES["tflm"])
    assert (first.name, first.signature) == ("prefill_8", None)
    assert runnable(parts, RUNTIMES["litert-ref"]) == parts
    with pytest.raises(OptionError, match="tflm runs the first subgraph of a model only, not decode"):
        runnable(parts[1:], RUNTIMES["tflm"])


def test_variables_live_from_step_to_step() -> None:
    """A wrong value of a variable before a step is a difference of the operators that read it."""
    model = tflq.load(MODERN / "kws_state" / "model.tflite") if MODERN.is_dir() else None
    if model is None:
        pytest.skip("TFLQ_SHARED names no folder with suites/modern")
    report = tflq.verify(model)
    assert report.verdict == Verdict.SAME
    assert report.coverage.operators == (34, 34)
    recorded = tflq.record(model, all_tensors=True)
    alone = replace(recorded, observations=tuple(replace(o, continues=False) for o in recorded.observations))
    assert tflq.verify(model, alone).verdict == Verdict.DIFFERS
    assert tflq.verify(model, recorded, mode="cumulative").verdict == Verdict.SAME


@needs_modern
def test_a_model_that_fails_in_the_runtime_itself_says_so() -> None:
    with pytest.raises(RuntimeFailed, match=r"the runtime itself cannot run the unchanged model.*read_variable\.cc"):
        tflq.verify(MODERN / "kgru_while" / "model.tflite")


@needs_modern
@pytest.mark.parametrize("name", ["gemma_dyn8", "gemma_float"])
def test_decoders_of_exporters_are_the_same_with_default_inputs(name: str) -> None:
    report = tflq.verify(MODERN / name / "model.tflite", "litert-ref")
    assert (report.verdict, report.signatures) == (Verdict.SAME, ("prefill_16", "decode"))


def test_no_signatures_at_all(decoder: Model) -> None:
    plain = replace(decoder, signature_defs=None, subgraphs=decoder.subgraphs[:1])
    report = tflq.verify(plain)
    assert (report.verdict, report.signatures) == (Verdict.SAME, ())


def test_a_signature_of_other_tensors_is_refused_or_run(decoder: Model) -> None:
    graph = view(decoder)
    odd = SignatureDef("odd", (("x", graph.inputs[0]),), (("y", graph.outputs[0]),), 0)
    assert isinstance(tflq.record(replace(decoder, signature_defs=(odd,))), Golden)


def test_steps_stay_together(golden: Path, tmp_path: Path) -> None:
    from tflq.comparison.goldens.stored import merge_goldens, prune_golden

    assert merge_goldens([golden, golden], tmp_path / "twice.npz") == 3
    with pytest.raises(GoldenError, match="sample 1 continues sample 0"):
        prune_golden(golden, tmp_path / "part.npz", samples=slice(1, 3))
    assert prune_golden(golden, tmp_path / "part.npz", samples=slice(0, 2)) == 2
    other = tmp_path / "other.npz"
    recorded = load_golden(golden)
    replace(recorded, observations=(recorded.observations[0], recorded.observations[2])).save(other)
    assert merge_goldens([golden, other], tmp_path / "both.npz") == 5
    assert [continues for _, continues in load_golden(tmp_path / "both.npz").steps] == [False, True, True, False, True]


def test_recordings_of_signatures_are_compared(golden: Path, tmp_path: Path) -> None:
    from tflq.verbs.drift import diff_goldens

    assert diff_goldens(DECODER, golden, golden).verdict == Verdict.SAME
    tflq.record(DECODER, "litert-opt", all_tensors=True, output=tmp_path / "opt.npz")
    found = diff_goldens(DECODER, golden, tmp_path / "opt.npz")
    assert found.verdict == Verdict.EXPLAINED
    assert found.own == ("litert-ref", "litert-opt")
    assert {o.signature for o in found.changed} == {"prefill_8", "decode"}
    load_golden(golden).chosen([0]).save(tmp_path / "one.npz")
    with pytest.raises(GoldenError, match="expected 3 samples"):
        diff_goldens(DECODER, golden, tmp_path / "one.npz")
