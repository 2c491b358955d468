"""`tflq.why` takes arrays, as `tflq.explain` does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from support.convolved import REF, network, result, runs
from support.sweeping import few
from tflq.comparison.evidence.dumps import load_dump
from tflq.comparison.goldens.golden import Golden, InputFacts, Observation
from tflq.comparison.goldens.stored import save_bundle
from tflq.diagnosis.mistakes.stages import MISTAKES
from tflq.diagnosis.why import Party
from tflq.engine.api.many import part_of
from tflq.errors import InputError
from tflq.model.ir import view
from tflq.verbs.why import _foreign_origin

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
SINGLE = suites.ROOT / "golden" / "singleop"
DENSE, RECORDED = SINGLE / "models" / "tie_fc_i8_0.tflite", SINGLE / "recorded" / "tie_fc_i8_0.npz"


def test_arrays_are_evidence_as_the_file_that_holds_them() -> None:
    arrays = load_dump(tflq.load(DENSE), RECORDED).tensors
    found, known = tflq.why(DENSE, arrays), tflq.why(DENSE, RECORDED)
    assert (found.fault, found.nearest, found.evidence) == (known.fault, known.nearest, "arrays")
    assert str(found).splitlines()[0] == str(known).splitlines()[0]


@pytest.mark.parametrize("arrays", [{}, {"nobody": np.zeros(3)}, {10**9: np.zeros(3)}])
def test_arrays_of_no_tensor_are_refused(arrays: dict[int | str, np.ndarray]) -> None:
    with pytest.raises(InputError):
        tflq.why(MODEL, arrays)


@pytest.mark.slow
def test_outputs_of_the_sample_before_may_be_the_devices() -> None:
    """The first sample holds what was there before, not the last one's: nobody saved that in a wrong order."""
    every, output = runs(network(), 6, 11), view(network()).outputs[0]
    arrays = {f"s{k}_t0": values[0] for k, values in enumerate(every)}
    arrays |= {f"s{k}_t{output}": every[k - 1][output] if k else every[0][output] * 0 for k in range(len(every))}
    found = tflq.why(MODEL, arrays)
    assert found.fault == Party.OPEN
    assert "or the device kept them (stale)" in str(found).splitlines()[0]


@pytest.mark.parametrize("low", few([-120, -100], -120))
def test_a_clamp_at_another_code_is_named(low: int) -> None:
    every = runs(network(), 3)
    tensor, read = result(network()), view(network()).op(1).inputs[0]
    arrays = {}
    for k, values in enumerate(every):
        arrays |= {f"s{k}_t{read}": values[read], f"s{k}_t{tensor}": np.maximum(values[tensor], low)}
    found = tflq.why(MODEL, arrays)
    assert f"clamp at another code: no result below {low}" in str(found).splitlines()[0]


@pytest.mark.slow
def test_roundings_that_are_one_function_here_are_both_named() -> None:
    """Behind a clamp at zero, no result is negative: towards zero is towards minus infinity."""
    stage = MISTAKES["rounds twice: the product half up, the shift towards zero"]
    wrong = REF.derive("device", arithmetic=REF.arithmetic.each_stage(stage))
    tensor, read = result(network()), view(network()).op(1).inputs[0]
    arrays = {}
    for k, values in enumerate(runs(network(), 3)):
        part = part_of(network(), (1,), {read: values[read]})
        arrays |= {f"s{k}_t{read}": values[read], f"s{k}_t{tensor}": part.run(part.plan(wrong))[tensor]}
    first = str(tflq.why(MODEL, arrays)).splitlines()[0]
    assert "towards minus infinity" in first
    assert "towards zero" in first


@pytest.mark.slow
def test_a_constant_that_is_explained_is_not_noted() -> None:
    every, output = runs(network(), 4), view(network()).outputs[0]
    arrays = {f"s{k}_t0": values[0] for k, values in enumerate(every)}
    arrays |= {f"s{k}_t{output}": np.full_like(values[output], 5) for k, values in enumerate(every)}
    text = str(tflq.why(MODEL, arrays))
    assert "is the constant 5" in text.splitlines()[0]
    assert "never written, perhaps" not in text


def test_a_constant_output_that_follows_from_its_inputs_is_not_noted() -> None:
    """NaN early on makes the output NaN: it was written, by a right operator."""
    floats = suites.ROOT / "golden" / "models" / "digits_mobilenet_float.tflite"
    model = tflq.load(floats)
    graph = view(model)
    values = {0: np.full(graph.tensors[0].shape, 0.5, np.float32)}
    for op in graph.ops:
        part = part_of(model, (op.index,), values)
        made = part.run(part.plan(REF))
        values |= {t: np.full_like(made[t], np.nan) if op.index == 4 else np.array(made[t]) for t in op.writes}
    text = str(tflq.why(floats, values))
    assert "NaN" in text.splitlines()[0]
    assert "never written, perhaps" not in text


OPENVINO = ("openvino", Party.RUNTIME)


@pytest.mark.parametrize(("name", "fault"), few([OPENVINO, ("npu", Party.OPEN)], OPENVINO))
def test_a_recording_that_names_a_foreign_system_is_of_that(tmp_path: Path, name: str, fault: Party) -> None:
    """One LSB in one output is too little evidence for any cause; the recording's own word is enough for the party."""
    (values,), output = runs(network(), 1), view(network()).outputs[0]
    facts = {"format": "tflq-golden/1", "samples": 1, "tensors": False, "runtime": {"name": name, "version": "1.2"}}
    off = np.where(values[output] == values[output].max(), values[output] - 1, values[output])
    path = tmp_path / "recording.npz"
    provenance = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    np.savez(path, tflq_golden=provenance, s0_in0=values[0], s0_out0=off.astype(np.int8))
    found = tflq.why(MODEL, path)
    assert found.fault == fault
    assert ("the arithmetic of openvino 1.2" in str(found).splitlines()[0]) == (name == "openvino")


def test_a_recording_names_its_system_in_either_form(tmp_path: Path) -> None:
    """A .zip bundle, too, holds who recorded it."""
    (values,), output = runs(network(), 1), view(network()).outputs[0]
    observation = Observation((values[0],), (values[output],), {})
    facts = {"name": "openvino", "version": "1.2"}
    golden = Golden((observation,), False, InputFacts("arrays", None, 1), facts)
    golden.save(tmp_path / "recording.npz")
    save_bundle(tmp_path / "recording.zip", [golden])
    origins = [_foreign_origin(str(tmp_path / f"recording.{form}")) for form in ("npz", "zip")]
    assert origins == ["openvino 1.2"] * 2


def test_arrays_may_have_any_name() -> None:
    entries = load_dump(tflq.load(DENSE), RECORDED).tensors
    assert tflq.why(DENSE, {**entries, "file": np.zeros(3)}).fault != Party.USER
    with pytest.raises(InputError, match="Python objects"):
        tflq.why(DENSE, {**entries, "file": np.array([None, "x"])})
