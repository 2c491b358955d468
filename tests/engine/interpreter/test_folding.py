"""Values that follow from shapes and constants: known before the model runs, with the bits of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from support.graphs import Graph, Op, assert_runs, build
from support.single_op import T
from support.toys import PROFILE, graph, ints, tensor
from tflq import Interpreter
from tflq.engine.interpreter import Plan, State, make_plan, run
from tflq.engine.interpreter.plan import Limits
from tflq.engine.profiles import by_name
from tflq.errors import LimitError, ModelError, OperatorFailed
from tflq.model.flatbuf import read
from tflq.model.ir import Model
from tflq.typing import Array

LITERT = by_name("litert-ref")
SLICE = {"shrink_axis_mask": 1, "begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "offset": False}


class Drawing:
    """A graph that is drawn operator by operator; every method gives the number of a tensor."""

    def __init__(self, *shape: int) -> None:
        self.tensors, self.ops = [T("float32", shape)], list[Op]()

    def tensor(self, type_: str, shape: Sequence[int], value: Any = None) -> int:
        self.tensors.append(T(type_, shape, value=value))
        return len(self.tensors) - 1

    def constant(self, value: Any, type_: str = "int32") -> int:
        return self.tensor(type_, np.shape(value), np.asarray(value))

    def add(self, name: str, inputs: Sequence[int], type_: str, shape: Sequence[int], *options: Any) -> int:
        out = self.tensor(type_, shape)
        self.ops.append(Op(name, inputs, [out], options or None))
        return out

    def shape(self, x: int) -> int:
        return self.add("SHAPE", [x], "int32", (len(self.tensors[x].shape),), "ShapeOptions", {"out_type": 2})

    def reshape(self, x: int, *rest: int) -> int:
        """Keep the batch, as exporters write it."""
        edges = [self.constant([end]) for end in (0, 1, 1)]
        batch = self.add("STRIDED_SLICE", [self.shape(x), *edges], "int32", (), "StridedSliceOptions", SLICE)
        parts, size = [batch, *(self.constant(d) for d in rest)], 1 + len(rest)
        packed = self.add("PACK", parts, "int32", (size,), "PackOptions", {"values_count": size, "axis": 0})
        return self.add("RESHAPE", [x, packed], "float32", (1, *rest))

    def file(self, *outputs: int) -> bytes:
        return build(Graph(self.tensors, [0], outputs, self.ops))


def dense() -> bytes:
    """A layer between two RESHAPEs that keep the batch."""
    drawing = Drawing(1, 2, 3)
    weights = drawing.constant(np.arange(24).reshape(4, 6) / 8, "float32")
    bias = drawing.constant(np.ones(4), "float32")
    flat = drawing.reshape(0, 6)
    y = drawing.add("FULLY_CONNECTED", [flat, weights, bias], "float32", (1, 4), "FullyConnectedOptions", {})
    return drawing.file(drawing.reshape(y, 2, 2))


def mixed() -> bytes:
    """Shapes computed by GATHER, CAST, MUL, REDUCE_PROD, EXPAND_DIMS and CONCATENATION, partly in float32."""
    drawing = Drawing(1, 4, 6)
    shape = drawing.shape(0)
    ends = drawing.add("GATHER", [shape, drawing.constant([0, 2])], "int32", (2,), "GatherOptions", {"axis": 0})
    middle = drawing.add("GATHER", [shape, drawing.constant([1])], "int32", (1,), "GatherOptions", {"axis": 0})
    to_float, to_int = {"in_data_type": 2, "out_data_type": 0}, {"in_data_type": 0, "out_data_type": 2}
    floats = drawing.add("CAST", [ends], "float32", (2,), "CastOptions", to_float)
    halves = drawing.add("MUL", [floats, drawing.constant([1, 0.5], "float32")], "float32", (2,), "MulOptions", {})
    tile = drawing.add("CAST", [halves], "int32", (2,), "CastOptions", to_int)
    product = drawing.add("REDUCE_PROD", [ends, drawing.constant([0])], "int32", (), "ReducerOptions", {})
    product = drawing.add("EXPAND_DIMS", [product, drawing.constant(0)], "int32", (1,))
    joined = drawing.add("CONCATENATION", [middle, product], "int32", (2,), "ConcatenationOptions", {"axis": 0})
    flat = drawing.add("RESHAPE", [0, joined], "float32", (4, 6))
    filled = drawing.add("FILL", [tile, drawing.constant(1.5, "float32")], "float32", (1, 3))
    return drawing.file(flat, filled, tile)


def plan_of(file: bytes, **more: Any) -> Plan:
    return make_plan(read(file), LITERT, **more)


@pytest.mark.parametrize("file", [dense(), mixed()], ids=["dense", "mixed"])
def test_a_dynamic_batch_is_a_routine_with_the_runtimes_bits(file: bytes) -> None:
    plan, state = plan_of(file), State()
    assert plan.cost.is_settled
    x = np.random.default_rng(3).standard_normal(plan.operands[0].shape).astype(np.float32)
    for _ in range(3):
        run(plan, {0: x}, state)
    assert state.routine
    assert {type(call).__name__ for call in state.routine.calls.calls} <= {"MachineCall", "partial"}
    assert not {step.op for step in state.routine.calls.steps} & {"SHAPE", "PACK", "STRIDED_SLICE", "GATHER", "FILL"}
    batches = [x, -x, x, np.concatenate([x, 2 * x, -x]), np.concatenate([x, 3 * x, -x]), x]
    assert_runs(file, [[batch] for batch in batches])


@pytest.mark.parametrize("file", [dense(), mixed()], ids=["dense", "mixed"])
def test_every_tensor_is_in_the_trace_with_the_bits_of_a_run(file: bytes) -> None:
    plan = plan_of(file)
    x = np.ones(plan.operands[0].shape, np.float32)
    trace, certain = run(plan, {0: x}, keep_all=True), plan.folding.everything()
    assert trace.values.keys() >= set(plan.makers)
    assert len(certain) > 3
    for index, value in certain.items():
        assert value.dtype == trace.values[index].dtype
        np.testing.assert_array_equal(value, trace.values[index])
        assert trace.makers[index] == plan.makers[index]


def test_certain_outputs_are_the_callers() -> None:
    drawing = Drawing(2, 3)
    interpreter = Interpreter(model_content=drawing.file(drawing.shape(0)))
    interpreter.allocate_tensors()
    for _ in range(4):
        interpreter.invoke()
        (detail,) = interpreter.get_output_details()
        got = interpreter.get_tensor(detail["index"])
        assert got.tolist() == [2, 3]
        got[:] = 9


def test_shapes_are_those_of_the_file_until_the_first_run() -> None:
    """LiteRT does the same with dynamic tensors."""
    interpreter = Interpreter(model_content=dense())
    interpreter.resize_tensor_input(0, (5, 2, 3))
    interpreter.allocate_tensors()
    (output,) = interpreter.get_output_details()
    assert output["shape"].tolist() == [1, 2, 2]
    with pytest.raises(ValueError, match="known after invoke"):
        interpreter.get_tensor(output["index"])
    interpreter.invoke()
    assert interpreter.get_output_details()[0]["shape"].tolist() == [5, 2, 2]


def test_what_a_value_makes_impossible_is_refused_by_the_run() -> None:
    """By the operator itself, or by one behind it, which the plan alone could refuse."""
    drawing = Drawing(1, 4)
    drawing.reshape(0, 5)
    with pytest.raises(ModelError, match=r"operator 3 RESHAPE: number of elements .* expected 4, got 5"):
        run(plan_of(drawing.file(len(drawing.tensors) - 1)), {0: np.zeros((1, 4), np.float32)})
    drawing = Drawing(1, 4)
    kept = drawing.reshape(0, 4)
    drawing.add("RESHAPE", [kept, drawing.constant([2, 3])], "float32", (2, 3))
    plan = plan_of(drawing.file(len(drawing.tensors) - 1))
    assert not plan.cost.is_settled
    with pytest.raises(ModelError, match="operator 4 RESHAPE: number of elements"):
        run(plan, {0: np.zeros((1, 4), np.float32)})


def test_a_kernel_that_refuses_values_refuses_them_in_the_run() -> None:
    drawing = Drawing(1, 4)
    beyond = [drawing.shape(0), drawing.constant([7])]
    size = drawing.add("GATHER", beyond, "int32", (1,), "GatherOptions", {"axis": 0})
    last = drawing.add("RESHAPE", [0, size], "float32", (4,))
    again = drawing.add("FILL", [size, drawing.constant(1, "float32")], "float32", (4,))
    plan, state = plan_of(drawing.file(last, again)), State()
    assert plan.folding.everything().keys() == {drawing.ops[0].outputs[0]}
    for _ in range(3):
        with pytest.raises(Exception, match="operator 1 GATHER") as caught:
            run(plan, {0: np.zeros((1, 4), np.float32)}, state)
        assert isinstance(caught.value, ModelError | OperatorFailed)


def test_random_numbers_are_drawn_in_each_run() -> None:
    drawing = Drawing(2, 3)
    shape = drawing.shape(0)
    drawn = drawing.add("RANDOM_UNIFORM", [shape], "float32", (2, 3), "RandomOptions", {"seed": 1, "seed2": 2})
    plan, state = plan_of(drawing.file(drawn)), State()
    assert plan.folding.everything().keys() == {shape}
    one, two = (run(plan, {0: np.zeros((2, 3), np.float32)}, state).values[drawn] for _ in range(2))
    assert (one != two).any()


def test_limits_count_as_in_a_run() -> None:
    drawing = Drawing(1, 4)
    size = drawing.add("MUL", [drawing.shape(0), drawing.constant([1 << 20, 1])], "int32", (2,), "MulOptions", {})
    last = drawing.add("FILL", [size, drawing.constant(1, "float32")], "float32", (1, 4))
    plan = plan_of(drawing.file(last), limits=Limits(memory=1 << 16))
    with pytest.raises(LimitError, match="operator 2 FILL"):
        run(plan, {0: np.zeros((1, 4), np.float32)})


def test_inputs_of_open_shapes_are_not_folded() -> None:
    plan = plan_of(dense(), input_shapes={0: None})
    assert not plan.cost.is_settled
    assert not plan.folding.early


# --- toys ------------------------------------------------------------------------------------------------------------

CONSTANT = tensor(buffer=1)
THREES = ints(3, 3).tobytes()


def toys(*steps: tuple[str, list[int], list[int]], last: int, buffers: Sequence[bytes] = (THREES,)) -> Model:
    """Tensor 0 is the input, 1 a constant of two threes, 2 a variable, 3 and 4 are vectors of two, 5 is open."""
    tensors = [tensor(), CONSTANT, tensor(is_variable=True), tensor(), tensor(), tensor(shape=(1, 1))]
    return graph(tensors, steps, [0], [last], buffers)


def test_constants_fold_into_a_shape() -> None:
    model = toys(("DOUBLE", [1], [3]), ("ADD", [3, 1], [4]), ("ONES", [4], [5]), last=5)
    plan = make_plan(model, PROFILE)
    assert plan.steps[2].prepared is not None
    assert plan.steps[2].prepared.shapes == ((9, 9),)


@pytest.mark.parametrize("source", [0, 2], ids=["input", "variable"])
def test_inputs_and_variables_are_not_folded(source: int) -> None:
    model = toys(("DOUBLE", [source], [3]), ("ADD", [3, 1], [4]), ("ONES", [4], [5]), last=5)
    plan, state = make_plan(model, PROFILE), State()
    assert plan.steps[2].prepared is None
    assert not plan.folding.everything()
    assert run(plan, {0: ints(1, 1)}, state).values[5].shape == ((5, 5) if source == 0 else (3, 3))
    assert run(plan, {0: ints(2, 1)}, state).values[5].shape == ((7, 5) if source == 0 else (3, 3))


def test_a_tensor_that_two_operators_make_is_not_folded() -> None:
    """Which of the values a reader gets depends on its place."""
    twice = toys(("COPY", [1], [3]), ("ONES", [3], [5]), ("DOUBLE", [1], [3]), ("ADD", [3, 0], [4]), last=5)
    plan = make_plan(twice, PROFILE)
    assert not plan.folding.everything()
    assert run(plan, {0: ints(1, 1)}).values[5].shape == (3, 3)


@pytest.mark.parametrize("op", ["WRONG_SHAPE", "WRONG_TYPE", "BROKEN_EVAL", "POSITIVE"])
def test_a_kernel_that_fails_leaves_its_readers_to_the_run(op: str) -> None:
    steps = [(op, [1], [3]), ("ADD", [3, 1], [4]), ("ONES", [4], [5])]
    plan = make_plan(toys(*steps, last=5), PROFILE)
    assert plan.steps[2].prepared is None
    assert not plan.folding.everything()
    if op != "POSITIVE":
        with pytest.raises(OperatorFailed, match=f"operator 0 {op}"):
            run(plan, {0: ints(1, 1)})


@pytest.mark.parametrize(("count", "is_folded"), [(1024, True), (1025, False)])
def test_large_constants_are_not_folded(count: int, is_folded: bool) -> None:
    """The limit is 4096 bytes."""
    tensors = [tensor(), tensor(shape=(count,), buffer=1), tensor(shape=()), tensor(shape=(1,)), tensor(shape=(1, 1))]
    steps = [("SUM", [1], [2]), ("OPTIONAL", [2, 2], [3])]
    model = graph(tensors, steps, [0], [3], [np.ones(count, np.int32).tobytes()])
    values = make_plan(model, PROFILE).folding.everything()
    assert values.keys() == ({2, 3} if is_folded else set())


def test_a_huge_result_is_not_computed() -> None:
    plan = make_plan(toys(("HUGE", [1], [3]), last=0), PROFILE, limits=Limits(memory=1 << 60))
    assert not plan.folding.everything()


def test_long_chains_fold() -> None:
    count = 5000
    chain = [("COPY", [i], [i + 1]) for i in range(1, count)]
    tensors = [tensor(), CONSTANT, *[tensor()] * (count - 1), tensor(shape=(1, 1))]
    plan = make_plan(graph(tensors, [*chain, ("ONES", [count], [count + 1])], [0], [count + 1], [THREES]), PROFILE)
    prepared = plan.steps[-1].prepared
    assert prepared is not None
    assert prepared.shapes == ((3, 3),)


def test_each_value_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = list[int]()

    def evaluate(prepared: Any, step: Any, arguments: list[Array]) -> Any:
        computed.append(step.index)
        return (prepared.eval(prepared.data, *arguments),)

    monkeypatch.setattr("tflq.engine.interpreter.planning.evaluate", evaluate)
    steps = [("DOUBLE", [1], [3]), ("ONES", [3], [5]), ("ADD", [3, 1], [4])]
    plan = make_plan(toys(*steps, last=5), PROFILE)
    assert computed == [0]
    for _ in range(2):
        plan.folding.everything()
    assert computed == [0, 1, 2]


def half_weights() -> bytes:
    """Weights and bias in float16, beyond what is computed while a plan is made, and a layer that multiplies twice."""
    rng = np.random.default_rng(5)
    drawing = Drawing(3, 5)
    narrow = [drawing.constant(rng.standard_normal(shape), "float16") for shape in ((2000, 5), (2000,))]
    wide = [
        drawing.add("DEQUANTIZE", [one], "float32", drawing.tensors[one].shape, "DequantizeOptions", {})
        for one in narrow
    ]
    y = drawing.add("FULLY_CONNECTED", [0, *wide], "float32", (3, 2000), "FullyConnectedOptions", {})
    return drawing.file(drawing.add("MUL", [y, y], "float32", (3, 2000), "MulOptions", {}))


def test_what_constants_make_is_computed_once() -> None:
    plan, state = plan_of(half_weights()), State()
    x = np.random.default_rng(6).standard_normal((3, 5)).astype(np.float32)
    for _ in range(3):
        run(plan, {0: x}, state)
    assert {step.op for step in state.routine.calls.steps} == {"FULLY_CONNECTED", "MUL"}
    assert_runs(half_weights(), [[x], [-x], [x * 3], [x]])


def test_what_has_no_room_is_computed_in_each_run() -> None:
    room = plan_of(half_weights()).cost.peak_memory + 20_000
    plan, state = plan_of(half_weights(), limits=Limits(memory=room)), State()
    x = np.ones((3, 5), np.float32)
    first = run(plan, {0: x}, state).values[plan.outputs[0]]
    for _ in range(3):
        assert np.array_equal(run(plan, {0: x}, state).values[plan.outputs[0]], first)
    assert not state.routine or "DEQUANTIZE" in {step.op for step in state.routine.calls.steps}
