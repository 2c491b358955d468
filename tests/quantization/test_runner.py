"""Samples that run together give the bits that they give alone."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tflq
from tflq.ir import Model, TensorType
from tflq.quantization.runner import Runner, Sample, executor

MODELS = Path(__file__).resolve().parents[2] / "golden" / "models"


def samples(model: Model, count: int) -> Iterator[Sample]:
    random = np.random.default_rng(0)
    graph = model.subgraphs[0]
    for _ in range(count):
        yield {
            t: random.random(graph.tensors[t].shape, np.float32)
            if graph.tensors[t].type == TensorType.FLOAT32
            else random.integers(-128, 128, graph.tensors[t].shape, np.int8)
            for t in graph.inputs
        }


@pytest.mark.parametrize("name", ["digits_mobilenet_float", "digits_mobilenet_int8"])
def test_a_batch_holds_what_the_interpreter_gives_for_each(name: str) -> None:
    model = tflq.load(MODELS / f"{name}.tflite")
    (given,) = model.subgraphs[0].inputs
    (wanted,) = model.subgraphs[0].outputs
    batches = [values[wanted] for values in Runner(model).run(samples(model, 7), batch=3)]
    assert [len(b) for b in batches] == [3, 3, 1]
    interpreter = tflq.Interpreter(model_path=str(MODELS / f"{name}.tflite"))
    interpreter.allocate_tensors()
    for got, sample in zip(np.concatenate(batches), samples(model, 7), strict=True):
        interpreter.set_tensor(given, sample[given])
        interpreter.invoke()
        np.testing.assert_array_equal(got, interpreter.get_tensor(wanted)[0])


def test_a_graph_that_mixes_rows_runs_one_by_one() -> None:
    model = tflq.load(MODELS / "digits_lstm_int8.tflite")  # unpacks its rows by constant shapes
    (wanted,) = model.subgraphs[0].outputs
    batches = [values[wanted] for values in Runner(model).run(samples(model, 4))]
    alone = [Runner(model).one(sample)[wanted] for sample in samples(model, 4)]
    np.testing.assert_array_equal(np.concatenate(batches), np.concatenate(alone))


def test_kept_tensors_are_inputs_and_intermediates_too() -> None:
    model = tflq.load(MODELS / "digits_mobilenet_float.tflite")
    graph = model.subgraphs[0]
    kept = (graph.inputs[0], graph.operators[0].outputs[0])
    (sample,) = samples(model, 1)
    (values,) = Runner(model, kept).run([sample])
    assert set(values) == set(kept)
    np.testing.assert_array_equal(values[kept[0]], sample[kept[0]])


def test_no_samples_give_nothing() -> None:
    assert list(Runner(tflq.load(MODELS / "digits_mobilenet_int8.tflite")).run([])) == []


def test_a_profile_that_does_not_take_a_model_is_stood_in_for() -> None:
    model = tflq.load(MODELS / "digits_mobilenet_int16x8.tflite")
    assert executor(model, "litert-xnnpack") == "litert-xnnpack"
    assert executor(model, "tf-1.15-ref") == "litert-ref"


def test_bits_are_those_of_the_profile() -> None:
    model = tflq.load(MODELS / "digits_mobilenet_int8.tflite")
    (wanted,) = model.subgraphs[0].outputs
    (given,) = model.subgraphs[0].inputs
    made = [t for operator in model.subgraphs[0].operators for t in operator.outputs]
    sums = {}
    for profile in ("litert-ref", "litert-xnnpack"):
        (values,) = Runner(model, made, profile).run(samples(model, 1))
        interpreter = tflq.Interpreter(str(MODELS / "digits_mobilenet_int8.tflite"), profile=profile)
        interpreter.allocate_tensors()
        interpreter.set_tensor(given, next(samples(model, 1))[given])
        interpreter.invoke()
        np.testing.assert_array_equal(values[wanted], interpreter.get_tensor(wanted))
        sums[profile] = [int(values[t].astype(np.int64).sum()) for t in made]
    assert sums["litert-ref"] != sums["litert-xnnpack"]
