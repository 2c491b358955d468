"""Verification against the live runtime, and against recordings of it with known faults planted in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.each import each
from tflq import load_golden, record, verify
from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.results import InputFacts, Status, Verdict
from tflq.engine.runtimes import Description, RuntimeOutputs, Sample, by_name
from tflq.errors import GoldenError, OptionError, ShapeError, TypeMismatchError, UnknownNameError, UnsupportedError
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Record, Subgraph, TensorSpec, TensorType, view

Change = Callable[[Any], Any]

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


@pytest.fixture(scope="module")
def golden() -> Golden:
    return record(MODEL, samples=2, all_tensors=True)


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
@pytest.mark.parametrize("inputs", ["random", "smooth", "extremes"])
def test_the_live_reference_runtime_agrees_on_every_operator(mode: str, inputs: str) -> None:
    steps: list[tuple[str, int, int]] = []
    report = verify(MODEL, inputs=inputs, mode=mode, samples=2, progress=lambda *a: steps.append(a))
    assert (report.verdict, report.differing) == (Verdict.SAME, 0)
    graph = view(tflq.load(MODEL))
    assert [o.index for o in report.operators] == list(range(len(graph.ops)))
    sizes = [int(np.prod(graph.tensors[t].shape)) for o in graph.ops for t in o.outputs]
    assert report.compared == 2 * sum(sizes)
    assert steps


def planted(golden: Golden, tensor: int, sample: int, place: tuple[int, ...], delta: int) -> Golden:
    """A copy of the recording in which one element of one tensor is another."""
    observation = golden.observations[sample]
    value = observation.tensors[tensor].copy()
    value[place] += delta
    tensors = MappingProxyType({**observation.tensors, tensor: value})
    observations = list(golden.observations)
    observations[sample] = replace(observation, tensors=tensors)
    return replace(golden, observations=tuple(observations))


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
def test_a_planted_fault_is_found_where_it_is(golden: Golden, mode: str) -> None:
    graph = view(tflq.load(MODEL))
    index = len(graph.ops) // 2
    tensor = graph.op(index).outputs[0]
    value = golden.observations[1].tensors[tensor]
    place = tuple(size // 2 for size in value.shape)
    delta = -3 if value[place] > 0 else 3
    report = verify(MODEL, planted(golden, tensor, 1, place, delta), mode=mode)
    first = report.first_divergent
    assert report.verdict == Verdict.DIFFERS
    assert (first.index, first.status, first.worst.index) == (index, Status.DIFFERS, tensor)
    found = first.worst.difference
    assert (found.differing, found.largest, found.bias) == (1, 3, -delta)
    assert (found.first.sample, found.first.index) == (1, place)
    assert found.first.expected - found.first.got == delta
    later = [o.index for o in report.operators if o.status == Status.DIFFERS]
    if mode == "cumulative":
        assert later == [index]  # what is computed does not hang on the planted value
    else:
        readers = [i for i, o in enumerate(graph.ops) if tensor in o.inputs]
        assert set(later) <= {index, *readers}


def test_the_stage_that_made_the_element_is_in_the_report(golden: Golden) -> None:
    model = tflq.load(MODEL)
    names = [o.builtin for o in view(model).ops]
    report = verify(MODEL, golden)
    constants = report.operators[names.index("CONV_2D")].constants
    tensors = view(model).tensors
    operator = view(model).op(names.index("CONV_2D"))
    x, w, y = (tensors[t].quantization for t in (operator.inputs[0], operator.inputs[1], operator.outputs[0]))
    wanted = np.float64(x.scale[0]) * np.float64(w.scale) / np.float64(y.scale[0])
    stage = constants.stages[0]
    np.testing.assert_array_equal(stage.real, wanted)
    np.testing.assert_allclose(np.ldexp(np.array(stage.mantissa) / 2.0**31, stage.shift), wanted, rtol=2**-30)
    assert (stage.zero_point, stage.high) == (int(y.zero_point[0]), 127)


def test_another_runtime_differs_and_is_named() -> None:
    assert verify(MODEL, "litert-xnnpack").verdict == Verdict.SAME  # the profile is the runtime's own
    report = verify(MODEL, "litert-xnnpack", samples=4, profile="litert-ref")
    assert (report.against.delegate, report.against.resolver) == ("XNNPACK", "BUILTIN")
    assert report.verdict == Verdict.EXPLAINED
    assert report.own.startswith("litert-xnnpack")
    assert max(o.worst.difference.largest for o in report.operators if o.worst) <= 2


def test_golden_files_need_no_runtime(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden.save(tmp_path / "a.npz")
    golden.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    monkeypatch.setattr("subprocess.run", None)
    for mode in ("isolated", "cumulative"):
        report = verify(MODEL, tmp_path / "a.npz", mode=mode)
        assert (report.verdict, report.golden) == (Verdict.SAME, str(tmp_path / "a.npz"))
    assert report.against["version"] == golden.runtime.version
    assert load_golden(tmp_path / "a.npz").model_sha256 == golden.model_sha256


def test_a_golden_of_outputs_serves_cumulative_mode_only(tmp_path: Path) -> None:
    record(MODEL, output=tmp_path / "g.npz", inputs="smooth")
    report = verify(MODEL, tmp_path / "g.npz")
    assert (report.mode.value, report.verdict, report.operators) == ("cumulative", Verdict.SAME, ())
    with pytest.raises(GoldenError, match="all tensors"):
        verify(MODEL, tmp_path / "g.npz", mode="isolated")


def test_a_golden_of_another_model_is_refused(golden: Golden, tmp_path: Path) -> None:
    golden.save(tmp_path / "g.npz")
    other = MODEL.with_name("digits_unet_int8.tflite")
    with pytest.raises(GoldenError, match="SHA-256"):
        verify(other, tmp_path / "g.npz")


def test_plain_archives_of_numbered_inputs_and_outputs_are_goldens(golden: Golden, tmp_path: Path) -> None:
    observation = golden.observations[0]
    np.savez(tmp_path / "plain.npz", s0_in0=observation.inputs[0], s0_out0=observation.outputs[0])
    assert verify(MODEL, tmp_path / "plain.npz").verdict == Verdict.SAME
    wrong = observation.outputs[0] ^ np.int8(1)
    np.savez(tmp_path / "wrong.npz", s0_in0=observation.inputs[0], s0_out0=wrong)
    report = verify(MODEL, tmp_path / "wrong.npz")
    assert (report.verdict, report.differing) == (Verdict.DIFFERS, wrong.size)


@pytest.mark.parametrize("broken", ["empty", "provenance", "format", "samples"])
def test_broken_goldens_are_golden_errors(tmp_path: Path, broken: str) -> None:
    entries = {"s0_in0": np.zeros(1, np.int8), "s0_out0": np.zeros(1, np.int8)}
    texts = {"provenance": b"{", "format": b'{"format": "x"}', "samples": b'{"format": "tflq-golden/1", "samples": 2}'}
    if broken == "empty":
        entries = {"other": np.zeros(1)}
    else:
        entries["tflq_golden"] = np.frombuffer(texts[broken], np.uint8)
    np.savez(tmp_path / "g.npz", **entries)
    with pytest.raises(GoldenError):
        load_golden(tmp_path / "g.npz")


MIDDLE = view(tflq.load(MODEL)).op(3).outputs[0]
AS_FLOATS: Change = lambda x: x.astype(np.float32)  # noqa: E731
CUT: Change = lambda x: x[..., :-1]  # noqa: E731
FLAT: Change = lambda x: x.reshape(-1)  # noqa: E731
LONGER: Change = lambda x: np.concatenate([x, x])  # noqa: E731


def changed(golden: Golden, **parts: Any) -> Golden:
    """The recording with another form of its first sample."""
    first = replace(golden.observations[0], **parts)
    return replace(golden, observations=(first, *golden.observations[1:]))


@each("mode", ["isolated", "cumulative"])
@each("part", ["input", "output", "tensor"])
@each("change", [AS_FLOATS, CUT, FLAT, LONGER], ids=["floats", "cut", "flat", "longer"])
def test_arrays_that_do_not_fit_are_no_differences(golden: Golden, mode: str, part: str, change: Change) -> None:
    seen = golden.observations[0]
    wrong = {
        "input": changed(golden, inputs=tuple(map(change, seen.inputs))),
        "output": changed(golden, outputs=tuple(map(change, seen.outputs))),
        "tensor": changed(golden, tensors={**seen.tensors, MIDDLE: change(seen.tensors[MIDDLE])}),
    }
    with pytest.raises((TypeMismatchError, ShapeError)):
        verify(MODEL, wrong[part], mode=mode)


def test_goldens_of_other_numbers_of_tensors_are_refused(golden: Golden) -> None:
    seen = golden.observations[0]
    for parts, words in (
        ({"inputs": ()}, "expected 1 inputs, got 0"),
        ({"outputs": seen.outputs * 2}, "expected 1 outputs, got 2"),
        ({"tensors": {**seen.tensors, 10**9: seen.inputs[0]}}, "tensor 1000000000 is none"),
    ):
        with pytest.raises(GoldenError, match=words):
            verify(MODEL, changed(golden, **parts))


def test_goldens_of_another_byte_order_or_layout_are_the_same() -> None:
    """Arrays are taken for what they say, however they lie in memory."""
    tensors = (TensorSpec("x", TensorType.FLOAT32, (2, 3)), TensorSpec("y", TensorType.FLOAT32, (2, 3)))
    model = Model(
        3, (OperatorCode(101, "ABS"),), (Subgraph(tensors, (0,), (1,), (Operator(0, (0,), (1,)),)),), (Buffer(),)
    )
    x = np.array([[1, -2, 3], [-4, 5, -6]], ">f4")
    for given in (x, np.asfortranarray(x), x[::-1][::-1]):
        seen = Observation((given,), (np.abs(given),), {1: np.abs(given)})
        golden = Golden((seen,), True, InputFacts("arrays", None, 1), {})
        assert verify(model, golden).verdict == Verdict.SAME


def test_constant_outputs_are_said(golden: Golden) -> None:
    observations = tuple(replace(o, outputs=tuple(np.zeros_like(v) for v in o.outputs)) for o in golden.observations)
    report = verify(MODEL, replace(golden, observations=observations))
    assert any("constant" in note for note in report.notes)
    assert not any("constant" in note for note in verify(MODEL, golden).notes)


def unsupported(path: Path) -> Path:
    """The model with the version of its softmax raised beyond what any runtime knows."""
    model = tflq.load(MODEL)
    codes = tuple(replace(c, version=120) if c.name == "SOFTMAX" else c for c in model.operator_codes)
    tflq.save(replace(model, operator_codes=codes), path)
    return path


def test_an_unsupported_operator_does_not_hide_the_others(golden: Golden, tmp_path: Path) -> None:
    path = unsupported(tmp_path / "m.tflite")
    report = verify(path, replace(golden, model_sha256=""))
    refused = [o for o in report.operators if o.status == Status.NOT_COMPARED]
    assert report.verdict == Verdict.INCOMPLETE
    assert [o.op for o in refused] == ["SOFTMAX"]
    assert "version 120" in refused[0].reason
    with pytest.raises(UnsupportedError):
        verify(path, replace(golden, model_sha256=""), mode="cumulative")


def test_values_that_the_runtime_does_not_hold_are_not_compared(golden: Golden) -> None:
    graph = view(tflq.load(MODEL))
    tensor = graph.op(1).outputs[0]
    observations = tuple(
        replace(o, tensors=MappingProxyType({t: v for t, v in o.tensors.items() if t != tensor}))
        for o in golden.observations
    )
    report = verify(MODEL, replace(golden, observations=observations))
    missing = [o.index for o in report.operators if o.status == Status.NOT_COMPARED]
    assert missing == [1, *(i for i, o in enumerate(graph.ops) if tensor in o.inputs)]
    assert report.verdict == Verdict.INCOMPLETE


def test_misuse_is_refused(golden: Golden) -> None:
    with pytest.raises(UnknownNameError, match="isolated"):
        verify(MODEL, mode="sideways")
    with pytest.raises(UnknownNameError, match="litert-ref"):
        verify(MODEL, "no-such-runtime")
    with pytest.raises(OptionError):
        verify(MODEL, golden, inputs="random")


def test_models_come_as_paths_bytes_and_values(golden: Golden) -> None:
    data = MODEL.read_bytes()
    assert verify(str(MODEL), golden).verdict == verify(data, golden).verdict == Verdict.SAME
    assert verify(tflq.load(data), replace(golden, model_sha256="")).verdict == Verdict.SAME


def test_variable_tensors_are_followed() -> None:
    """An LSTM keeps its state in variables, which the runtime shows only at the end."""
    path = MODEL.with_name("digits_lstm_int8.tflite")
    for mode in ("isolated", "cumulative"):
        report = verify(path, samples=2, mode=mode)
        assert (report.verdict, report.differing) == (Verdict.SAME, 0)


def test_a_runtime_object_is_taken_as_it_is() -> None:
    runtime = by_name("litert-ref", threads=2)
    assert verify(MODEL, runtime).against.threads == 2


class Observed:
    """A runtime that gives other outputs when its tensors are read, as a delegate may that fuses operators."""

    name = "observed"

    def __init__(self, golden: Golden) -> None:
        self.golden = golden

    def describe(self) -> Description:
        return self.golden.runtime

    def run(self, models: Sequence[bytes], samples: Sequence[Sample]) -> RuntimeOutputs:
        plain = [o.outputs for o in self.golden.observations]
        seen = [tuple(o.tensors.values()) for o in self.golden.observations]
        changed = [(*values[:-1], values[-1] ^ np.int8(1)) for values in seen]
        return RuntimeOutputs(self.describe(), (tuple(plain), tuple(changed))[: len(models)])


def test_an_observation_that_changes_the_result_is_said(golden: Golden) -> None:
    graph = view(tflq.load(MODEL))
    assert graph.outputs == (list(golden.observations[0].tensors)[-1],)  # the fault is planted in the output
    runtime = Observed(golden)
    report = verify(MODEL, runtime, samples=2)
    assert any("changed 2 output" in note for note in report.notes)
    assert not record(MODEL, runtime, samples=2).notes


def test_strings_travel_to_the_runtime_and_back() -> None:
    specs = (
        TensorSpec("dims", TensorType.INT32, (2,)),
        TensorSpec("value", TensorType.STRING, ()),
        TensorSpec("y", TensorType.STRING, (2, 2)),
    )
    fill = Operator(0, (0, 1), (2,), Record("FillOptions", {}))
    model = Model(3, (OperatorCode(94, "FILL"),), (Subgraph(specs, (0, 1), (2,), (fill,)),), (Buffer(),))
    word = np.array(b"nul\0 and gr\xc3\xbcn", object)
    golden = record(model, inputs=[np.int32([2, 2]), word])
    assert golden.observations[0].outputs[0].tolist() == [[word.item()] * 2] * 2


def test_a_tolerance_for_no_operator_is_refused() -> None:
    golden = suites.ROOT / "golden" / "recorded" / "digits_mobilenet_int8.npz"
    with pytest.raises(UnknownNameError, match="nobody"):
        verify(MODEL, golden, tolerances={"nobody": 5})
    assert verify(MODEL, golden, tolerances={"SVDF": 5}).verdict == Verdict.SAME
