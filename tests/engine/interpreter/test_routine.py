"""Plans that run again and again: the same bits as when they run once, and nothing that one run leaves to the next."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support.suites import ROOT
from support.toys import PROFILE, graph, ints, tensor
from tflq import Interpreter
from tflq.devices.suites.draft import T, build
from tflq.engine.api.files import load
from tflq.engine.interpreter import Plan, State, make_plan, run
from tflq.engine.interpreter.evaluation import admit
from tflq.engine.interpreter.plan import Limits
from tflq.engine.interpreter.routine import routine
from tflq.engine.profiles import by_name
from tflq.errors import LimitError, UndefinedResultError
from tflq.model.ir import TensorSpec, TensorType
from tflq.typing import Array

SINGLE = ROOT / "golden" / "singleop"
MODELS = [SINGLE / entry["model"] for entry in json.loads((SINGLE / "index.json").read_text())]
WHOLE = sorted((ROOT / "golden" / "models").glob("digits_*.tflite"))


@pytest.mark.parametrize(
    ("profile", "step"),
    [
        ("litert-ref", 30),
        pytest.param("litert-ref", 1, marks=pytest.mark.slow),
        pytest.param("litert-xnnpack", 1, marks=pytest.mark.slow),
    ],
)
def test_every_run_gives_the_same_bits_as_a_run_alone(profile: str, step: int) -> None:
    random, bound = np.random.default_rng(5), 0
    for path in (*MODELS[::step], *WHOLE[::step]):
        plan, state = make_plan(load(path), by_name(profile)), State()
        for _ in range(3):
            inputs = {tensor: sample(random, plan, tensor) for tensor in plan.inputs}
            try:
                alone = run(plan, inputs)
            except UndefinedResultError:
                continue
            trace = run(plan, inputs, state)
            assert trace.values.keys() == alone.values.keys()
            assert trace.makers == alone.makers
            for index, value in trace.values.items():
                np.testing.assert_array_equal(value, alone.values[index], str(path))
                assert value.dtype == alone.values[index].dtype
                assert value.shape == alone.values[index].shape
        bound += state.routine is not None
    assert bound > len(MODELS) // step // 2


def sample(random: np.random.Generator, plan: Plan, tensor: int) -> Array:
    operand = plan.operands[tensor]
    dtype = np.dtype(operand.type.label)
    if dtype.kind == "f":
        return random.standard_normal(operand.shape).astype(dtype)
    info = np.iinfo(dtype)
    return admit(random.integers(info.min, info.max + 1, operand.shape).astype(dtype), operand.type, None, "x")


def test_a_bias_that_an_operator_makes_is_read_when_the_model_runs() -> None:
    def floats(*shape: int, buffer: int = 0) -> TensorSpec:
        return tensor(TensorType.FLOAT32, shape, buffer=buffer)

    weights, ones = np.ones((2, 3), np.float32), np.ones(2, np.float32)
    tensors = [floats(1, 3), floats(2), floats(2, 3, buffer=1), floats(2, buffer=2), floats(2), floats(1, 2)]
    steps = [("ADD", [1, 3], [4]), ("FULLY_CONNECTED", [0, 2, 4], [5])]
    model = graph(tensors, steps, [0, 1], [5], [weights.tobytes(), ones.tobytes()])
    plan, state = make_plan(model, by_name("litert-ref")), State()
    for bias in (1, 20, 300):
        trace = run(plan, {0: np.ones((1, 3), np.float32), 1: np.full(2, bias, np.float32)}, state)
        assert trace.values[5].tolist() == [[4 + bias, 4 + bias]]
    assert state.routine


def test_what_a_run_gives_is_the_callers() -> None:
    model = graph([tensor()] * 3, [("DOUBLE", [0], [1]), ("DOUBLE", [1], [2])], [0], [1, 2])
    plan, state = make_plan(model, PROFILE), State()
    given = [ints(1, 5), ints(2, 7), ints(3, 9)]
    traces = [run(plan, {0: x}, state) for x in given]
    assert [t.values[2].tolist() for t in traces] == [[4, 20], [8, 28], [12, 36]]
    traces[1].values[2][:] = 0
    assert run(plan, {0: given[1]}, state).values[2].tolist() == [8, 28]
    assert given[0].tolist() == [1, 5]


def test_inputs_passed_through_are_copied() -> None:
    plan, state = make_plan(graph([tensor()], [], [0], [0]), PROFILE), State()
    x = ints(1, 5)
    for _ in range(3):
        trace = run(plan, {0: x}, state, copy_inputs=True)
        assert not np.shares_memory(trace.values[0], x)


def test_large_results_that_are_views_outlive_what_they_show() -> None:
    """COPY gives its input itself; the block's part that holds it is another tensor's soon after."""
    shape = (64, 1024)
    steps = [("DOUBLE", [0], [1]), ("COPY", [1], [2]), ("DOUBLE", [1], [3]), ("DOUBLE", [3], [4])]
    model = graph([tensor(shape=shape)] * 5, steps, [0], [2, 4])
    plan, state = make_plan(model, PROFILE), State()
    for value in (1, 2, 3):
        trace = run(plan, {0: np.full(shape, value, np.int32)}, state)
        assert np.unique(trace.values[2]).tolist() == [2 * value]
        assert np.unique(trace.values[4]).tolist() == [8 * value]


def test_late_shapes_are_bound_in_each_run() -> None:
    dynamic = graph([tensor()] * 4, [("COPY", [0], [1]), ("ONES", [1], [2]), ("DOUBLE", [2], [3])], [0], [3])
    plan, state = make_plan(dynamic, PROFILE), State()
    for sizes in ((2, 3), (1, 4), (2, 3), (5, 0), (1, 1)):
        assert np.array_equal(run(plan, {0: ints(*sizes)}, state).values[3], np.full(sizes, 2))
    assert state.routine


def test_late_shapes_keep_the_limit() -> None:
    dynamic = graph([tensor()] * 4, [("COPY", [0], [1]), ("ONES", [1], [2]), ("DOUBLE", [2], [3])], [0], [3])
    plan, state = make_plan(dynamic, PROFILE, limits=Limits(memory=1 << 20)), State()
    for _ in range(3):
        run(plan, {0: ints(2, 3)}, state)
    with pytest.raises(LimitError, match="operator 1 ONES"):
        run(plan, {0: ints(1 << 10, 1 << 10)}, state)
    assert run(plan, {0: ints(1, 1)}, state).values[3].tolist() == [[2]]


def test_a_block_beyond_the_memory_limit_is_not_made() -> None:
    path = WHOLE[0]
    profile = by_name("litert-ref")
    plan = make_plan(load(path), profile)
    with pytest.raises(LimitError):
        make_plan(load(path), profile, limits=Limits(memory=plan.cost.peak_memory - 1))
    assert routine(make_plan(load(path), profile, limits=Limits(memory=plan.cost.peak_memory * 2))) is not None


def test_steps_are_bound_to_inputs_that_stay_the_same_arrays() -> None:
    plan = make_plan(graph([tensor()] * 2, [("DOUBLE", [0], [1])], [0], [0, 1]), PROFILE)
    given = {0: ints(1, 5)}
    state = State(inputs=given)
    for value in (1, 2, 3, 4):
        given[0][0] = value
        trace = run(plan, given, state, copy_inputs=True)
        given[0][0] = 99
        assert [trace.values[0].tolist(), trace.values[1].tolist()] == [[value, 5], [2 * value, 10]]
    assert given[0].tolist() == [99, 5]


@pytest.mark.parametrize("shape", [(2,), (64, 1024)])
def test_results_that_are_views_of_such_an_input_are_copied(shape: tuple[int, ...]) -> None:
    plan = make_plan(graph([tensor(shape=shape)] * 2, [("COPY", [0], [1])], [0], [1]), PROFILE)
    given = {0: np.zeros(shape, np.int32)}
    state = State(inputs=given)
    for _ in range(3):
        trace = run(plan, given, state, copy_inputs=True)
        assert not np.shares_memory(trace.values[1], given[0])


def moving_sum() -> bytes:
    """One SVDF that keeps its last three inputs and adds them."""
    weights = T("float32", (1, 1), value=[[1.0]]), T("float32", (1, 3), value=[[1.0, 1.0, 1.0]])
    inputs = [T("float32", (1, 1)), *weights, None, T("float32", (1, 3), variable=True)]
    options = {"rank": 1, "fused_activation_function": 0}
    return build("SVDF", inputs, [T("float32", (1, 1))], ("SVDFOptions", options))


@pytest.mark.slow
def test_variables_live_in_the_routine_and_outside_of_it() -> None:
    """Runs that keep all tensors, resets and set values alternate with the routine; kept values stay."""
    interpreter = Interpreter(model_content=moving_sum())
    interpreter.allocate_tensors()
    session = interpreter._session(0)
    (state,) = (d["index"] for d in interpreter.get_tensor_details() if list(d["shape"]) == [1, 3] and d["index"] > 2)

    def step(value: float) -> float:
        interpreter.set_tensor(0, np.full((1, 1), value, np.float32))
        interpreter.invoke()
        return float(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0, 0])

    assert [step(value) for value in (1, 10, 100, 1000, 10000)] == [1, 11, 111, 1110, 11100]
    assert session._state.routine
    assert interpreter.get_tensor(state).tolist() == [[100, 1000, 10000]]
    kept = session.invoke(keep_all=True).values[state]
    assert kept.tolist() == [[1000, 10000, 10000]]
    assert [step(1), step(2)] == [20001, 10003]
    assert kept.tolist() == [[1000, 10000, 10000]]
    interpreter.reset_all_variables()
    assert [step(5), step(6)] == [5, 11]
    interpreter.set_tensor(state, np.array([[0, 7, 8]], np.float32))
    assert [step(1), step(1)] == [16, 10]


def test_large_outputs_are_allocated_in_each_run() -> None:
    """A megabyte that no step reads is not copied: each run fills an array of its own."""
    shape = (512, 1024)
    x, y = T("float32", shape), T("float32", shape)
    model = build("LEAKY_RELU", [x], [y], ("LeakyReluOptions", {"alpha": 0.5}))
    plan, state = make_plan(load(model), by_name("litert-ref")), State()
    (given,), (made,) = plan.inputs, plan.outputs
    traces = [run(plan, {given: np.full(shape, value, np.float32)}, state) for value in (-2, 4, -8)]
    assert state.routine
    assert [np.unique(trace.values[made]).tolist() for trace in traces] == [[-1], [4], [-4]]
    assert not np.shares_memory(traces[1].values[made], traces[2].values[made])
