"""Steps: signatures run one after the other in one interpreter, by a real runtime and by the profile of its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import tflq
from support import suites
from tflq.engine.api.signature import Stepper, run_steps
from tflq.engine.runtimes import Invocation, by_name
from tflq.errors import InputError, RuntimeFailed, UnknownNameError
from tflq.model.ir import SignatureDef, view
from tflq.model.surgery.tap import tap_signatures

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")

MODELS = suites.ROOT / "golden" / "models"
DECODER = MODELS / "tiny_decoder_int8.tflite"
CACHES = tuple(f"kv_cache_{kind}_{layer}" for kind in "kv" for layer in range(2))


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def prefill() -> Invocation:
    caches = {name: np.zeros((1, 32, 2, 16), np.float32) for name in CACHES}
    return Invocation("prefill_8", {"tokens": ids(*range(40, 48))[None], "input_pos": ids(*range(8)), **caches})


def decode(token: int, position: int) -> Invocation:
    return Invocation("decode", {"tokens": ids(token)[None], "input_pos": ids(position)}, CACHES)


STEPS = (prefill(), decode(7, 8), decode(9, 9))


@pytest.mark.parametrize("name", ["litert-ref", "litert-opt"])
def test_a_profile_takes_the_same_steps_as_its_runtime(name: str) -> None:
    stepped = by_name(name).run_steps([DECODER.read_bytes()], [STEPS])
    for real, ours in zip(stepped.outputs[0][0], run_steps(tflq.load(DECODER), name, STEPS), strict=True):
        assert set(real) == set(ours.outputs)
        assert all(real[key].tobytes() == ours.outputs[key].tobytes() for key in real)


def test_an_interpreter_lives_for_one_sequence() -> None:
    model = suites.ROOT / "golden" / "models" / "digits_lstm_int8.tflite"
    sample = np.zeros(view(tflq.load(model)).tensors[view(tflq.load(model)).inputs[0]].shape, np.int8)
    step = Invocation(None, {"0": sample})
    runtime, data = by_name("litert-ref"), model.read_bytes()
    one, two = runtime.run_steps([data, data], [[step], [step, step]]).outputs
    assert [len(steps) for steps in one] == [1, 2]
    assert one[0][0]["0"].tobytes() == two[1][0]["0"].tobytes()


def test_tapped_signatures_give_every_tensor_and_the_same_outputs() -> None:
    model = tflq.load(DECODER)
    tapped, names = tap_signatures(model)
    plain, whole = by_name("litert-ref").run_steps([tflq.save(model), tflq.save(tapped)], [STEPS]).outputs
    for step, (expected, got) in enumerate(zip(plain[0], whole[0], strict=True)):
        assert all(expected[key].tobytes() == got[key].tobytes() for key in expected)
        tensors = names[next(root for root in names if root.signature == STEPS[step].signature)]
        assert set(got) == {*expected, *tensors}
    ours = list(run_steps(model, "litert-ref", STEPS, keep_all=True))
    decoded = next(tensors for root, tensors in names.items() if root.signature == "decode")
    assert all(ours[2].tensors[t].tobytes() == whole[0][2][key].tobytes() for key, t in decoded.items())


def test_a_subgraph_of_two_signatures_is_tapped_for_each() -> None:
    model = tflq.load(DECODER)
    one = (model.signature_defs or ())[1]
    twice = replace(model, signature_defs=(one, replace(one, signature_key="again", outputs=(("t3", 3),))))
    tapped, names = tap_signatures(twice)
    assert len(tapped.subgraphs) == len(model.subgraphs) + 1
    assert "t3" in names[next(r for r in names if r.signature == "decode")]
    assert "t3_" in names[next(r for r in names if r.signature == "again")]
    tflq.load(tflq.save(tapped))


def test_a_runtime_refuses_an_unknown_signature_and_a_missing_output() -> None:
    data, runtime = [DECODER.read_bytes()], by_name("litert-ref")
    with pytest.raises(RuntimeFailed, match="Invalid signature_key provided"):
        runtime.run_steps(data, [[Invocation("decod")]])
    with pytest.raises(RuntimeFailed, match="no earlier step has an output 'kv_cache_k_0'"):
        runtime.run_steps(data, [[decode(1, 0)]])


@pytest.mark.parametrize(
    ("step", "error", "text"),
    [
        (Invocation("decod"), UnknownNameError, "decod"),
        (decode(1, 0), InputError, "no earlier step has an output of this name"),
        (Invocation("decode", {"tokens": ids(1)[None]}), InputError, "no value is given"),
        (replace(prefill(), inputs={**prefill().inputs, "x": ids(1)}), UnknownNameError, "x"),
        (Invocation(None, {}), InputError, "no value is given"),
    ],
)
def test_a_profile_refuses_steps_that_do_not_fit(step: Invocation, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Stepper(tflq.load(DECODER), "litert-ref").run(step)


def test_outputs_of_equal_names_are_no_trap() -> None:
    model = tflq.load(DECODER)
    graph = view(model)
    odd = SignatureDef("odd", (("", graph.inputs[0]),), (("x", graph.outputs[0]), ("x", graph.outputs[1])), 0)
    steps: Sequence[Invocation] = [Invocation("odd", {"": ids(*range(8))[None]})]
    (result,) = run_steps(replace(model, signature_defs=(odd,)), "litert-ref", steps)
    assert list(result.outputs) == ["x"]
