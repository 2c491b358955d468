"""An element's steps end at the code that the recorded runtime gave, and its taps hold what lies at their places."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from support import suites
from tflq.diagnosis.element import ElementTrace, trace_element
from tflq.engine.api.files import load
from tflq.engine.interpreter import Plan, make_plan
from tflq.engine.interpreter.evaluation import admit
from tflq.engine.profiles import by_name
from tflq.errors import OptionError, TflqError
from tflq.model.ir import view

#: Operators whose steps are told, as far as a suite's models have them.
TOLD = {
    "singleop": {
        "ADD",
        "AVERAGE_POOL_2D",
        "CONCATENATION",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "HARD_SWISH",
        "LOGISTIC",
        "MAXIMUM",
        "MAX_POOL_2D",
        "MEAN",
        "MUL",
        "PAD",
        "PADV2",
        "QUANTIZE",
        "RELU6",
        "SUB",
        "TANH",
        "TRANSPOSE_CONV",
    },
    "zip": {
        "BATCH_MATMUL",
        "DEPTH_TO_SPACE",
        "EXPAND_DIMS",
        "GATHER",
        "MIRROR_PAD",
        "PACK",
        "RESHAPE",
        "REVERSE_V2",
        "SLICE",
        "SPACE_TO_DEPTH",
        "SPLIT",
        "STRIDED_SLICE",
        "TILE",
        "TRANSPOSE",
    },
}


def loaded(model: Path, golden: Path, profile: str) -> tuple[Plan, dict[int, np.ndarray], np.ndarray]:
    """A single operator bound under a profile, the recorded inputs, and the output recorded for LiteRT's reference."""
    read = load(model)
    arrays = np.load(golden, allow_pickle=False)
    graph = view(read)
    inputs = {t: admit(arrays[f"s0_in{i}"], graph.tensors[t].type, None, "") for i, t in enumerate(graph.inputs)}
    plan = make_plan(read, by_name(profile), input_shapes={t: v.shape for t, v in inputs.items()})
    return plan, inputs, arrays["s0_out0"]


def places(shape: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(11)
    size = int(np.prod(shape))
    chosen = rng.integers(0, size, min(count, size)) if size else []
    return [tuple(int(i) for i in np.unravel_index(int(flat), shape)) if shape else () for flat in chosen]


@pytest.mark.parametrize("suite", ["singleop", "zip"])
def test_steps_end_at_the_recorded_code(suite: str, shared: Path) -> None:
    told: Counter[str] = Counter()
    for case in suites.suite_models(suite):
        try:
            plan, inputs, recorded = loaded(case.model, case.golden, "litert-ref")
        except (TflqError, KeyError, ValueError):
            continue
        if len(plan.steps) != 1 or plan.steps[0].outputs != plan.outputs or recorded.dtype.kind not in "biu":
            continue
        for index in places(recorded.shape, 3):
            trace = trace_element(plan, inputs, index)
            assert trace.working.steps[-1].value == recorded[index] == trace.expected, (case.id, trace)
            assert_taps_hold(plan, inputs, trace)
            told[trace.op] += trace.is_told
    assert {op for op, count in told.items() if count} >= TOLD[suite]


def assert_taps_hold(plan: Plan, inputs: dict[int, np.ndarray], trace: ElementTrace) -> None:
    for tap in trace.working.taps:
        for read in (tap.value, tap.weight):
            array = None if read is None else inputs.get(plan.steps[0].inputs[read.operand])
            assert read is None or array is None or array[read.place] == read.code


@pytest.mark.parametrize("profile", ["litert-opt", "litert-xnnpack", "tflite-2.14-ref", "tf-1.15-ref", "tflm"])
def test_steps_end_at_other_profiles_codes(profile: str, shared: Path) -> None:
    told = 0
    for case in suites.suite_models("singleop"):
        try:
            plan, inputs, recorded = loaded(case.model, case.golden, profile)
        except (TflqError, KeyError):
            continue
        if len(plan.steps) == 1 and recorded.ndim:
            for index in places(recorded.shape, 2):
                trace = trace_element(plan, inputs, index)
                value = trace.working.steps[-1].value
                assert value == trace.expected or np.isnan(value), (case.id, trace)
                told += trace.is_told
    assert told > 150


def test_a_convolution_by_hand(shared: Path) -> None:
    case = next(c for c in suites.suite_models("singleop") if "conv" in c.id and "u8" in c.id)
    plan, inputs, recorded = loaded(case.model, case.golden, "litert-ref")
    index = tuple(size // 2 for size in recorded.shape)
    trace = trace_element(plan, inputs, index)
    values = [
        (tap.value.code - tap.value.zero_point) * (tap.weight.code - tap.weight.zero_point)
        for tap in trace.working.taps
        if tap.weight is not None
    ]
    assert [tap.product for tap in trace.working.taps] == values
    assert trace.working.steps[0].value == sum(values)


def test_an_element_outside_is_refused(shared: Path) -> None:
    case = next(suites.suite_models("singleop"))
    plan, inputs, recorded = loaded(case.model, case.golden, "litert-ref")
    trace = partial(trace_element, plan, inputs)
    for index in (recorded.shape, recorded.shape[:-1], (-1,) * recorded.ndim):
        with pytest.raises(OptionError, match="does not lie in the output"):
            trace(index)
