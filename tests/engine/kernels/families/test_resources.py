"""Variables and hash tables against LiteRT: what subgraphs share, and what outlives runs and resizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.each import each
from support.graphs import Graph, Op, assert_runs, build, texts
from support.graphs import tflq as run_here
from support.single_op import Array, T, draw
from tflq.comparison.verification.verifying import verify
from tflq.engine.api.files import load
from tflq.engine.api.interpreter import Interpreter
from tflq.engine.interpreter import Plan, State, make_plan, run
from tflq.engine.interpreter.plan import Limits
from tflq.engine.kernels.families.resources import Variable
from tflq.engine.profiles import by_name
from tflq.errors import LimitError, ModelError, OperatorFailed, UndefinedResultError
from tflq.model.ir import TensorType

FULL = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"


def handle(number: int, name: str, container: str = "") -> Op:
    return Op("VAR_HANDLE", (), (number,), ("VarHandleOptions", {"container": container, "shared_name": name}))


def counter(type_: str, shape: tuple[int, ...], read_shape: tuple[int, ...]) -> bytes:
    """y = v after v += x, where v begins at 1."""
    once = Op("CALL_ONCE", (), (), ("CallOnceOptions", {"init_subgraph_index": 1}))
    main = Graph(
        [T(type_, shape), T("resource", ()), T(type_, read_shape), T(type_, shape), T(type_, read_shape)],
        (0,),
        (4,),
        [
            once,
            handle(1, "v"),
            Op("READ_VARIABLE", (1,), (2,)),
            Op("ADD", (0, 2), (3,), ("AddOptions", {})),
            Op("ASSIGN_VARIABLE", (1, 3), ()),
            Op("READ_VARIABLE", (1,), (4,)),
        ],
    )
    init = Graph(
        [T("resource", ()), T(type_, shape, value=1)], (), (), [handle(0, "v"), Op("ASSIGN_VARIABLE", (0, 1), ())]
    )
    return build(main, init)


@each("type_", ["float32", "int32", "int64"])
@each("shape", [(), (1,), (3,), (2, 3), (1, 2, 2, 2)])
def test_counting(type_: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    runs = [[draw(rng, T(type_, shape))] for _ in range(4)]
    assert_runs(counter(type_, shape, shape), runs)
    if shape:
        assert_runs(counter(type_, shape, ()), runs)  # whose shape only the run can tell


def routine_of(plan: Plan, state: State) -> bool:
    return state.known is plan and bool(state.routine)


@pytest.mark.parametrize("large", [False, True])
def test_a_plan_with_variables_runs_as_a_list_of_calls(large: bool) -> None:
    """Whole traces in between, other states and other arrays of the caller change nothing."""
    shape = (40_000,) if large else (3,)
    plan = make_plan(load(counter("float32", shape, shape)), by_name("litert-ref"))
    state, alone, total = State(), State(), np.ones(shape, np.float32)
    made = []
    for number in range(8):
        x = np.full(shape, number, np.float32)
        trace = run(plan, {0: x}, state, keep_all=number == 4, copy_inputs=True)
        slow = run(plan, {0: x}, alone, keep_all=True, copy_inputs=True)
        x[...] = 99
        total = total + number
        made.append((trace.values[4].copy(), total))
        trace.values[4][...] = 77  # results are the caller's
        np.testing.assert_array_equal(slow.values[4], total)
        assert routine_of(plan, state) == (number > 0)
    for value, expected in made:  # none was overwritten by a later run
        np.testing.assert_array_equal(value, expected)
    other = State(known=plan, routine=state.routine)  # without variables: the first subgraph has to run
    np.testing.assert_array_equal(run(plan, {0: total}, other).values[4], total + 1)
    np.testing.assert_array_equal(run(plan, {0: total}, state).values[4], 2 * total)


def test_a_variable_may_change_between_runs() -> None:
    """Another subgraph, or the caller, assigns a value of another shape or type, or takes it away."""
    plan, state = make_plan(load(counter("float32", (3,), (3,))), by_name("litert-ref")), State()
    x = np.zeros(3, np.float32)
    for _ in range(3):
        run(plan, {0: x}, state)
    assert routine_of(plan, state)
    variable = state.resources["resource", 0]
    variable.value = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert run(plan, {0: x}, state).values[4].tolist() == [0, 1, 2]
    variable.value = np.arange(2, dtype=np.float32)
    with pytest.raises(UndefinedResultError, match="3 elements are read of a variable that has 2"):
        run(plan, {0: x}, state)
    variable.value, variable.type = np.arange(3, dtype=np.int32), TensorType.INT32
    with pytest.raises(OperatorFailed, match="the variable holds int32, not float32"):
        run(plan, {0: x}, state)
    variable.value = None
    with pytest.raises(OperatorFailed, match="no value yet"):
        run(plan, {0: x}, state)


def test_variables_count_against_the_memory_limit() -> None:
    model = load(counter("float32", (1000,), (1000,)))
    plan, state = make_plan(model, by_name("litert-ref"), limits=Limits(memory=40_000)), State()
    x = {0: np.zeros(1000, np.float32)}
    for _ in range(3):
        run(plan, x, state)
    assert routine_of(plan, state)
    state.resources["resource", 7] = Variable(np.zeros(9_000, np.float32), TensorType.FLOAT32)
    with pytest.raises(LimitError, match="variables that have handles"):
        run(plan, x, state)


@each("type_", ["float32", "int8", "uint8", "int16", "int32", "int64", "bool", "float16", "float64"])
@each("shapes", [((2, 3), (2, 3)), ((2, 3), (3, 2)), ((2, 3), (4,)), ((4,), ()), ((), ())])
def test_assigned_and_read(type_: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    """Of every type; where shapes differ the bytes count. Names tell variables apart, and so do containers."""
    assigned, read = shapes
    main = Graph(
        [
            T(type_, assigned),
            T("resource", (1,)),
            T("resource", (1,)),
            T(type_, read),
            T("resource", (1,)),
            T(type_, assigned),
            T(type_, read),
        ],
        (0, 5),
        (3, 6),
        [
            handle(1, "v"),
            Op("ASSIGN_VARIABLE", (1, 0), ()),
            handle(2, "v", "c"),
            Op("ASSIGN_VARIABLE", (2, 5), ()),
            handle(4, "v"),
            Op("READ_VARIABLE", (4,), (3,)),
            Op("READ_VARIABLE", (2,), (6,)),
        ],
    )
    rng = np.random.default_rng(2)
    assert_runs(build(main), [[draw(rng, T(type_, assigned)), draw(rng, T(type_, assigned))] for _ in range(2)])


def test_numbers_as_handles() -> None:
    """int32 tensors may be handles; they name what VAR_HANDLEs number in the order of the file."""
    main = Graph(
        [
            T("float32", (2,)),
            T("resource", ()),
            T("resource", ()),
            T("int32", (1,)),
            T("float32", (2,)),
            T("float32", (2,)),
        ],
        (0, 3, 4),
        (5,),
        [
            handle(1, "b"),
            Op("ASSIGN_VARIABLE", (1, 0), ()),
            handle(2, "a"),
            Op("ASSIGN_VARIABLE", (2, 4), ()),
            Op("READ_VARIABLE", (3,), (5,)),
        ],
    )
    rng = np.random.default_rng(3)
    pair = T("float32", (2,))
    runs = [[draw(rng, pair), np.array([n], np.int32), draw(rng, pair)] for n in (0, 1)]
    assert_runs(build(main), runs)


def test_variable_keeps_its_value_through_a_resize() -> None:
    main = Graph(
        [T("float32", (2,)), T("resource", ()), T("float32", ()), T("float32", (2,))],
        (0,),
        (2, 3),
        [
            handle(1, "v"),
            Op("READ_VARIABLE", (1,), (2,)),
            Op("ADD", (0, 2), (3,), ("AddOptions", {})),
            Op("ASSIGN_VARIABLE", (1, 0), ()),
            Op("CALL_ONCE", (), (), ("CallOnceOptions", {"init_subgraph_index": 1})),
        ],
    )
    main = Graph(main.tensors, main.inputs, main.outputs, [main.ops[-1], *main.ops[:-1]])
    init = Graph(
        [T("resource", ()), T("float32", (1,), value=5)], (), (), [handle(0, "v"), Op("ASSIGN_VARIABLE", (0, 1), ())]
    )
    rng = np.random.default_rng(4)
    assert_runs(build(main, init), [[draw(rng, T("float32", (n,)))] for n in (3, 3, 1, 4)])


def test_variables_in_a_loop() -> None:
    """v doubles in each round of a WHILE."""
    main = Graph(
        [T("int32", ()), T("int32", (2,)), T("resource", (1,)), T("int32", ()), T("int32", (2,))],
        (0, 1),
        (3, 4),
        [
            handle(2, "v"),
            Op("ASSIGN_VARIABLE", (2, 1), ()),
            Op("WHILE", (0,), (3,), ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2})),
            Op("READ_VARIABLE", (2,), (4,)),
        ],
    )
    cond = Graph(
        [T("int32", ()), T("int32", (), value=5), T("bool", ())],
        (0,),
        (2,),
        [Op("LESS", (0, 1), (2,), ("LessOptions", {}))],
    )
    body = Graph(
        [
            T("int32", ()),
            T("int32", (), value=1),
            T("int32", ()),
            T("resource", (1,)),
            T("int32", (2,)),
            T("int32", (2,)),
        ],
        (0,),
        (2,),
        [
            Op("ADD", (0, 1), (2,), ("AddOptions", {})),
            handle(3, "v"),
            Op("READ_VARIABLE", (3,), (4,)),
            Op("ADD", (4, 4), (5,), ("AddOptions", {})),
            Op("ASSIGN_VARIABLE", (3, 5), ()),
        ],
    )
    runs = [[np.array(n, np.int32), np.array([1, -7], np.int32)] for n in (0, 3, 5, -2)]
    assert_runs(build(main, cond, body), runs)


def test_reading_what_is_not_there() -> None:
    read = Graph([T("resource", ()), T("float32", (4,))], (), (1,), [handle(0, "v"), Op("READ_VARIABLE", (0,), (1,))])
    with pytest.raises(OperatorFailed, match="does not exist"):
        run_here(build(read), [[]])
    small = Graph(
        [T("float32", (2,)), *read.tensors],
        (0,),
        (2,),
        [handle(1, "v"), Op("ASSIGN_VARIABLE", (1, 0), ()), Op("READ_VARIABLE", (1,), (2,))],
    )
    with pytest.raises(UndefinedResultError, match="4 elements"):
        run_here(build(small), [[np.zeros(2, np.float32)]])
    other = Graph([T("float32", (4,)), T("resource", ()), T("int8", (4,))], (0,), (2,), small.ops)
    with pytest.raises(OperatorFailed, match="holds float32, not int8"):
        run_here(build(other), [[np.zeros(4, np.float32)]])
    wider = Graph([T("int8", (4,)), T("resource", ()), T("int4", (4,))], (0,), (2,), small.ops)
    with pytest.raises(OperatorFailed, match="holds int8, not int4"):
        run_here(build(wider), [[np.zeros(4, np.int8)]])
    strings = Graph([T("string", (2,)), T("resource", ()), T("string", (2,))], (0,), (2,), small.ops)
    with pytest.raises(UndefinedResultError, match="strings"):
        run_here(build(strings), [[texts(["a", "bc"])]])


TABLES: dict[str, list[Any]] = {
    "string": [b"one", b"two", b"", b"two", b"ein langer Text"],
    "int64": [1, -2, 1, 2**40, 0],
}


@pytest.mark.parametrize("key", ["string", "int64"])
@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3)])
def test_hash_tables(key: str, shape: tuple[int, ...]) -> None:
    """Filled by CALL_ONCE, and again in every run, which counts for nothing."""
    value = "int64" if key == "string" else "string"
    numbers = {"string": 5, "int64": 4}
    table = Op(
        "HASHTABLE",
        (),
        (0,),
        ("HashtableOptions", {"table_id": 7, "key_dtype": numbers[key], "value_dtype": numbers[value]}),
    )
    fill = Op("HASHTABLE_IMPORT", (0, 1, 2), ())
    tensors = [T("resource", (1,)), T(key, (5,), value=TABLES[key]), T(value, (5,), value=TABLES[value])]
    once = Op("CALL_ONCE", (), (), ("CallOnceOptions", {"init_subgraph_index": 1}))
    default: list[object] = [b"nothing"] if value == "string" else [-1]
    main = Graph(
        [
            T("resource", (1,)),
            T(key, (1,), value=TABLES[key][4:]),
            T(value, (1,), value=default),
            T(key, shape),
            T(value, shape),
            T("int64", (1,)),
        ],
        (3,),
        (4, 5),
        [once, table, fill, Op("HASHTABLE_FIND", (0, 3, 2), (4,)), Op("HASHTABLE_SIZE", (0,), (5,))],
    )
    rng = np.random.default_rng(5)
    known: list[object] = [*TABLES[key], b"unknown" if key == "string" else 77]
    runs = []
    for _ in range(4):
        picked = [known[i] for i in rng.integers(0, len(known), max(1, int(np.prod(shape))))]
        runs.append([np.array(picked, np.bytes_ if key == "string" else np.int64).reshape(shape)])
    assert_runs(build(main, Graph(tensors, (), (), [table, fill])), runs, FULL)


def test_hash_table_refusals() -> None:
    wrong = Op("HASHTABLE", (), (0,), ("HashtableOptions", {"table_id": 7, "key_dtype": 4, "value_dtype": 4}))
    with pytest.raises(ModelError, match="types of keys"):
        Interpreter(model_content=build(Graph([T("resource", (1,))], (), (0,), [wrong]))).allocate_tensors()
    table = Op("HASHTABLE", (), (0,), ("HashtableOptions", {"table_id": 7, "key_dtype": 4, "value_dtype": 5}))
    tensors = [T("resource", (1,)), T("int64", (1,)), T("string", (1,), value=[b"a"]), T("string", (1,))]
    empty = Graph(tensors, (1,), (3,), [table, Op("HASHTABLE_FIND", (0, 1, 2), (3,))])
    with pytest.raises(OperatorFailed, match="not filled"):
        run_here(build(empty), [[np.zeros(1, np.int64)]])


@each("type_", ["float32", "int8", "int32", "int64", "string"])
@each("tail", [(), (3,), (2, 2)])
def test_hashtable_lookup(type_: str, tail: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    for keys_count, lookups in [(1, 3), (2, 5), (7, 20), (16, 40)]:
        tail = () if type_ == "string" else tail
        tensors = [
            T("int32", (lookups,)),
            T("int32", (keys_count,)),
            T(type_, (keys_count, *tail)),
            T(type_, (lookups, *tail)),
            T("uint8", (lookups,)),
        ]
        model = build(Graph(tensors, (0, 1, 2), (3, 4), [Op("HASHTABLE_LOOKUP", (0, 1, 2), (3, 4))]))
        runs: list[list[Array]] = []
        for bound in (5, 30, 2**31 - 1):
            keys = np.sort(rng.integers(-bound, bound, keys_count)).astype(np.int32)
            if bound == 30:
                rng.shuffle(keys)  # out of order: found or not as the search goes
            lookup = np.where(
                rng.random(lookups) < 0.7, rng.choice(keys, lookups), rng.integers(-bound, bound, lookups)
            )
            values = texts([f"row {i}" for i in range(keys_count)]) if type_ == "string" else draw(rng, tensors[2])
            runs.append([lookup.astype(np.int32), keys, values])
        assert_runs(model, runs)


@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
def test_verification_passes_handles_over(mode: str) -> None:
    """No runtime hands them out; everything else is compared, and what has no results shows in what reads it."""
    pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    main = Graph(
        [T("float32", (3,)), T("resource", ()), T("float32", (3,)), T("float32", (3,))],
        (0,),
        (3,),
        [
            handle(1, "v"),
            Op("ASSIGN_VARIABLE", (1, 0), ()),
            Op("READ_VARIABLE", (1,), (2,)),
            Op("ADD", (0, 2), (3,), ("AddOptions", {})),
        ],
    )
    report = verify(build(main), mode=mode)
    operators = report.operators
    assert report.verdict.value == "same"
    assert [operator.op for operator in operators] == ["VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE", "ADD"]
    (total,) = operators[3].tensors
    assert total.difference is not None
    assert total.difference.same
    assert [operator.silent for operator in operators] == [True, True, False, False]
    assert all(t.difference is not None and t.difference.same for t in operators[2].tensors)
