"""Runs: values, what is kept, what is released, what lives from run to run."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from support.toys import PROFILE, graph, ints, quantized, tensor
from tflq.engine.interpreter import State, make_plan, run
from tflq.engine.interpreter.evaluation import bound, evaluate, inputs_of
from tflq.errors import LimitError, ModelError, OperatorFailed
from tflq.model.ir import TensorType

CHAIN = graph([tensor()] * 4, [("DOUBLE", [0], [1]), ("DOUBLE", [1], [2]), ("DOUBLE", [2], [3])], [0], [3])
DYNAMIC = graph([tensor()] * 4, [("COPY", [0], [1]), ("ONES", [1], [2]), ("DOUBLE", [2], [3])], [0], [3])


def test_a_chain() -> None:
    trace = run(make_plan(CHAIN, PROFILE), {0: ints(1, 5)})
    assert trace.values[3].tolist() == [8, 40]
    assert set(trace.values) == {3}
    assert trace.makers == {3: 2}


def test_keep_all_holds_every_tensor_that_is_no_constant() -> None:
    model = graph([tensor(), tensor(buffer=1), tensor()], [("ADD", [0, 1], [2])], [0], [2], [ints(7, 8).tobytes()])
    trace = run(make_plan(model, PROFILE), {0: ints(1, 5)}, keep_all=True)
    assert {t: v.tolist() for t, v in trace.values.items()} == {0: [1, 5], 2: [8, 13]}
    assert trace.makers == {2: 0}


def test_outputs_that_no_operator_makes() -> None:
    """An input passed through, and a constant."""
    model = graph([tensor(), tensor(buffer=1)], [], [0], [0, 1], [ints(7, 8).tobytes()])
    trace = run(make_plan(model, PROFILE), {0: ints(1, 5)})
    assert [trace.values[t].tolist() for t in (0, 1)] == [[1, 5], [7, 8]]


def test_an_absent_operand_is_none() -> None:
    model = graph([tensor()] * 2, [("OPTIONAL", [0, -1], [1])], [0], [1])
    assert run(make_plan(model, PROFILE), {0: ints(3, 4)}).values[1].tolist() == [3, 4]


def test_late_binding_follows_the_values() -> None:
    plan, state = make_plan(DYNAMIC, PROFILE), State()
    for shape in ((2, 3), (4, 1), (2, 3)):
        trace = run(plan, {0: ints(*shape)}, state)
        assert trace.values[3].tolist() == np.full(shape, 2).tolist()


def test_late_binding_is_reused_for_equal_shapes() -> None:
    plan, state = make_plan(DYNAMIC, PROFILE), State()
    run(plan, {0: ints(2, 3)}, state)
    (first,) = state.bound[1].values()
    run(plan, {0: ints(2, 3)}, State(bound=state.bound))
    assert list(state.bound[1].values()) == [first]
    run(plan, {0: ints(3, 2)}, State(bound=state.bound))
    assert next(iter(state.bound[1].values())) is first
    assert len(state.bound[1]) == 2


def test_late_binding_keeps_the_limit() -> None:
    plan = make_plan(DYNAMIC, PROFILE)
    with pytest.raises(LimitError, match="operator 1 ONES"):
        run(plan, {0: ints(1 << 16, 1 << 16)})


def test_a_shape_that_only_eval_can_tell() -> None:
    model = graph([tensor(shape=(4,)), tensor(), tensor()], [("POSITIVE", [0], [1]), ("DOUBLE", [1], [2])], [0], [2])
    plan, state = make_plan(model, PROFILE), State()
    assert run(plan, {0: ints(1, -1, 2, -2)}, state).values[2].tolist() == [2, 4]
    assert run(plan, {0: ints(1, 1, 2, -2)}, state).values[2].tolist() == [2, 2, 4]
    assert run(plan, {0: ints(0, 0, 0, 0)}, state).values[2].shape == (0,)


def test_variables_live_from_run_to_run() -> None:
    model = graph([tensor(), tensor(is_variable=True), tensor()], [("ACCUMULATE", [0, 1], [2])], [0], [2])
    plan, state = make_plan(model, PROFILE), State()
    sums = [run(plan, {0: ints(1, 10)}, state).values[2].tolist() for _ in range(3)]
    assert sums == [[1, 10], [2, 20], [3, 30]]
    assert run(plan, {0: ints(1, 10)}, State()).values[2].tolist() == [1, 10]


@pytest.mark.parametrize(("type_", "start"), [(TensorType.INT8, -5), (TensorType.UINT8, 0), (TensorType.INT16, 0)])
def test_int8_variables_start_at_their_zero_point(type_: TensorType, start: int) -> None:
    quantization = quantized(0.5, -5)
    tensors = [tensor(type_), tensor(type_, is_variable=True, quantization=quantization), tensor(type_)]
    plan = make_plan(graph(tensors, [("ACCUMULATE", [0, 1], [2])], [0], [2]), PROFILE)
    zeros = np.zeros(2, type_.label)
    assert run(plan, {0: zeros}).values[2].tolist() == [start, start]


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("BROKEN_EVAL", "IndexError: out of range"),
        ("WRONG_SHAPE", "made shape"),
        ("WRONG_TYPE", "made type float32, declared int32"),
        ("SWAPPED_BYTES", "made type >i4, declared int32"),
        ("WRONG_COUNT", "made 3 arrays"),
    ],
)
def test_errors_of_a_kernel_name_the_operator(op: str, words: str) -> None:
    plan = make_plan(graph([tensor()] * 2, [(op, [0], [1])], [0], [1]), PROFILE)
    with pytest.raises(OperatorFailed, match=f"operator 0 {op}: eval failed: {words}"):
        run(plan, {0: ints(1, 2)})


@pytest.mark.parametrize(
    ("op", "words"),
    [("UPDATE_SHAPE", r"made shape \(1,\), prepared \(2,\)"), ("UPDATE_TYPE", "made type float64, declared int32")],
)
def test_variables_keep_their_type_and_shape(op: str, words: str) -> None:
    model = graph([tensor(), tensor(is_variable=True), tensor()], [(op, [0, 1], [2])], [0], [2])
    with pytest.raises(OperatorFailed, match=f"operator 0 {op}: eval failed: {words}"):
        run(make_plan(model, PROFILE), {0: ints(1, 2)})
    absent = graph([tensor(), tensor()], [(op, [0, -1], [1])], [0], [1])
    with pytest.raises(ModelError, match="input 1 is missing"):
        make_plan(absent, PROFILE)


def test_what_has_a_value_at_the_start_keeps_its_shape() -> None:
    """An operator before the one that writes it was prepared for that shape."""
    for variable in (False, True):
        tensors = [tensor(), tensor(buffer=1), tensor(is_variable=variable), tensor()]
        inputs = [0] if variable else [0, 2]
        same = graph(tensors, [("COPY", [2], [3]), ("COPY", [0], [2])], inputs, [3, 2], [ints(3, 3).tobytes()])
        values = run(make_plan(same, PROFILE), {tensor: ints(5, 6) for tensor in inputs}).values
        assert values[2].tolist() == [5, 6]
        other = graph(tensors, [("COPY", [2], [3]), ("ONES", [1], [2])], inputs, [3, 2], [ints(3, 3).tobytes()])
        with pytest.raises(ModelError, match=r"another shape .*expected \[2\], got \[3, 3\]"):
            make_plan(other, PROFILE)


def test_numpy_scalars_become_arrays() -> None:
    model = graph([tensor(), tensor(shape=())], [("SUM", [0], [1])], [0], [1])
    total = run(make_plan(model, PROFILE), {0: ints(3, 4)}).values[1]
    assert isinstance(total, np.ndarray)
    assert (total.shape, int(total)) == ((), 7)


def test_one_step_by_itself() -> None:
    """What an isolated comparison does: feed one operator values from elsewhere."""
    plan = make_plan(DYNAMIC, PROFILE)
    step = plan.steps[1]
    values = inputs_of(plan, step, {1: ints(2, 2)})
    (made,) = evaluate(bound(plan, step, {}, values)[0], step, values)
    assert made.shape == (2, 2)


def peak_of(operators: int, *, keep_all: bool) -> int:
    """Peak bytes of a chain of operators on tensors of 4 MB."""
    chain = [("DOUBLE", [i], [i + 1]) for i in range(operators)]
    plan = make_plan(graph([tensor(shape=(1 << 20,))] * (operators + 1), chain, [0], [operators]), PROFILE)
    value = np.ones(1 << 20, np.int32)
    gc.collect()
    tracemalloc.start()
    try:
        run(plan, {0: value}, keep_all=keep_all)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_is_that_of_the_largest_live_set() -> None:
    size = 4 << 20
    short, long = peak_of(4, keep_all=False), peak_of(16, keep_all=False)
    assert 2 * size <= long <= 2 * size + (1 << 20)
    assert abs(long - short) < 1 << 18
    assert peak_of(16, keep_all=True) >= 16 * size
