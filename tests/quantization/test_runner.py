"""Samples that run together give the bits that they give alone."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tflq
from support.float_graphs import FloatGraph
from tflq.model.ir import Model, TensorType, view
from tflq.quantization.frontier import Runner, Sample, executor, join

MODELS = Path(__file__).resolve().parents[2] / "golden" / "models"


def samples(model: Model, count: int) -> Iterator[Sample]:
    random = np.random.default_rng(0)
    graph = view(model)
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
    (given,) = view(model).inputs
    (wanted,) = view(model).outputs
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
    (wanted,) = view(model).outputs
    batches = [values[wanted] for values in Runner(model).run(samples(model, 4))]
    alone = [Runner(model).one(sample)[wanted] for sample in samples(model, 4)]
    np.testing.assert_array_equal(np.concatenate(batches), np.concatenate(alone))


def attention() -> Model:
    """A graph whose shapes fix the batch to one, and part of whose tensors have no dimension for it."""
    g = FloatGraph(0)
    x = g.given(1, 6, 8)
    fully = {"fused_activation_function": 0, "weights_format": 0, "keep_num_dims": False}

    def heads(values: int) -> int:
        split = g.op("RESHAPE", [values, g.constant([1, 6, 2, 4], "int32")])[0]
        return g.op("TRANSPOSE", [split, g.constant([0, 2, 1, 3], "int32")])[0]

    def mixed(values: int, **options: bool) -> int:
        return g.op("FULLY_CONNECTED", [values, g.weights(8, 8), g.bias(8)], {**fully, **options})[0]

    keys, queries = heads(mixed(x, keep_num_dims=True)), heads(x)
    shares = g.unary(
        "SOFTMAX", g.op("BATCH_MATMUL", [queries, keys], {"adj_x": False, "adj_y": True})[0], {"beta": 1.0}
    )
    seen = g.op("BATCH_MATMUL", [shares, heads(x)], {"adj_x": False, "adj_y": False})[0]
    back = g.op("TRANSPOSE", [seen, g.constant([0, 2, 1, 3], "int32")])[0]
    rows = mixed(g.op("RESHAPE", [back, g.constant([6, 8], "int32")])[0])
    return g.model([g.op("ADD", [x, rows], {"fused_activation_function": 0})[0], rows])


def test_shapes_that_fix_the_batch_are_no_hindrance() -> None:
    model, random = attention(), np.random.default_rng(0)
    graph = view(model)
    made = [t for operator in graph.ops for t in operator.outputs]
    given = [{graph.inputs[0]: random.normal(size=(1, 6, 8)).astype(np.float32)} for _ in range(5)]
    runner = Runner(model, made)
    assert runner.together(given) == 32
    for sample, values in zip(given, runner.each(given), strict=True):
        alone = runner.one(sample)
        for tensor in made:
            assert values[tensor].shape == alone[tensor].shape == graph.tensors[tensor].shape
            assert values[tensor].tobytes() == alone[tensor].tobytes()


def test_axes_that_would_count_the_batch_keep_samples_apart() -> None:
    g = FloatGraph(0)
    flat = g.op("RESHAPE", [g.given(1, 4, 3), g.constant([4, 3], "int32")])[0]
    summed = g.op("SUM", [flat, g.constant([0], "int32")], {"keep_dims": False})[0]
    model = g.model([summed])
    assert Runner(model).together([{0: np.full((1, 4, 3), k, np.float32)} for k in (1, 2)]) == 1


def test_kept_tensors_are_inputs_and_intermediates_too() -> None:
    model = tflq.load(MODELS / "digits_mobilenet_float.tflite")
    graph = view(model)
    kept = (graph.inputs[0], graph.op(0).outputs[0])
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
    (wanted,) = view(model).outputs
    (given,) = view(model).inputs
    made = [t for operator in view(model).ops for t in operator.outputs]
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


def test_one_sample_joined_is_that_sample_scalars_too() -> None:
    sample: Sample = {0: np.array(True), 1: np.zeros((1, 4), np.float32)}
    assert join([sample]) == sample
