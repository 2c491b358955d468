"""Bounds of accumulators: reached by an input made for it, and never passed by random ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support import suites
from support.commands import tflq, validate
from tflq.comparison.inspection.operators import SumBound, overflow_bounds
from tflq.diagnosis.element import trace_element
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.model.ir import Model, view
from tflq.model.surgery.tap import single_operator

MODELS = suites.ROOT / "golden" / "models"
REFERENCE = by_name("litert-ref")


def dense(path: str) -> tuple[Model, np.ndarray, np.ndarray, SumBound]:
    """The first FULLY_CONNECTED of a model as a model, its weights and bias, and its bound."""
    model = load(MODELS / path)
    bound = next(b for b in overflow_bounds(model, REFERENCE) if b.op == "FULLY_CONNECTED")
    alone, _ = single_operator(model, bound.index)
    node = make_plan(alone, REFERENCE).steps[0].node
    w, bias = node.input(1).value, node.input(2).value
    assert w is not None
    assert bias is not None
    return alone, w.astype(np.int64), bias.astype(np.int64), bound


@pytest.mark.slow
@pytest.mark.parametrize("path", ["digits_autoencoder_int8.tflite", "digits_autoencoder_int16x8.tflite"])
def test_the_bound_is_reached(path: str) -> None:
    model, w, bias, bound = dense(path)
    graph = view(model)
    position = graph.inputs[0]
    spec = graph.tensors[position]
    dtype = np.dtype(spec.type.label)
    for sign in (1, -1):
        codes = np.where(sign * w[bound.channel] > 0, np.iinfo(dtype).max, np.iinfo(dtype).min).astype(dtype)
        plan = make_plan(model, REFERENCE)
        trace = trace_element(plan, {position: codes.reshape(spec.shape)}, (0, bound.channel))
        total = int(trace.working.steps[0].value)
        reached = total + sign * max(0, sign * int(bias[bound.channel]))
        assert bound.low <= reached <= bound.high
        if abs(reached) == max(abs(bound.low), abs(bound.high)):
            break
    else:
        pytest.fail("neither end was reached")


@pytest.mark.slow
def test_a_transposed_convolution_counts_only_taps_that_meet() -> None:
    model = load(MODELS / "digits_unet_int8.tflite")
    bound = next(b for b in overflow_bounds(model, REFERENCE) if b.op == "TRANSPOSE_CONV")
    alone, _ = single_operator(model, bound.index)
    plan = make_plan(alone, REFERENCE)
    shape = plan.operands[plan.outputs[0]].shape
    rng = np.random.default_rng(1)
    (position,) = view(alone).inputs
    spec = view(alone).tensors[position]
    taps = set()
    for _ in range(10):
        codes = rng.choice(np.array([-128, 127], np.int8), spec.shape)
        trace = trace_element(plan, {position: codes}, tuple(int(rng.integers(n)) for n in shape))
        assert bound.low <= int(trace.working.steps[0].value) <= bound.high
        taps.add(len(trace.working.taps))
    w = plan.steps[0].node.input(1)
    assert max(taps) < int(np.prod(w.shape[1:]))


@pytest.mark.parametrize(("low", "high", "bits"), [(-128, 127, 8), (-129, 0, 9), (0, 128, 9), (-1, 0, 1), (0, 0, 1)])
def test_bits_are_those_of_the_narrowest_word(low: int, high: int, bits: int) -> None:
    assert SumBound(0, "SUM", low, high, 0).bits == bits


def test_the_command_says_what_overflows() -> None:
    model = str(MODELS / "digits_mobilenet_int8.tflite")
    arguments = ["inspect", model, "--accumulator-bits", "16"]
    done = tflq(*arguments, "--json")
    document = json.loads(done.stdout)
    validate(document, "overflow")
    assert done.exit_code == 1
    assert any(operator["overflows"] for operator in document["operators"])
    assert "can overflow 16 bits" in tflq(*arguments).stdout
    done = tflq("inspect", model, "--overflow")
    assert (done.exit_code, done.stdout.splitlines()[0][:7]) == (0, "32 bits")
