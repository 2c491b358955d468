"""A model run operator by operator on all samples gives what it gives run sample by sample."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support.float_graphs import random_graph, samples
from tflq.model.ir import Buffer, view
from tflq.quantization.frontier import ConstantTensor, Frontier, Runner, Sample, SampleStore, together

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "models"
MODEL = tflq.load(GOLDEN / "digits_mobilenet_int8.tflite")
GRAPH = view(MODEL)
CONVOLUTIONS = [o.index for o in GRAPH.ops if o.builtin == "CONV_2D"]


def codes(count: int) -> list[Sample]:
    random, (tensor,) = np.random.default_rng(1), GRAPH.inputs
    return [{tensor: random.integers(-128, 128, GRAPH.tensors[tensor].shape, dtype=np.int8)} for _ in range(count)]


@pytest.mark.parametrize("memory", [0, 1 << 30])
@pytest.mark.parametrize("size", [1, 4])
def test_stops_see_what_the_model_makes(memory: int, size: int) -> None:
    reads = [GRAPH.op(stop).inputs[0] for stop in CONVOLUTIONS]
    expected = list(Runner(MODEL, reads).each(codes(7)))
    with SampleStore(memory) as store:
        frontier = Frontier(MODEL, codes(7), CONVOLUTIONS, "litert-ref", size, store)
        for stop, tensor in zip(CONVOLUTIONS, reads, strict=True):
            frontier.advance(stop)
            values = np.concatenate(list(frontier.values(tensor)))
            np.testing.assert_array_equal(values, np.concatenate([e[tensor] for e in expected]))


def test_what_comes_after_a_changed_operator_sees_the_change() -> None:
    stop, later = CONVOLUTIONS[1], CONVOLUTIONS[3]
    weights, read = GRAPH.op(stop).inputs[1], GRAPH.op(later).inputs[0]
    spec = GRAPH.tensors[weights]
    turned = np.ascontiguousarray(MODEL.buffers[spec.buffer].data.view(np.int8).reshape(spec.shape)[::-1])
    buffers = list(MODEL.buffers)
    buffers[spec.buffer] = Buffer(turned.reshape(-1).view(np.uint8))
    changed = replace(MODEL, buffers=tuple(buffers))
    expected = np.concatenate([v[read] for v in Runner(changed, [read]).each(codes(5))])
    assert not np.array_equal(expected, np.concatenate([v[read] for v in Runner(MODEL, [read]).each(codes(5))]))
    with SampleStore() as store:
        frontier = Frontier(MODEL, codes(5), [stop, later], "litert-ref", 2, store)
        frontier.advance(stop)
        frontier.change(stop, {1: ConstantTensor(turned, spec.quantization)})
        frontier.advance(later)
        np.testing.assert_array_equal(np.concatenate(list(frontier.values(read))), expected)


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_are_walked_whatever_they_hold(seed: int) -> None:
    model = random_graph(seed)
    graph, given = view(model), samples(model, seed)
    stops = range(len(graph.ops))
    tensors = {
        t for o in graph.ops for t in o.inputs if t in {*graph.inputs, *(t for p in graph.ops for t in p.outputs)}
    }
    expected = list(Runner(model, tensors).each(given))
    with SampleStore() as store:
        frontier = Frontier(model, given, stops, "litert-ref", together(model, given, stops, "litert-ref"), store)
        for stop in stops:
            frontier.advance(stop)
            for tensor in tensors.intersection(graph.op(stop).inputs):
                values = np.concatenate([v.reshape(-1) for v in frontier.values(tensor)])
                np.testing.assert_array_equal(values, np.concatenate([e[tensor].reshape(-1) for e in expected]))
